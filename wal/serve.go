package wal

import (
	"context"
	"iter"

	"github.com/nats-io/nats.go"
)

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
