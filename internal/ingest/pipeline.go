package ingest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/foldline/foldline/internal/envelope"
	"github.com/foldline/foldline/internal/envelope/rows"
	"github.com/foldline/foldline/wal"
)

// pump moves requests from the intake to the log until ctx ends, and then what is left. Chunks are decoded on all cores
// and submitted in the order of their arrival.
func (in *Ingester) pump(ctx, work context.Context, k *intake) {
	p := &pump{in: in, own: rows.NewDecoder(in.o.Allocator, in.o.Limits), spare: make(chan *chunk, in.o.MaxInFlightMessages)}
	defer p.own.Close()
	var helpers sync.WaitGroup
	for range in.o.Decoders {
		helpers.Go(func() { p.help(work) })
	}
	for c := in.next(ctx, k); c != nil; c = in.next(ctx, k) {
		p.move(work, c, len(k.arrivals) > 0)
	}
	if err := k.drain(in.o.Conn, in.o.DrainTimeout); err != nil {
		in.o.Logger.Warn("subscriptions were not drained; producers without an answer will retry", "error", err)
	}
	stopped, stop := context.WithCancel(ctx)
	stop()
	for c := in.next(stopped, k); c != nil; c = in.next(stopped, k) {
		p.move(work, c, false)
	}
	close(p.spare)
	helpers.Wait()
}

// pump is the state of Ingester.pump.
type pump struct {
	in    *Ingester
	order order
	own   *rows.Decoder
	// spare holds chunks for the helpers. It cannot be full: a chunk holds at least one message, and the flight
	// bounds those.
	spare  chan *chunk
	handed atomic.Int64 // chunks that helpers have and are not through with
}

// move decodes a chunk here, which saves waking another goroutine, or hands it to a helper: when more has arrived and a
// helper is idle, or when decoding may have to wait for a look at the heads, which must not hold the intake up.
func (p *pump) move(ctx context.Context, c *chunk, more bool) {
	p.order.add(c)
	if !p.in.atHand(c) || more && p.handed.Load() < int64(p.in.o.Decoders) {
		p.handed.Add(1)
		p.spare <- c
		return
	}
	p.finish(ctx, p.own, c)
}

// help decodes what the pump hands over.
func (p *pump) help(ctx context.Context) {
	d := rows.NewDecoder(p.in.o.Allocator, p.in.o.Limits)
	defer d.Close()
	for c := range p.spare {
		p.finish(ctx, d, c)
		p.handed.Add(-1)
	}
}

// finish decodes a chunk and submits what is due.
func (p *pump) finish(ctx context.Context, d *rows.Decoder, c *chunk) {
	p.in.decodeChunk(ctx, d, c)
	p.order.decoded(c, func(c *chunk) { p.in.submit(ctx, c) })
}

// order keeps chunks in the order of their arrival, whoever decodes them. Whoever makes the first one ready submits.
type order struct {
	mu         sync.Mutex
	chunks     []*chunk
	submitting bool
}

func (o *order) add(c *chunk) {
	o.mu.Lock()
	o.chunks = append(o.chunks, c)
	o.mu.Unlock()
}

// decoded marks a chunk and submits the decoded chunks at the head, one at a time, unless another goroutine is at it,
// which then submits this one too.
func (o *order) decoded(c *chunk, submit func(*chunk)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c.decoded = true
	if o.submitting {
		return
	}
	o.submitting = true
	for len(o.chunks) > 0 && o.chunks[0].decoded {
		head := o.chunks[0]
		o.chunks[0] = nil
		o.chunks = o.chunks[1:]
		o.mu.Unlock()
		submit(head)
		o.mu.Lock()
	}
	o.submitting = false
}

