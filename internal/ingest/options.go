package ingest

import (
	"context"
	"io"
	"log/slog"
	"runtime"
	"time"

	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/metric"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	nooptrace "go.opentelemetry.io/otel/trace/noop"

	"github.com/foldline/foldline/internal/envelope"
	"github.com/foldline/foldline/internal/envelope/rows"
	"github.com/foldline/foldline/internal/options"
	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/wal"
)

// Log is what the ingester needs of *wal.Log.
type Log interface {
	Incarnation() string
	AppendAll(ctx context.Context, entries []wal.Entry, done func(first int, results []wal.Result)) (int, error)
	Release(ctx context.Context, through wal.Seq) error
	Status(ctx context.Context) (wal.Status, error)
	Seal(ctx context.Context) (wal.Seq, error)
}

// Options are the components and settings of an Ingester. The zero value of a setting is its default.
type Options struct {
	Conn  *nats.Conn     // required; stays the caller's and must outlive Run
	Log   Log            // required; begun under the lane's epoch, its Run going
	Store objstore.Store // required; for the heads only
	Root  string         // of the graph in the store
	Graph string         // required
	// Prefix of the subjects, default envelope.DefaultPrefix.
	Prefix string
	Lane   uint32

	// Limits of one message.
	Limits rows.Limits
	// MaxInFlightBytes bounds the bodies that were taken and not yet answered, default 64 MiB. Above it the answer is
	// busy. One message above the bound is taken when nothing else is in flight.
	MaxInFlightBytes int64
	// MaxInFlightMessages bounds their number, default 65,536.
	MaxInFlightMessages int
	// Decoders is the number of goroutines that help to decode, default GOMAXPROCS.
	Decoders int
	// RefreshInterval is how often the heads are read without a hint, default 5 s.
	RefreshInterval time.Duration
	// UnknownTableInterval is the least time between two reads of the heads because of unknown tables, default 1 s.
	UnknownTableInterval time.Duration
	// MaxVisibleTimeout bounds what a producer may ask a visible ack to wait, default 60 s.
	MaxVisibleTimeout time.Duration
	// DrainTimeout bounds the wait for answers when Run is told to stop, default 10 s.
	DrainTimeout time.Duration

	// Owns tells whether this process may still speak for the lane, by its own clock alone; it is asked before every ack, and
	// when it says no the answer is that the outcome is unknown. Nil is always. It may be called concurrently.
	Owns func() bool

	// Seal publishes that the log takes no more entries and ends at a sequence, for a change of the graph's lane count; see publisher.SealLane. ErrFenced ends the ingester. It may be called
	// again with the same end. Nil refuses, so that the lane count cannot be changed.
	Seal func(ctx context.Context, end wal.Seq) error

	Allocator memory.Allocator // of records, default the Go heap
	Logger    *slog.Logger     // nil discards
	Meter     metric.Meter     // nil records nothing
	Tracer    trace.Tracer     // nil traces nothing
	Clock     func() time.Time // default time.Now
}

// Defaults of Options.
const (
	DefaultMaxInFlightBytes     = 64 << 20
	DefaultMaxInFlightMessages  = 1 << 16
	DefaultRefreshInterval      = 5 * time.Second
	DefaultUnknownTableInterval = time.Second
	DefaultMaxVisibleTimeout    = time.Minute
	DefaultDrainTimeout         = 10 * time.Second
)

// EnsureDefaults fills every zero setting with its default.
func (o *Options) EnsureDefaults() {
	o.Limits = o.Limits.EnsureDefaults()
	options.Default(&o.Prefix, envelope.DefaultPrefix)
	options.Default(&o.MaxInFlightBytes, DefaultMaxInFlightBytes)
	options.Default(&o.MaxInFlightMessages, DefaultMaxInFlightMessages)
	options.Default(&o.Decoders, runtime.GOMAXPROCS(0))
	options.Default(&o.RefreshInterval, DefaultRefreshInterval)
	options.Default(&o.UnknownTableInterval, DefaultUnknownTableInterval)
	options.Default(&o.MaxVisibleTimeout, DefaultMaxVisibleTimeout)
	options.Default(&o.DrainTimeout, DefaultDrainTimeout)
	if o.Owns == nil {
		o.Owns = func() bool { return true }
	}
	if o.Seal == nil {
		o.Seal = func(context.Context, wal.Seq) error { return errNoSeal }
	}
	if o.Allocator == nil {
		o.Allocator = memory.DefaultAllocator
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	if o.Meter == nil {
		o.Meter = noopmetric.Meter{}
	}
	if o.Tracer == nil {
		o.Tracer = nooptrace.Tracer{}
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
}

// Validate reports all faults of the options together.
func (o *Options) Validate() error {
	c := &options.Check{What: "ingest: options", Class: ErrInvalid}
	c.That(o.Conn != nil, "Conn is required")
	c.That(o.Log != nil, "Log is required")
	c.That(o.Store != nil, "Store is required")
	c.That(o.MaxInFlightBytes > 0, "MaxInFlightBytes must be positive")
	c.That(o.MaxInFlightMessages > 0, "MaxInFlightMessages must be positive")
	c.That(o.Decoders > 0, "Decoders must be positive")
	c.That(o.RefreshInterval > 0 && o.UnknownTableInterval > 0, "intervals must be positive")
	c.That(o.MaxVisibleTimeout > 0 && o.DrainTimeout > 0, "timeouts must be positive")
	_, err := envelope.NewSubjects(o.Prefix, o.Graph)
	c.Add(err)
	return c.Err()
}
