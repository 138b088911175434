package client

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/semaphore"

	"github.com/foldline/foldline/internal/envelope"
)

// Op is the operation of a row.
type Op = envelope.Op

// Operations of a row.
const (
	OpUpsert = envelope.OpUpsert
	OpInsert = envelope.OpInsert
	OpDelete = envelope.OpDelete
)

// Row is one row of a message over several tables.
type Row struct {
	Table string
	Op    Op
	// Value is the row: json.RawMessage is taken as it is, anything else goes through encoding/json. It has to be an
	// object.
	Value any
}

// Receipt is the ack of one message.
type Receipt struct {
	envelope.Receipt
	// Parts are the receipts of all lanes when the message had to be split over several; the embedded one is then the
	// first of them. Nil for a message that went whole.
	Parts []envelope.Receipt
}

// all are the receipts of every lane.
func (r Receipt) all() []envelope.Receipt {
	if len(r.Parts) > 0 {
		return r.Parts
	}
	return []envelope.Receipt{r.Receipt}
}

// Client writes to one graph. Make it with New.
type Client struct {
	nc       *nats.Conn
	o        options
	subjects envelope.Subjects
	inbox    string // replies come to inbox + token
	replies  *nats.Subscription
	slots    chan struct{}
	bytes    *semaphore.Weighted
	counter  atomic.Uint64
	visible  *visibility

	mu sync.Mutex
	// outstanding are the messages without an outcome, by the token of their reply subject.
	outstanding map[string]*Pending
	closed      bool
	// known is, per lane, the time before which message ids are unknown after an accepted loss.
	known map[uint32]time.Time
}

// idSuffixBytes is the room that a counter and maxReroutes lanes need behind the prefix of an id.
const idSuffixBytes = 64

// New makes a client of a graph on a connection that stays the caller's.
func New(nc *nats.Conn, graph string, opts ...Option) (*Client, error) {
	o := defaults()
	for _, option := range opts {
		option(&o)
	}
	if o.idPrefix == "" {
		o.idPrefix = rand.Text()
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	subjects, err := envelope.NewSubjects(o.prefix, graph)
	if err != nil {
		return nil, err
	}
	c := &Client{
		nc: nc, o: o, subjects: subjects, inbox: nc.NewInbox() + ".", slots: make(chan struct{}, o.maxOutstanding),
		bytes: semaphore.NewWeighted(o.maxBytes), outstanding: map[string]*Pending{}, known: map[uint32]time.Time{},
	}
	c.visible = newVisibility(nc, subjects)
	if c.replies, err = nc.Subscribe(c.inbox+"*", c.onReply); err != nil {
		return nil, fmt.Errorf("client: subscribe to replies: %w", err)
	}
	return c, nil
}

// Upsert writes rows of one table as one message: each replaces the row of its key or adds it.
func (c *Client) Upsert(ctx context.Context, table string, rows ...any) (Receipt, error) {
	return c.send(ctx, table, OpUpsert, rows)
}

// Insert writes rows of one table as one message; a row whose key exists goes to the dead letters.
func (c *Client) Insert(ctx context.Context, table string, rows ...any) (Receipt, error) {
	return c.send(ctx, table, OpInsert, rows)
}

// Delete removes the keys of rows of one table as one message; members beside the key are ignored.
func (c *Client) Delete(ctx context.Context, table string, rows ...any) (Receipt, error) {
	return c.send(ctx, table, OpDelete, rows)
}

// Write writes rows of one or more tables as one message: all of them are in one publish, or none. A message with rows of
// several lanes is split, and is whole per lane only.
func (c *Client) Write(ctx context.Context, rows ...Row) (Receipt, error) {
	p, err := c.WriteAsync(ctx, rows...)
	if err != nil {
		return Receipt{}, err
	}
	return p.wait(ctx)
}

func (c *Client) send(ctx context.Context, table string, op Op, rows []any) (Receipt, error) {
	p, err := c.SendAsync(ctx, table, op, rows...)
	if err != nil {
		return Receipt{}, err
	}
	return p.wait(ctx)
}

// WriteAsync is Write without waiting for the ack. It blocks while the bound of outstanding messages is reached; ctx ends
// that wait and carries a trace, but does not end the message, which is tried for the time of WithRetryFor.
func (c *Client) WriteAsync(ctx context.Context, rows ...Row) (*Pending, error) {
	lines, err := encodeMixed(rows)
	if err != nil {
		return nil, err
	}
	return c.start(ctx, &Pending{lines: lines})
}

// SendAsync is WriteAsync for rows of one table, with the smaller messages of the table's own subject.
func (c *Client) SendAsync(ctx context.Context, table string, op Op, rows ...any) (*Pending, error) {
	lines, err := encodeRows(table, rows)
	if err != nil {
		return nil, err
	}
	return c.start(ctx, &Pending{lines: lines, table: table, op: op})
}

// start gives a message its id and sends it for the first time, on the caller's goroutine, so that one goroutine's
// messages leave in the order of its calls.
func (c *Client) start(ctx context.Context, p *Pending) (*Pending, error) {
	data := body(p.lines)
	if err := checkSize(p.table, p.lines, len(data), c.maxBody()); err != nil {
		return nil, err
	}
	if err := c.reserve(ctx, p, int64(len(data))); err != nil {
		return nil, err
	}
	p.c, p.done, p.began = c, make(chan struct{}), time.Now()
	p.token = strconv.FormatUint(c.counter.Add(1), 10)
	p.id = c.o.idPrefix + "-" + p.token
	p.msg = c.message(ctx, p, data)
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		c.unreserve(p)
		return nil, ErrClosed
	}
	c.outstanding[p.token] = p
	c.mu.Unlock()
	p.attempt()
	return p, nil
}

