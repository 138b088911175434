package publisher

import (
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/metric"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	nooptrace "go.opentelemetry.io/otel/trace/noop"

	"github.com/foldline/foldline/objstore"
)

// Step names a point of the protocol, before or after an effect: "record.before", "record.after", "commit.<table key>.before",
// "commit.<table key>.after", "draft.before", "draft.after" (the heads' file is uploaded ahead), "publish.before", "publish.after", "claim.before", "claim.after", "barrier.<table key>.before",
// "barrier.<table key>.after", "recover.before", "recover.after", "init.before", "init.after", "create.before", "create.after", "enrol.before", "enrol.after", "tidy.before", "tidy.after",
// "rewrite.<table key>.before", "rewrite.<table key>.after" of a compaction, and for a graph commit
// that changes heads outside of a fold its kind: "adopt.before", "adopt.after" and so on.
type Step string

// Options are the components of every call.
type Options struct {
	Store objstore.Store // required
	Root  string         // of the graph, in the store; may be empty
	// Logger, Meter and Tracer: nil discards.
	Logger *slog.Logger
	Meter  metric.Meter
	Tracer trace.Tracer
	Clock  func() time.Time // nil = time.Now
	// SuspendAfter is how long a table that cannot be committed, or takes no barrier, may hold up the others before it is suspended and its rows become
	// rejects. 0 = 30 s.
	SuspendAfter time.Duration
	// Retention of manifest versions; it matters to the folder alone.
	Retention Retention
	// Keys finds rows without a scan and knows which keys repeat; it stays the caller's and must outlive the Publisher. nil = tables are scanned.
	Keys KeyIndex
	// MaxEnrolManifestBytes bounds the manifest of a table that EnrolTable takes over. 0 = 16 MiB.
	MaxEnrolManifestBytes int64
	// Step is called at every protocol step, on the goroutine that takes it; table steps come from several at once. A
	// test kills the process in it. nil = none.
	Step func(Step)
}

// defaultSuspendAfter is how long one table may hold up the others (architecture 7.6).
const defaultSuspendAfter = 30 * time.Second

// EnsureDefaults replaces zero values.
func (o *Options) EnsureDefaults() {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Meter == nil {
		o.Meter = noopmetric.NewMeterProvider().Meter("publisher")
	}
	if o.Tracer == nil {
		o.Tracer = nooptrace.NewTracerProvider().Tracer("publisher")
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.SuspendAfter == 0 {
		o.SuspendAfter = defaultSuspendAfter
	}
	o.Retention.ensureDefaults()
	if o.MaxEnrolManifestBytes == 0 {
		o.MaxEnrolManifestBytes = defaultMaxEnrolManifestBytes
	}
	if o.Step == nil {
		o.Step = func(Step) {}
	}
}

func (o Options) validate() error {
	if o.Store == nil {
		return invalid("no store")
	}
	if o.SuspendAfter < 0 {
		return invalid("SuspendAfter is negative")
	}
	return o.Retention.validate()
}
