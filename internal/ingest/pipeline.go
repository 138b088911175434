package ingest

import (
	"context"
	"errors"
	"sync"

	"github.com/foldline/foldline/internal/envelope"
	"github.com/foldline/foldline/internal/envelope/rows"
	"github.com/foldline/foldline/wal"
)

// pump moves requests from the intake to the log until ctx ends, and then what is left. Chunks are decoded on all cores
// and submitted in the order of their arrival.
func (in *Ingester) pump(ctx, work context.Context, k *intake) {
	// order cannot be full: a chunk holds at least one message, and the flight bounds those.
	order := make(chan *chunk, in.o.MaxInFlightMessages)
	spare := make(chan *chunk, in.o.MaxInFlightMessages)
	var stages sync.WaitGroup
	for range in.o.Decoders {
		stages.Go(func() { in.decodeAll(work, spare) })
	}
	stages.Go(func() { in.submitAll(work, order) })
	hand := func(c *chunk) {
		// An idle submitter decodes the chunk itself, which saves waking another goroutine.
		if in.submitting.Load() || len(order) > 0 {
			select {
			case spare <- c:
			default: // full of chunks that are already claimed
			}
		}
		order <- c
	}
	for c := in.next(ctx, k); c != nil; c = in.next(ctx, k) {
		hand(c)
	}
	if err := k.drain(in.o.Conn, in.o.DrainTimeout); err != nil {
		in.o.Logger.Warn("subscriptions were not drained; producers without an answer will retry", "error", err)
	}
	stopped, stop := context.WithCancel(ctx)
	stop()
	for c := in.next(stopped, k); c != nil; c = in.next(stopped, k) {
		hand(c)
	}
	close(spare)
	close(order)
	stages.Wait()
}

// decodeAll decodes chunks that nobody has claimed yet.
func (in *Ingester) decodeAll(ctx context.Context, spare <-chan *chunk) {
	d := rows.NewDecoder(in.o.Allocator, in.o.Limits)
	defer d.Close()
	for c := range spare {
		in.decodeChunk(ctx, d, c)
	}
}

// decodeChunk decodes a chunk unless another goroutine has it.
func (in *Ingester) decodeChunk(ctx context.Context, d *rows.Decoder, c *chunk) {
	if !c.claimed.CompareAndSwap(false, true) {
		return
	}
	defer close(c.ready)
	for _, r := range c.requests {
		in.decode(ctx, d, r)
	}
}

// submitAll appends to the log in the order of arrival.
func (in *Ingester) submitAll(ctx context.Context, order <-chan *chunk) {
	d := rows.NewDecoder(in.o.Allocator, in.o.Limits)
	defer d.Close()
	for c := range order {
		in.submitting.Store(true)
		in.decodeChunk(ctx, d, c)
		<-c.ready
		for _, r := range c.requests {
			in.submit(ctx, r)
		}
		in.submitting.Store(false)
	}
}

// submit hands a decoded request to the log. Its answer comes from the log's callback, after the sync (W1).
func (in *Ingester) submit(ctx context.Context, r *request) {
	if r.refusal != nil {
		in.replies.add(r)
		return
	}
	err := in.o.Log.Append(ctx, r.entry, func(receipt wal.Receipt, err error) {
		in.settle(r, receipt, err)
		in.replies.add(r)
	})
	// The log keeps what it needs.
	r.release()
	r.entry.Rows = nil
	if err != nil {
		r.refusal = logRefusal(err)
		if errors.Is(err, wal.ErrFault) {
			// Refused at the door, so nothing of it is in the failed log; a restart takes it.
			r.refusal.Class, r.refusal.Code, r.refusal.RetryAfter = envelope.ClassBusy, envelope.CodeNotReady, notReadyRetryAfter
		}
		in.replies.add(r)
	}
}

// settle notes the log's answer.
func (in *Ingester) settle(r *request, receipt wal.Receipt, err error) {
	if err != nil {
		r.refusal = logRefusal(err)
		return
	}
	r.receipt = envelope.Receipt{
		Graph: in.o.Graph, Lane: receipt.Lane, Incarnation: receipt.Incarnation, Epoch: uint64(receipt.Epoch),
		Seq: uint64(receipt.Seq), Rows: receipt.Rows, Dropped: r.dropped, Duplicate: receipt.Duplicate,
		DedupeSince: receipt.DedupeSince, State: envelope.StateDurable,
	}
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
	case errors.Is(err, wal.ErrNotReady), errors.Is(err, wal.ErrClosed):
		e.Class, e.Code, e.RetryAfter = envelope.ClassBusy, envelope.CodeNotReady, notReadyRetryAfter
	case errors.Is(err, wal.ErrFenced):
		e.Class, e.Code = envelope.ClassFenced, envelope.CodeFenced
	default:
		e.Class, e.Code = envelope.ClassUnknown, envelope.CodeUnknownOutcome
	}
	return e
}
