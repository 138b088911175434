package wal

import (
	"context"
	"iter"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/nats-io/nats.go"
)

const maxGraphBytes = 256

// Log is the durable log of one lane, owned by one process at a time.
type Log struct{}

// Open opens or creates the log in opts.Dir, replays what a crash left, and
// mints the incarnation of an empty directory. It fails with [ErrLocked]
// (naming the holder), [ErrFormat], [ErrIdentity] or [ErrCorrupt].
func Open(ctx context.Context, opts Options) (*Log, error) { panic("pending") }

// Incarnation is the ULID minted when the directory was created.
func (l *Log) Incarnation() string { panic("pending") }

// Begin admits entries under an epoch that the caller has claimed for the
// lane. The epoch must be above every one the log has used: [ErrFenced].
func (l *Log) Begin(epoch Epoch) error { panic("pending") }

// Run commits what is appended until ctx ends: one Pebble batch and one sync
// for all that has arrived. On a clean stop everything appended is synced and
// answered, and it returns nil; a failed log returns [ErrFault] with the cause.
func (l *Log) Run(ctx context.Context) error { panic("pending") }

// Append hands over an entry and returns at once. It retains the records it
// keeps; the caller may release its own references after the call.
// When Append returns nil, done is called exactly once, from the log's own
// goroutine, after the sync: it must not block. When Append returns an error
// ([ErrInvalid], [ErrTooLarge], [ErrUnsupported], [ErrBusy], [ErrNotReady]),
// done is never called and nothing is durable. done's error is
// [ErrMsgIDReused], [ErrUnknownOutcome] or [ErrNotReady].
func (l *Log) Append(ctx context.Context, e Entry, done func(Receipt, error)) error {
	panic("pending")
}

// Release removes all entries up to and including through, a value boundary
// that is at most the synced-through mark. Repeating it is harmless.
func (l *Log) Release(ctx context.Context, through Seq) error { panic("pending") }

// Status implements [Source].
func (l *Log) Status(ctx context.Context) (Status, error) { panic("pending") }

// Read implements [Source].
func (l *Log) Read(ctx context.Context, req ReadRequest) iter.Seq2[*Batch, error] { panic("pending") }

// Close ends the log. Run must have returned.
func (l *Log) Close() error { panic("pending") }

// SchemaIDOf gives the id under which the log stores a schema. Schemas with
// equal fields, types, nullability and metadata have equal ids.
func SchemaIDOf(s *arrow.Schema) (SchemaID, error) { panic("pending") }

// ReadSubjects are the subjects of a lane's readers.
type ReadSubjects struct{ Read, Status string }

// LaneSubjects gives `<prefix>.<graph>.lane.<n>.read` and `….status`.
func LaneSubjects(prefix, graph string, lane uint32) ReadSubjects { panic("pending") }

// Serve answers remote readers of l until ctx ends.
func Serve(ctx context.Context, nc *nats.Conn, subjects ReadSubjects, l *Log) error {
	panic("pending")
}

// Remote reads a lane's log over NATS.
type Remote struct{}

// RemoteOptions tune a [Remote]; the zero value means defaults.
type RemoteOptions struct{}

// NewRemote makes a reader of the lane at subjects.
func NewRemote(nc *nats.Conn, subjects ReadSubjects, opts RemoteOptions) *Remote { panic("pending") }

// Status implements [Source].
func (r *Remote) Status(ctx context.Context) (Status, error) { panic("pending") }

// Read implements [Source].
func (r *Remote) Read(ctx context.Context, req ReadRequest) iter.Seq2[*Batch, error] {
	panic("pending")
}

var (
	_ Source = (*Log)(nil)
	_ Source = (*Remote)(nil)
)