// submit hands a chunk's entries to the log. Their answers come from the log's callback, after the sync (W1).
func (in *Ingester) submit(ctx context.Context, c *chunk) {
	for i := range c.requests {
		if r := &c.requests[i]; r.refusal != nil && !r.asked {
			in.replies.add(r)
		}
	}
	for entries, owners := c.entries, c.owners; len(entries) > 0; {
		taken := owners
		n, err := in.o.Log.AppendAll(ctx, entries, func(first int, results []wal.Result) {
			in.settle(taken[first:first+len(results)], results)
		})
		if errors.Is(err, wal.ErrSealed) {
			if !in.refuseSealed(&entries[n], owners[n]) {
				n++
			}
		} else if err != nil {
			// What is wrong with one entry is not with the next; what is wrong with the log is.
			end := len(entries)
			if isEntrys(err) {
				end = n + 1
			}
			in.refuseAll(owners[n:end], err)
			n = end
		}
		entries, owners = entries[n:], owners[n:]
	}
	// The log keeps what it needs.
	c.batch.Release()
	in.leave(c)
}

// isEntrys tells whether the log refused an entry for its own sake.
func isEntrys(err error) bool {
	return errors.Is(err, wal.ErrInvalid) || errors.Is(err, wal.ErrTooLarge) || errors.Is(err, wal.ErrUnsupported)
}

// refuseAll answers requests that the log did not take.
func (in *Ingester) refuseAll(requests []*request, err error) {
	for _, r := range requests {
		r.refusal = logRefusal(err)
		if errors.Is(err, wal.ErrFault) {
			// Refused at the door, so nothing of it is in the failed log; a restart takes it.
			r.refusal.Class, r.refusal.Code, r.refusal.RetryAfter = envelope.ClassBusy, envelope.CodeNotReady, notReadyRetryAfter
		}
	}
	in.replies.add(requests...)
}

// settle notes the log's answers and queues the replies.
func (in *Ingester) settle(requests []*request, results []wal.Result) {
	for i, r := range requests {
		receipt := &results[i].Receipt
		if err := results[i].Err; err != nil {
			if !r.asked || !errors.Is(err, wal.ErrUnknownMsgID) {
				r.refusal = logRefusal(err)
			}
			continue
		}
		r.refusal = nil
		r.receipt = envelope.Receipt{
			Graph: in.o.Graph, Lane: receipt.Lane, Incarnation: receipt.Incarnation, Epoch: uint64(receipt.Epoch),
			Seq: uint64(receipt.Seq), Rows: receipt.Rows, Dropped: r.added.Dropped, Duplicate: receipt.Duplicate,
			DedupeSince: receipt.DedupeSince, State: envelope.StateDurable,
		}
	}
	in.replies.add(requests...)
}

// logRefusal is the wire's word for an error of the log.
func logRefusal(err error) *envelope.Error {
	e := &envelope.Error{Row: envelope.NoRow, Reason: err.Error()}
	var busy *wal.BusyError
	switch {
	case errors.As(err, &busy):
		e.Class, e.Code, e.RetryAfter = envelope.ClassBusy, envelope.CodeOverloaded, busy.RetryAfter
	case errors.Is(err, wal.ErrMsgIDReused):
		e.Class, e.Code = envelope.ClassInvalid, envelope.CodeMsgIDReused
	case errors.Is(err, wal.ErrTooLarge):
		e.Class, e.Code = envelope.ClassInvalid, envelope.CodeTooLarge
	case errors.Is(err, wal.ErrInvalid), errors.Is(err, wal.ErrUnsupported):
		e.Class, e.Code = envelope.ClassInvalid, envelope.CodeBadValue
	case errors.Is(err, wal.ErrUnknownOutcome):
		e.Class, e.Code = envelope.ClassUnknown, envelope.CodeUnknownOutcome
	case errors.Is(err, wal.ErrSealed):
		return lanesChanging()
	case errors.Is(err, wal.ErrNotReady), errors.Is(err, wal.ErrClosed):
		e.Class, e.Code, e.RetryAfter = envelope.ClassBusy, envelope.CodeNotReady, notReadyRetryAfter
	case errors.Is(err, wal.ErrFenced):
		e.Class, e.Code = envelope.ClassFenced, envelope.CodeFenced
	default:
		e.Class, e.Code = envelope.ClassUnknown, envelope.CodeUnknownOutcome
	}
	return e
}
