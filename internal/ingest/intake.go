package ingest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/trace"

	"github.com/foldline/foldline/internal/envelope"
	"github.com/foldline/foldline/internal/envelope/rows"
	"github.com/foldline/foldline/wal"
)

const (
	// arrivalBuffer is how many messages the connection may be ahead of the intake, which only counts and hands
	// on. The NATS client drops what does not fit, unanswered; its producers then retry.
	arrivalBuffer = 1 << 16
	// busyRetryAfter is what a producer is told when the ingester's own bounds are reached: several syncs.
	busyRetryAfter = 20 * time.Millisecond
)

// request is one message on its way through the ingester.
type request struct {
	msg     *nats.Msg
	arrived time.Time
	size    int64
	table   string // of the subject, "" when the lines name theirs
	visible time.Duration
	span    trace.Span // nil when the message carries no sampled trace

	entry   wal.Entry // while it is decoded
	added   rows.Added
	lines   []uint32        // of a visible ack: the producer's line of each row as the fold numbers them, nil when they are the same
	refusal *envelope.Error // instead of the entry
	asked   bool            // the log is asked whether the message id is known before the refusal is sent
	receipt envelope.Receipt
	chunk   *chunk // that the request lives in; nil when it lives alone
}

// intake is the ingester's subscriptions, which share one channel so that the order in which messages reach the
// connection is the order in which they are taken.
type intake struct {
	arrivals chan *nats.Msg
	subs     []*nats.Subscription
}

// subscribe takes the graph's write subjects as one of the lane owners, and the lane's own.
func (in *Ingester) subscribe() (*intake, error) {
	k := &intake{arrivals: make(chan *nats.Msg, arrivalBuffer)}
	s, lane := in.subjects, in.o.Lane
	laneQueue := s.WriteQueue() + "." + strconv.FormatUint(uint64(lane), 10)
	for _, want := range []struct{ subject, queue string }{
		{s.Write(), s.WriteQueue()},
		{s.WriteTables(), s.WriteQueue()},
		{s.LaneWrite(lane), laneQueue},
		{s.LaneWriteTables(lane), laneQueue},
	} {
		sub, err := in.o.Conn.ChanQueueSubscribe(want.subject, want.queue, k.arrivals)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("ingest: subscribe %s: %w", want.subject, err), k.close())
		}
		k.subs = append(k.subs, sub)
	}
	// After the round trip the server knows the subscriptions, so that Ready means it.
	if err := flush(in.o.Conn, in.o.DrainTimeout, false); err != nil {
		return nil, errors.Join(fmt.Errorf("ingest: subscribe: %w", err), k.close())
	}
	return k, nil
}

// close ends the subscriptions at once.
func (k *intake) close() error {
	var all error
	for _, sub := range k.subs {
		if err := sub.Unsubscribe(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
			all = errors.Join(all, err)
		}
	}
	return all
}

// drain tells the server to send no more. After it every message that the server had sent is in arrivals.
func (k *intake) drain(conn *nats.Conn, limit time.Duration) error {
	for _, sub := range k.subs {
		if err := sub.Drain(); err != nil {
			return err
		}
	}
	return flush(conn, limit, true)
}

// take admits a message and adds it to the chunk, or answers busy.
func (in *Ingester) take(msg *nats.Msg, now time.Time, c *chunk) {
	size := int64(len(msg.Data))
	if !in.flight.take(size) {
		in.metrics.refused(envelope.ClassBusy, envelope.CodeOverloaded)
		in.respond(msg, &envelope.Error{
			Class: envelope.ClassBusy, Code: envelope.CodeOverloaded, Row: envelope.NoRow,
			Reason: "as many messages or bytes are in flight as the ingester may hold", RetryAfter: busyRetryAfter,
		})
		return
	}
	c.requests = append(c.requests, request{msg: msg, arrived: now, size: size, chunk: c})
	c.bytes += size
}

// next collects a chunk: what has arrived, at least one message. It is nil when ctx ended and nothing is left.
func (in *Ingester) next(ctx context.Context, k *intake) *chunk {
	for {
		var c *chunk
		select {
		case msg := <-k.arrivals:
			c = in.fill(k, msg)
		default:
			select {
			case msg := <-k.arrivals:
				c = in.fill(k, msg)
			case <-ctx.Done():
				return nil
			}
		}
		// The submitter is a user too, and the only one of a chunk whose messages were all refused for their number.
		c.users.Store(int64(len(c.requests)) + 1)
		if len(c.requests) > 0 {
			return c
		}
		in.leave(c)
	}
}

// fill makes a chunk of a message and what has arrived behind it, up to the chunk's bounds.
func (in *Ingester) fill(k *intake, msg *nats.Msg) *chunk {
	now, c := time.Now(), in.newChunk(min(1+len(k.arrivals), chunkMessages))
	in.take(msg, now, c)
	for n := 1; n < chunkMessages && c.bytes < chunkBytes; n++ {
		select {
		case msg = <-k.arrivals:
			in.take(msg, now, c)
		default:
			return c
		}
	}
	return c
}
