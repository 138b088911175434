package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"github.com/hashicorp/go-multierror"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	promexporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	nooptrace "go.opentelemetry.io/otel/trace/noop"
)

// scope is what the names of our meters and tracers begin with: the module's path.
const scope = "github.com/foldline/foldline/"

// Telemetry is what Setup built.
type Telemetry struct {
	Logger *slog.Logger

	meters   metric.MeterProvider
	tracers  trace.TracerProvider
	registry *prometheus.Registry
}

// Setup builds the telemetry of a process. shutdown sends what is outstanding and stops the exporters; call it once, with
// a context that bounds the wait.
func Setup(ctx context.Context, o Options) (t *Telemetry, shutdown func(context.Context) error, err error) {
	o.EnsureDefaults()
	if err := o.Validate(); err != nil {
		return nil, nil, err
	}
	t = &Telemetry{Logger: newLogger(o), registry: prometheus.NewRegistry()}
	origin := resourceOf(o)
	meters, err := newMeters(ctx, o, origin, t.registry)
	if err != nil {
		return nil, nil, err
	}
	t.meters = meters
	tracers, err := newTracers(ctx, o, origin)
	if err != nil {
		return nil, nil, multierror.Append(err, meters.Shutdown(ctx)).ErrorOrNil()
	}
	t.tracers = nooptrace.NewTracerProvider()
	if tracers != nil {
		t.tracers = tracers
	}
	shutdown = func(ctx context.Context) error {
		var faults *multierror.Error
		if tracers != nil {
			faults = appendFault(faults, tracers.Shutdown(ctx))
		}
		return appendFault(faults, meters.Shutdown(ctx)).ErrorOrNil()
	}
	return t, shutdown, nil
}

func appendFault(faults *multierror.Error, err error) *multierror.Error {
	if err == nil {
		return faults
	}
	return multierror.Append(faults, err)
}

// Meter is the meter of a package.
func (t *Telemetry) Meter(name string) metric.Meter { return t.meters.Meter(scope + name) }

// Tracer is the tracer of a package.
func (t *Telemetry) Tracer(name string) trace.Tracer { return t.tracers.Tracer(scope + name) }

// Handler serves the metrics in Prometheus form.
func (t *Telemetry) Handler() http.Handler {
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{EnableOpenMetrics: true})
}

func newLogger(o Options) *slog.Logger {
	level, err := parseLevel(o.LogLevel)
	if err != nil {
		panic("telemetry: validated level: " + err.Error())
	}
	settings := &slog.HandlerOptions{Level: level}
	if o.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(o.LogOutput, settings))
	}
	return slog.New(slog.NewTextHandler(o.LogOutput, settings))
}

// resourceOf names the process by OpenTelemetry's conventions for services.
func resourceOf(o Options) *resource.Resource {
	facts := []attribute.KeyValue{attribute.String("service.name", o.Service)}
	if o.Version != "" {
		facts = append(facts, attribute.String("service.version", o.Version))
	}
	if o.Instance != "" {
		facts = append(facts, attribute.String("service.instance.id", o.Instance))
	}
	return resource.NewSchemaless(facts...)
}

func newMeters(ctx context.Context, o Options, origin *resource.Resource, registry *prometheus.Registry) (*sdkmetric.MeterProvider, error) {
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	exporter, err := promexporter.New(promexporter.WithRegisterer(registry), promexporter.WithoutScopeInfo())
	if err != nil {
		return nil, fmt.Errorf("telemetry: prometheus: %w", err)
	}
	settings := []sdkmetric.Option{sdkmetric.WithResource(origin), sdkmetric.WithReader(exporter)}
	for _, v := range views() {
		settings = append(settings, sdkmetric.WithView(v))
	}
	if o.OTLPEndpoint != "" {
		push, err := otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpointURL(signalURL(o.OTLPEndpoint, "metrics")))
		if err != nil {
			return nil, fmt.Errorf("telemetry: OTLP metrics: %w", err)
		}
		settings = append(settings, sdkmetric.WithReader(sdkmetric.NewPeriodicReader(push)))
	}
	return sdkmetric.NewMeterProvider(settings...), nil
}

// newTracers is nil when nobody receives spans: the trace context of producers is then passed on unchanged.
func newTracers(ctx context.Context, o Options, origin *resource.Resource) (*sdktrace.TracerProvider, error) {
	settings := []sdktrace.TracerProviderOption{
		sdktrace.WithResource(origin),
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(o.TraceRatio))),
	}
	if o.SpanExporter == nil && o.OTLPEndpoint == "" {
		return nil, nil
	}
	if o.SpanExporter != nil {
		settings = append(settings, sdktrace.WithBatcher(o.SpanExporter))
	}
	if o.OTLPEndpoint != "" {
		push, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(signalURL(o.OTLPEndpoint, "traces")))
		if err != nil {
			return nil, fmt.Errorf("telemetry: OTLP traces: %w", err)
		}
		settings = append(settings, sdktrace.WithBatcher(push))
	}
	return sdktrace.NewTracerProvider(settings...), nil
}

// signalURL is where OTLP over HTTP puts a signal below a collector's base URL.
func signalURL(base, signal string) string { return strings.TrimSuffix(base, "/") + "/v1/" + signal }
