package wal

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// pending is an entry between Append and its answer.
type pending struct {
	entry   Entry
	schemas []*schemaState // of each item of entry.Rows
	rows    int
	bytes   int64
	done    func(Receipt, error)
	receipt Receipt
	err     error
	held    bool // the records are retained
}

// release gives the entry's records back, once.
func (p *pending) release() {
	if !p.held {
		return
	}
	p.held = false
	for i := range p.entry.Rows {
		p.entry.Rows[i].Record.Release()
	}
}

// queue is what has been appended and not yet taken by the committer, and the
// bounds of everything in flight.
type queue struct {
	wake chan struct{} // capacity 1

	// mu guards the rest, and the epoch while it begins.
	mu      sync.Mutex
	waiting []*pending
	entries int   // in flight, taken ones included
	bytes   int64 // in flight, taken ones included
	stopped bool
}

func (q *queue) load() (entries int, bytes int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.entries, q.bytes
}

// take gives what is waiting, at most limit bytes of it but at least one.
func (q *queue) take(limit int64, into []*pending) []*pending {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, bytes := 0, int64(0)
	for n < len(q.waiting) && (n == 0 || bytes+q.waiting[n].bytes <= limit) {
		bytes += q.waiting[n].bytes
		n++
	}
	into = append(into, q.waiting[:n]...)
	rest := copy(q.waiting, q.waiting[n:])
	clear(q.waiting[rest:])
	q.waiting = q.waiting[:rest]
	return into
}

// leave takes answered entries out of the bounds.
func (q *queue) leave(entries int, bytes int64) {
	q.mu.Lock()
	q.entries -= entries
	q.bytes -= bytes
	q.mu.Unlock()
}

// stop ends intake.
func (q *queue) stop() {
	q.mu.Lock()
	q.stopped = true
	q.mu.Unlock()
}

// refuse answers all that is waiting with err: nothing of it was written.
func (q *queue) refuse(err error) {
	for {
		batch := q.take(1<<62, nil)
		if len(batch) == 0 {
			return
		}
		for _, p := range batch {
			q.answer(p, Receipt{}, err)
		}
	}
}

func (q *queue) answer(p *pending, r Receipt, err error) {
	p.release()
	q.leave(1, p.bytes)
	p.done(r, err)
}

const (
	retryInFlight = 5 * time.Millisecond
	retryDisk     = 500 * time.Millisecond
	// entryOverhead is what an entry costs beside its columns and strings.
	entryOverhead = 64
)

// Append hands over an entry and returns at once. It retains the records it
// keeps; the caller may release its own references after the call, and must not
// change the entry's slices.
// When Append returns nil, done is called exactly once, from the log's own
// goroutine, after the sync: it must not block. When Append returns an error
// ([ErrInvalid], [ErrTooLarge], [ErrUnsupported], [ErrBusy], [ErrNotReady],
// [ErrFault], [ErrClosed]), done is never called and nothing is durable.
// done's error is [ErrMsgIDReused], [ErrUnknownOutcome], [ErrNotReady] or
// [ErrFault]; only the unknown outcome may be durable.
func (l *Log) Append(ctx context.Context, e Entry, done func(Receipt, error)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p, err := l.prepare(e)
	if err != nil {
		return err
	}
	p.done = done
	if err := l.enqueue(p); err != nil {
		return err
	}
	select {
	case l.queue.wake <- struct{}{}:
	default:
	}
	return nil
}

// prepare checks an entry and measures it.
func (l *Log) prepare(e Entry) (*pending, error) {
	if len(e.MsgID) > MaxMsgIDBytes || len(e.Trace) > MaxTraceBytes {
		return nil, fmt.Errorf("wal: message id of %d and trace of %d bytes: %w", len(e.MsgID), len(e.Trace), ErrTooLarge)
	}
	p := &pending{entry: e, bytes: entryOverhead + int64(2*len(e.MsgID)+len(e.Trace))}
	p.schemas = make([]*schemaState, len(e.Rows))
	for i := range e.Rows {
		if err := l.prepareRows(p, i); err != nil {
			return nil, err
		}
	}
	switch {
	case p.rows == 0:
		return nil, wrapf(ErrInvalid, "wal: entry without rows")
	case p.rows > maxRows:
		return nil, wrapf(ErrTooLarge, "wal: entry of %d rows, at most %d", p.rows, maxRows)
	case p.bytes > MaxEntryBytes:
		return nil, wrapf(ErrTooLarge, "wal: entry of %d bytes, at most %d", p.bytes, int64(MaxEntryBytes))
	}
	return p, nil
}

func (l *Log) prepareRows(p *pending, i int) error {
	rows := &p.entry.Rows[i]
	if rows.Record == nil || rows.Record.NumRows() == 0 {
		return wrapf(ErrInvalid, "wal: table %d without rows", rows.Table)
	}
	if err := checkOps(rows); err != nil {
		return err
	}
	schema, err := l.schemas.of(rows.Record.Schema())
	if err != nil {
		return err
	}
	for j := range i {
		if p.entry.Rows[j].Table == rows.Table && p.schemas[j] != schema {
			return wrapf(ErrInvalid, "wal: table %d with two schemas in one entry", rows.Table)
		}
	}
	size, err := measureRecord(schema.shapes, rows.Record)
	if err != nil {
		return err
	}
	p.schemas[i] = schema
	p.rows += int(rows.Record.NumRows())
	p.bytes += size
	return nil
}

// enqueue admits a prepared entry, or says why not.
func (l *Log) enqueue(p *pending) error {
	if err := l.fault.storage(); err != nil {
		return l.busy("storage", retryDisk)
	}
	if l.space.isLow(l.opts.Clock()) {
		return l.busy("free space", retryDisk)
	}
	q, unreleased := &l.queue, l.unreleasedBytes()
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case l.closed.Load():
		return ErrClosed
	case l.fault.get() != nil:
		return l.fault.get()
	case q.stopped || l.epoch.Load() == 0:
		return ErrNotReady
	case q.entries+1 > l.opts.MaxInFlightEntries:
		return l.busy("entries in flight", retryInFlight)
	case q.entries > 0 && q.bytes+p.bytes > l.opts.MaxInFlightBytes:
		return l.busy("bytes in flight", retryInFlight)
	case unreleased+q.bytes+p.bytes > l.opts.MaxBytes:
		return l.busy("unreleased bytes", retryDisk)
	}
	for i := range p.entry.Rows {
		p.entry.Rows[i].Record.Retain()
	}
	p.held = true
	q.entries++
	q.bytes += p.bytes
	q.waiting = append(q.waiting, p)
	return nil
}

func (l *Log) busy(reason string, after time.Duration) error {
	l.metrics.pushedBack(reason)
	return &BusyError{Reason: reason, RetryAfter: after}
}
