package client

import (
	"context"

	"github.com/nats-io/nats.go"

	"github.com/foldline/foldline/internal/envelope"
)

// Receipt is the ack of one message.
type Receipt = envelope.Receipt

// Error is a refusal; match its class with errors.Is and the sentinels of this package.
type Error = envelope.Error

// Op is the operation of a row.
type Op = envelope.Op

// Operations of a Row.
const (
	OpUpsert = envelope.OpUpsert
	OpInsert = envelope.OpInsert
	OpDelete = envelope.OpDelete
)

// Row is one row of a message over several tables.
type Row struct {
	Table string
	Op    Op
	// Value is the row: json.RawMessage is taken as it is, anything else goes through encoding/json.
	Value any
}

// Client writes to one graph. Make it with New.
type Client struct{}

// New makes a client of a graph on a connection that stays the caller's.
func New(nc *nats.Conn, graph string, options ...Option) (*Client, error) { panic("pending") }

// Upsert writes rows of one table as one message: each replaces the row of its key or adds it.
func (c *Client) Upsert(ctx context.Context, table string, rows ...any) (Receipt, error) {
	panic("pending")
}

// Insert writes rows of one table as one message; a row whose key exists goes to the dead letters.
func (c *Client) Insert(ctx context.Context, table string, rows ...any) (Receipt, error) {
	panic("pending")
}

// Delete removes the keys of rows of one table as one message; members beside the key are ignored.
func (c *Client) Delete(ctx context.Context, table string, rows ...any) (Receipt, error) {
	panic("pending")
}

// Write writes rows of one or more tables as one message: all of them are in one publish, or none.
func (c *Client) Write(ctx context.Context, rows ...Row) (Receipt, error) { panic("pending") }

// WriteAsync is Write without waiting for the ack. It blocks while the bound of outstanding messages is reached.
func (c *Client) WriteAsync(ctx context.Context, rows ...Row) (*Pending, error) { panic("pending") }

// SendAsync is WriteAsync for rows of one table, with the smaller messages of the table's own subject.
func (c *Client) SendAsync(ctx context.Context, table string, op Op, rows ...any) (*Pending, error) {
	panic("pending")
}

// Pending is a message on its way.
type Pending struct{}

// Done is closed when the outcome is known.
func (p *Pending) Done() <-chan struct{} { panic("pending") }

// Receipt waits for the outcome.
func (p *Pending) Receipt(ctx context.Context) (Receipt, error) { panic("pending") }

// Flush waits until every message sent before has its outcome. It does not tell the outcomes.
func (c *Client) Flush(ctx context.Context) error { panic("pending") }

// WaitVisible waits until published heads cover the receipts.
func (c *Client) WaitVisible(ctx context.Context, receipts ...Receipt) error { panic("pending") }

// Close waits for outstanding messages and stops the client. Later calls fail. Safe to call twice.
func (c *Client) Close(ctx context.Context) error { panic("pending") }
