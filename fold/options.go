package fold

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/apache/arrow/go/v17/arrow/memory"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/foldline/foldline/fold/keyindex"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/options"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/publisher"
	"github.com/foldline/foldline/wal"
)

// Publisher is what a folder needs of *publisher.Publisher.
type Publisher interface {
	Refresh(ctx context.Context) (*heads.Snapshot, error)
	NextFold() uint64
	Enrolled(ctx context.Context, key string) (heads.Table, error)
	PutDeleteKeys(ctx context.Context, fold uint64, table heads.Table, keys []string) (string, error)
	Publish(ctx context.Context, prepared *publisher.Prepared) (*publisher.Published, error)
	Tidy(ctx context.Context) error
	Adopt(ctx context.Context) (*heads.Snapshot, error)
	Suspend(ctx context.Context, found map[heads.TableID]error) (*heads.Snapshot, error)
	Pause(ctx context.Context, key, reason string, until time.Time) (heads.Table, error)
	Reopen(ctx context.Context, key string) (heads.Table, error)
	Resume(ctx context.Context, key string) (heads.Table, error)
	ChangeLanes(ctx context.Context, n uint32) (*heads.Snapshot, error)
	FinishLanes(ctx context.Context) (*heads.Snapshot, error)
	Compact(ctx context.Context, key string, base *lance.Table, o lance.CompactOptions) (publisher.Compacted, error)
}

var _ Publisher = (*publisher.Publisher)(nil)

// Limits and defaults.
const (
	defaultInterval = time.Second
	defaultAdopt    = time.Minute
	defaultSuspend  = 30 * time.Second
	defaultMaxRows  = 1_000_000
	defaultMaxBytes = 128 << 20
	// Preparing a table waits for the store more than it computes.
	defaultParallel    = 16
	defaultBackoffMax  = 10 * time.Second
	outputRecordRows   = 16 << 10 // rows of one record given to the fragment writer
	outputRecordBytes  = 32 << 20 // and its bytes, about
	maxMaxRows         = math.MaxInt32
	maxMaxBytes        = 1 << 30 // a column of one output record stays below 2 GiB
	triggerChecks      = 4       // backlog looks per interval
	minTriggerInterval = 50 * time.Millisecond
	stopLimit          = 10 * time.Second // for a publish that has begun when a stop is asked for
)

// Options are the components and settings of a Folder.
type Options struct {
	// Publisher owns the graph under a folder epoch; required.
	Publisher Publisher
	// Reclaim makes a new Publisher after an error that used the old one up; Run calls it, with backoff. It decides
	// whether this process may still try (a lease, say). nil = Run returns the error.
	Reclaim func(ctx context.Context) (Publisher, error)
	// Store and Root are where the graph's tables are; Store is required.
	Store objstore.Store
	Root  string
	// Lanes gives the reader of a lane's log; required. It may answer nil for a lane that has no owner yet.
	Lanes func(lane uint32) wal.Source

	// Index finds the rows of keys without a scan. nil = the key columns of every touched table are scanned in each fold.
	// It stays the caller's and must outlive the folder.
	Index *keyindex.Index
	// Opened are table versions that were read before, as by [Standby.Tables]: a hint that the heads judge.
	Opened map[heads.TableID]*lance.Table

	// Interval is the time between the starts of two folds when nothing asks for one earlier. Default 1 s.
	Interval time.Duration
	// AdoptInterval is the time between two looks for versions that other writers have committed; one LIST per table each. Default 1 min.
	AdoptInterval time.Duration
	// SuspendAfter is how long the rows of a suspended table wait in the log before they become dead letters; a cut ends before them meanwhile.
	// Default 30 s.
	SuspendAfter time.Duration
	// MaxRows and MaxBytes (in memory; the log may store less) bound a cut; what is above them waits for the next fold, which
	// then follows at once. They also start a fold before its time, MaxBytes as stored. Defaults 1,000,000 and 128 MiB; at most 1 GiB.
	MaxRows  int
	MaxBytes int64
	// Compact paces compactions.
	Compact CompactOptions
	// Parallel bounds the tables that are prepared at once, and the lanes that are read at once. Default 16.
	Parallel int

	// Decode reads the rows of dead letters, to replay them; required for that. An error is a fault of the table's definition, not of a row.
	Decode func(t heads.Table, rows []JSONRow) (DecodedRows, error)

	// Notify tells the world of a publish or an adoption: waiters, events. Its context does not end with a stop request, so it must not
	// block for long. nil = nobody is told.
	Notify func(ctx context.Context, p *publisher.Published)

	// Logger, Meter and Tracer: nil discards.
	Logger *slog.Logger
	Meter  metric.Meter
	Tracer trace.Tracer
	// Clock is the wall clock of dead letters, lag, trace times and adoptions. Default time.Now.
	Clock func() time.Time
	// Memory is where output columns are allocated. Default memory.DefaultAllocator.
	Memory memory.Allocator
	// Step is called at "cut", "prepared", "published" and "notified"; a test kills the process in it. nil = none.
	Step func(step string)
}

// EnsureDefaults fills every zero field that has a default.
func (o *Options) EnsureDefaults() {
	options.Default(&o.Interval, defaultInterval)
	options.Default(&o.AdoptInterval, defaultAdopt)
	options.Default(&o.SuspendAfter, defaultSuspend)
	options.Default(&o.MaxRows, defaultMaxRows)
	options.Default(&o.MaxBytes, defaultMaxBytes)
	options.Default(&o.Parallel, defaultParallel)
	o.Compact.ensureDefaults()
	if o.Decode == nil {
		o.Decode = func(heads.Table, []JSONRow) (DecodedRows, error) {
			return DecodedRows{}, fmt.Errorf("%w: no Decode, so dead letters cannot be read", ErrInvalid)
		}
	}
	if o.Notify == nil {
		o.Notify = func(context.Context, *publisher.Published) {}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Tracer == nil {
		o.Tracer = tracenoop.NewTracerProvider().Tracer("")
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Memory == nil {
		o.Memory = memory.DefaultAllocator
	}
	if o.Step == nil {
		o.Step = func(string) {}
	}
}

// Validate reports all faults of the options together.
func (o *Options) Validate() error {
	c := &options.Check{What: "fold: options", Class: ErrInvalid}
	c.That(o.Publisher != nil, "Publisher is required")
	c.That(o.Store != nil, "Store is required")
	c.That(o.Lanes != nil, "Lanes is required")
	c.That(o.Interval > 0, "Interval must be positive")
	c.That(o.AdoptInterval > 0, "AdoptInterval must be positive")
	c.That(o.SuspendAfter > 0, "SuspendAfter must be positive")
	c.That(o.MaxRows > 0 && o.MaxRows <= maxMaxRows, "MaxRows must be positive and fit in 31 bits")
	c.That(o.MaxBytes > 0 && o.MaxBytes <= maxMaxBytes, "MaxBytes must be positive and at most 1 GiB")
	c.That(o.Parallel > 0, "Parallel must be positive")
	o.Compact.validate(c)
	return c.Err()
}
