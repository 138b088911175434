package wal

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// pending is an entry between its append and its answer.
type pending struct {
	entry   Entry
	schemas []*schemaState  // of each item of entry.Rows
	one     [1]*schemaState // room for schemas of an entry with one item
	rows    int
	bytes   int64
	call    *appendCall
	at      int  // index in the call
	held    bool // the records are retained
}

// appendCall is one call of AppendAll: its entries live in one allocation and are
// answered together as far as they were synced together.
type appendCall struct {
	done    func(first int, results []Result)
	results []Result // by entry
}

func (p *pending) result() *Result { return &p.call.results[p.at] }

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

// answerAll tells the waiters of entries in order what their results are, in runs of
// one call.
func answerAll(waiting []*pending) {
	for len(waiting) > 0 {
		first, n := waiting[0], 1
		for n < len(waiting) && waiting[n].call == first.call && waiting[n].at == first.at+n {
			n++
		}
		first.call.done(first.at, first.call.results[first.at:first.at+n])
		waiting = waiting[n:]
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
		bytes := int64(0)
		for _, p := range batch {
			p.release()
			*p.result() = Result{Err: err}
			bytes += p.bytes
		}
		q.leave(len(batch), bytes)
		answerAll(batch)
	}
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
	_, err := l.AppendAll(ctx, []Entry{e}, func(_ int, r []Result) { done(r[0].Receipt, r[0].Err) })
	return err
}

// AppendAll is Append for entries that follow each other in the log, at the cost
// of one hand-over. It takes the first n of them; err is why it did not take the
// next one, which is not durable then, and those behind it were not looked at.
// done is called from the log's own goroutine for each entry taken, exactly once,
// with the results of entries first, first+1, …; the slice stays valid, and the
// calls come in the order of the entries.
func (l *Log) AppendAll(ctx context.Context, entries []Entry, done func(first int, results []Result)) (n int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	call := &appendCall{done: done, results: make([]Result, len(entries))}
	all := make([]pending, len(entries))
	for ; n < len(entries) && err == nil; n++ {
		all[n].call, all[n].at = call, n
		err = l.prepare(&all[n], entries[n])
	}
	if err != nil {
		n--
	}
	n, refused := l.enqueue(all[:n])
	if refused != nil {
		err = refused
	}
	if n > 0 {
		select {
		case l.queue.wake <- struct{}{}:
		default:
		}
	}
	return n, err
}

// prepare checks an entry and measures it.
func (l *Log) prepare(p *pending, e Entry) error {
	if len(e.MsgID) > MaxMsgIDBytes || len(e.Trace) > MaxTraceBytes {
		return fmt.Errorf("wal: message id of %d and trace of %d bytes: %w", len(e.MsgID), len(e.Trace), ErrTooLarge)
	}
	p.entry, p.bytes = e, entryOverhead+int64(2*len(e.MsgID)+len(e.Trace))
	p.schemas = p.one[:]
	if len(e.Rows) != 1 {
		p.schemas = make([]*schemaState, len(e.Rows))
	}
	for i := range e.Rows {
		if err := l.prepareRows(p, i); err != nil {
			return err
		}
	}
	switch {
	case p.rows == 0:
		return wrapf(ErrInvalid, "wal: entry without rows")
	case p.rows > maxRows:
		return wrapf(ErrTooLarge, "wal: entry of %d rows, at most %d", p.rows, maxRows)
	case p.bytes > MaxEntryBytes:
		return wrapf(ErrTooLarge, "wal: entry of %d bytes, at most %d", p.bytes, int64(MaxEntryBytes))
	}
	return nil
}

func (l *Log) prepareRows(p *pending, i int) error {
	rows := &p.entry.Rows[i]
	if rows.Record == nil || rows.First < 0 || rows.Count < 0 || rows.count() <= 0 {
		return wrapf(ErrInvalid, "wal: table %d without rows", rows.Table)
	}
	if all := rows.Record.NumRows(); int64(rows.First) > all-int64(rows.count()) {
		return wrapf(ErrInvalid, "wal: table %d: %d rows from %d of a record of %d", rows.Table, rows.count(), rows.First, all)
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
	size, err := measureRecord(schema.shapes, rows.Record, rows.First, rows.count())
	if err != nil {
		return err
	}
	p.schemas[i] = schema
	p.rows += rows.count()
	p.bytes += size
	return nil
}

// enqueue admits prepared entries up to the first that it refuses, and says why.
func (l *Log) enqueue(all []pending) (n int, err error) {
	if len(all) == 0 {
		return 0, nil
	}
	if err := l.fault.storage(); err != nil {
		return 0, l.busy("storage", retryDisk)
	}
	if l.space.isLow(l.opts.Clock()) {
		return 0, l.busy("free space", retryDisk)
	}
	q, unreleased := &l.queue, l.unreleasedBytes()
	q.mu.Lock()
	defer q.mu.Unlock()
	for ; n < len(all); n++ {
		p := &all[n]
		if err := l.admitLocked(p, unreleased); err != nil {
			return n, err
		}
		for i := range p.entry.Rows {
			p.entry.Rows[i].Record.Retain()
		}
		p.held = true
		q.entries++
		q.bytes += p.bytes
		q.waiting = append(q.waiting, p)
	}
	return n, nil
}

func (l *Log) admitLocked(p *pending, unreleased int64) error {
	q := &l.queue
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
	return nil
}

func (l *Log) busy(reason string, after time.Duration) error {
	l.metrics.pushedBack(reason)
	return &BusyError{Reason: reason, RetryAfter: after}
}
