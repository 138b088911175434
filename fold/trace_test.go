package fold

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/wal"
)

// TestTraceReachesThePublish: a traced message can be followed, in its own
// trace, to the fold that showed it; one that is not sampled leaves no span.
func TestTraceReachesThePublish(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	w := newWorld(t, objstore.NewMemory(), 1, noteTable("node:T"))
	defer w.close()
	w.opts.Tracer = provider.Tracer("fold")
	w.claim(w.store)
	o := w.lanes[0]
	const message = "4bf92f3577b34da6a3ce929d0e0e4736"
	for i, trace := range []string{"00-" + message + "-00f067aa0ba902b7-01", "00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-00f067aa0ba902b7-00", "", "no trace"} {
		w.append(o, wal.Entry{Trace: trace, Rows: []wal.Rows{o.rowsOf(w, "node:T", upsert(fmt.Sprint(i), i))}})
	}
	w.fold()
	var visible, folds tracetest.SpanStubs
	for _, s := range spans.GetSpans() {
		switch s.Name {
		case "foldline.visible":
			visible = append(visible, s)
		case "foldline.fold":
			folds = append(folds, s)
		}
	}
	require.Len(t, visible, 1)
	require.Equal(t, message, visible[0].SpanContext.TraceID().String())
	require.Equal(t, "00f067aa0ba902b7", visible[0].Parent.SpanID().String())
	require.NotEmpty(t, folds)
	require.Len(t, visible[0].Links, 1)
	require.Contains(t, []string{folds[0].SpanContext.SpanID().String(), folds[len(folds)-1].SpanContext.SpanID().String()},
		visible[0].Links[0].SpanContext.SpanID().String())
	linked := 0
	for _, f := range folds {
		linked += len(f.Links)
	}
	require.Equal(t, 1, linked, "the fold links back to the traced message")
}
