package telemetry

import (
	"context"
	"io"
	"log/slog"
	"net/http"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// Options says what to build. The zero value logs text at info to standard error, keeps metrics for Handler only
// and samples no trace.
type Options struct {
	// Service names the process in metrics and traces; default "foldline".
	Service string
	// Version of the program, "" to leave it out.
	Version string
	// Instance tells processes of one service apart, "" to leave it out.
	Instance string
	// LogLevel is debug, info, warn or error; default info.
	LogLevel string
	// LogFormat is text or json; default text.
	LogFormat string
	// LogOutput defaults to standard error.
	LogOutput io.Writer
	// OTLPEndpoint is the base URL of a collector ("http://host:4318") for metrics and traces, "" for none.
	OTLPEndpoint string
	// TraceRatio is the share of traces without a sampled parent that are sampled, 0 to 1.
	TraceRatio float64
}

// Telemetry is what Setup built.
type Telemetry struct {
	Logger *slog.Logger
}

// Setup builds the telemetry of a process. shutdown flushes and stops it, and must be called once.
func Setup(ctx context.Context, o Options) (t *Telemetry, shutdown func(context.Context) error, err error) {
	panic("pending")
}

// Meter is the meter of a package.
func (t *Telemetry) Meter(name string) metric.Meter { panic("pending") }

// Tracer is the tracer of a package.
func (t *Telemetry) Tracer(name string) trace.Tracer { panic("pending") }

// Handler serves the metrics in Prometheus form.
func (t *Telemetry) Handler() http.Handler { panic("pending") }