// headerRoom is what the headers of a message take of the server's payload limit: an id, an operation, a trace.
const headerRoom = 1 << 10

// defaultPayload is the limit of a server that does not set one. A connection knows its server's limit only after it was
// connected for the first time; a body above that limit is then refused at its publish.
const defaultPayload = 1 << 20

func (c *Client) maxBody() int64 {
	limit := c.nc.MaxPayload()
	if limit <= 0 {
		limit = defaultPayload
	}
	return limit - headerRoom
}

func (c *Client) reserve(ctx context.Context, p *Pending, size int64) error {
	p.reserved = min(size, c.o.maxBytes)
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := c.bytes.Acquire(ctx, p.reserved); err != nil {
		<-c.slots
		return err
	}
	return nil
}

func (c *Client) unreserve(p *Pending) {
	c.bytes.Release(p.reserved)
	<-c.slots
}

// Flush waits until every message sent before has its outcome. It does not tell the outcomes.
func (c *Client) Flush(ctx context.Context) error {
	c.mu.Lock()
	open := make([]*Pending, 0, len(c.outstanding))
	for _, p := range c.outstanding {
		open = append(open, p)
	}
	c.mu.Unlock()
	for _, p := range open {
		select {
		case <-p.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Close waits for outstanding messages and stops the client; those without an outcome when ctx ends are reported as
// unknown. Later calls fail. Safe to call twice.
func (c *Client) Close(ctx context.Context) error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	err := c.Flush(ctx)
	c.mu.Lock()
	left := make([]*Pending, 0, len(c.outstanding))
	for _, p := range c.outstanding {
		left = append(left, p)
	}
	c.mu.Unlock()
	for _, p := range left {
		p.giveUp(ErrClosed)
	}
	c.visible.close()
	// An error means that the connection is gone, or that this is the second Close.
	_ = c.replies.Unsubscribe()
	return err
}

// WaitVisible waits until published heads cover the receipts. It hears of publishes from the published event and, since
// an event can be lost, asks the lanes' owners from time to time.
func (c *Client) WaitVisible(ctx context.Context, receipts ...Receipt) error {
	for _, r := range receipts {
		for _, part := range r.all() {
			if err := c.visible.wait(ctx, part); err != nil {
				return err
			}
		}
	}
	return nil
}
