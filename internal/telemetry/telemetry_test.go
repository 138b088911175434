package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/foldline/foldline/internal/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMetricsInPrometheusForm(t *testing.T) {
	tel, shutdown, err := telemetry.Setup(t.Context(), telemetry.Options{LogOutput: io.Discard})
	require.NoError(t, err)
	acks, err := tel.Meter("ingest").Int64Counter("foldline.ingest.acks")
	require.NoError(t, err)
	acks.Add(t.Context(), 3)
	latency, err := tel.Meter("ingest").Float64Histogram("foldline.ingest.ack", metric.WithUnit("s"))
	require.NoError(t, err)
	latency.Record(t.Context(), 0.00015)

	answer := httptest.NewRecorder()
	tel.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	text := answer.Body.String()
	require.Contains(t, text, "foldline_ingest_acks_total 3")
	require.Contains(t, text, `foldline_ingest_ack_seconds_bucket{le="0.0002"} 1`)
	require.Contains(t, text, `service_name="foldline"`)
	require.Contains(t, text, "go_goroutines")
	require.NoError(t, shutdown(t.Context()))
}

func TestSetupsShareNothing(t *testing.T) {
	for range 2 {
		tel, shutdown, err := telemetry.Setup(t.Context(), telemetry.Options{LogOutput: io.Discard})
		require.NoError(t, err)
		acks, err := tel.Meter("ingest").Int64Counter("foldline.ingest.acks")
		require.NoError(t, err)
		acks.Add(t.Context(), 1)
		answer := httptest.NewRecorder()
		tel.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		require.Contains(t, answer.Body.String(), "foldline_ingest_acks_total 1")
		require.NoError(t, shutdown(t.Context()))
	}
}

func TestLogsInBothFormats(t *testing.T) {
	var out bytes.Buffer
	tel, shutdown, err := telemetry.Setup(t.Context(), telemetry.Options{LogFormat: "json", LogLevel: "warn", LogOutput: &out})
	require.NoError(t, err)
	tel.Logger.Info("left out")
	tel.Logger.Warn("lane claimed", "epoch", 7)
	var line map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &line))
	require.Equal(t, "lane claimed", line["msg"])
	require.NoError(t, shutdown(t.Context()))
}

func TestSpansFollowTheirParent(t *testing.T) {
	spans := &keep{}
	tel, shutdown, err := telemetry.Setup(t.Context(), telemetry.Options{SpanExporter: spans, LogOutput: io.Discard})
	require.NoError(t, err)
	parent := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled, Remote: true})
	_, span := tel.Tracer("ingest").Start(trace.ContextWithRemoteSpanContext(t.Context(), parent), "ingest")
	span.End()
	_, unsampled := tel.Tracer("ingest").Start(t.Context(), "ingest")
	unsampled.End()
	require.NoError(t, shutdown(t.Context()))
	require.Len(t, spans.got, 1)
	require.Equal(t, parent.TraceID(), spans.got[0].SpanContext().TraceID())
	require.Equal(t, parent.SpanID(), spans.got[0].Parent().SpanID())
}

// keep holds on to spans over its shutdown.
type keep struct{ got []sdktrace.ReadOnlySpan }

func (k *keep) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	k.got = append(k.got, spans...)
	return nil
}

func (k *keep) Shutdown(context.Context) error { return nil }

func TestOTLPOverHTTP(t *testing.T) {
	var mu sync.Mutex
	paths := map[string]int{}
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		paths[r.URL.Path]++
	}))
	defer collector.Close()
	tel, shutdown, err := telemetry.Setup(t.Context(), telemetry.Options{OTLPEndpoint: collector.URL + "/", TraceRatio: 1, LogOutput: io.Discard})
	require.NoError(t, err)
	_, span := tel.Tracer("ingest").Start(t.Context(), "ingest")
	span.End()
	acks, err := tel.Meter("ingest").Int64Counter("foldline.ingest.acks")
	require.NoError(t, err)
	acks.Add(t.Context(), 1)
	require.NoError(t, shutdown(t.Context()))
	mu.Lock()
	defer mu.Unlock()
	require.Positive(t, paths["/v1/traces"])
	require.Positive(t, paths["/v1/metrics"])
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

func TestBadOptionsAreAllNamedAndNoSecretIsQuoted(t *testing.T) {
	_, _, err := telemetry.Setup(t.Context(), telemetry.Options{
		LogLevel: "loud", LogFormat: "xml", TraceRatio: 2, OTLPEndpoint: "ftp://user:PWMARK4@host"})
	require.ErrorContains(t, err, "loud")
	require.ErrorContains(t, err, "xml")
	require.ErrorContains(t, err, "ratio")
	require.ErrorContains(t, err, "endpoint")
	require.NotContains(t, err.Error(), "PWMARK4")
}
