package fold

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/faultstore"
)

// lagOf reads the gauge that the alert watches.
func lagOf(t *testing.T, reader *sdkmetric.ManualReader) float64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &all))
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name == "foldline.fold.lag" {
				return m.Data.(metricdata.Gauge[float64]).DataPoints[0].Value
			}
		}
	}
	t.Fatal("no lag")
	return 0
}

// The lag grows while folds fail, and is 0 when nothing waits: an alert on it goes off when it should and ends by itself.
func TestLagIsOfWhatWaits(t *testing.T) {
	var down atomic.Bool
	fault := errors.New("the store is away")
	store := faultstore.New(objstore.NewMemory(), func(_ context.Context, c faultstore.Call) faultstore.Fault {
		if down.Load() && c.Op == faultstore.Create {
			return faultstore.Fault{Before: fault}
		}
		return faultstore.Fault{}
	})
	reader := sdkmetric.NewManualReader()
	w := newWorld(t, store, 1, noteTable("node:Note"))
	defer w.close()
	w.clock = &manualClock{}
	w.opts.Meter = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("fold")
	w.claim(store)
	require.Zero(t, lagOf(t, reader), "before the first fold")

	start := w.write("node:Note", upsert("a", 1))
	require.NotZero(t, start.Seq)
	w.clock.seconds.Store(1_000_000_000) // far behind the log's own clock
	down.Store(true)
	_, err := w.folder.FoldOnce(t.Context())
	require.ErrorIs(t, err, fault)
	require.Positive(t, lagOf(t, reader), "while folds fail")
	down.Store(false)
	w.claim(store)
	w.fold()
	require.Zero(t, lagOf(t, reader), "nothing waits")
}
