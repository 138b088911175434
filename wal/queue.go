package wal

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
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

// appendCall is one call of AppendAll: its entries are answered together as far as
// they were synced together. It is used again when all are answered.
type appendCall struct {
	done    func(first int, results []Result)
	pending []pending // by entry
	results []Result  // by entry
	left    atomic.Int64
}

// newCall gives a call for n entries.
func (l *Log) newCall(n int, done func(first int, results []Result)) *appendCall {
	c, _ := l.calls.Get().(*appendCall)
	if c == nil {
		c = &appendCall{}
	}
	c.done = done
	c.pending = slices.Grow(c.pending[:0], n)[:n]
	c.results = slices.Grow(c.results[:0], n)[:n]
	return c
}

// leave counts n entries as answered and gives the call back after the last.
func (l *Log) leave(c *appendCall, n int) {
	if c.left.Add(-int64(n)) > 0 {
		return
	}
	c.done = nil
	clear(c.pending)
	clear(c.results)
	l.calls.Put(c)
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

// tell tells the waiters of entries in order what their results are, in runs of one
// call. The entries are not to be touched after it.
func (l *Log) tell(waiting []*pending) {
	for len(waiting) > 0 {
		call, at, n := waiting[0].call, waiting[0].at, 1
		for n < len(waiting) && waiting[n].call == call && waiting[n].at == at+n {
			n++
		}
		call.done(at, call.results[at:at+n])
		l.leave(call, n)
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
	sealed  bool // only questions are taken
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
func (l *Log) refuse(err error) {
	for {
		batch := l.queue.take(1<<62, nil)
		if len(batch) == 0 {
			return
		}
		bytes := int64(0)
		for _, p := range batch {
			p.release()
			*p.result() = Result{Err: err}
			bytes += p.bytes
		}
		l.queue.leave(len(batch), bytes)
		l.tell(batch)
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
// [ErrSealed], [ErrFault], [ErrClosed]), done is never called and nothing is durable.
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
// with the results of entries first, first+1, …, in their order; the slice is valid
// during the call. Until an entry's done the log reads its slices.
func (l *Log) AppendAll(ctx context.Context, entries []Entry, done func(first int, results []Result)) (n int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	call := l.newCall(len(entries), done)
	call.left.Store(1) // ours, until the entries are counted
	prepared := 0
	for prepared < len(entries) && err == nil {
		p := &call.pending[prepared]
		p.call, p.at = call, prepared
		if err = l.prepare(p, entries[prepared]); err == nil {
			prepared++
		}
	}
	n, refused := l.enqueue(call.pending[:prepared])
	if refused != nil {
		err = refused
	}
	l.leave(call, 1)
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
	if e.Known {
		if e.MsgID == "" || len(e.Rows) > 0 {
			return wrapf(ErrInvalid, "wal: a question for a message id has an id and no rows")
		}
		return nil
	}
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
		return 0, l.busy(busyStorage, retryDisk)
	}
	if l.space.isLow(l.opts.Clock()) {
		return 0, l.busy(busySpace, retryDisk)
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
		p.call.left.Add(1)
		q.addLocked(p)
	}
	return n, nil
}

func (q *queue) addLocked(p *pending) {
	q.entries++
	q.bytes += p.bytes
	q.waiting = append(q.waiting, p)
}

// servingLocked is nil while the log takes questions, sealed or not.
func (l *Log) servingLocked() error {
	switch {
	case l.closed.Load():
		return ErrClosed
	case l.fault.get() != nil:
		return l.fault.get()
	case l.queue.stopped || l.epoch.Load() == 0:
		return ErrNotReady
	}
	return nil
}

func (l *Log) admitLocked(p *pending, unreleased int64) error {
	q := &l.queue
	if err := l.servingLocked(); err != nil {
		return err
	}
	switch {
	case q.sealed && !p.entry.Known:
		return ErrSealed
	case q.entries+1 > l.opts.MaxInFlightEntries:
		return l.busy(busyEntries, retryInFlight)
	case q.entries > 0 && q.bytes+p.bytes > l.opts.MaxInFlightBytes:
		return l.busy(busyBytes, retryInFlight)
	case unreleased+q.bytes+p.bytes > l.opts.MaxBytes:
		return l.busy(busyUnreleased, retryDisk)
	}
	return nil
}

func (l *Log) busy(reason string, after time.Duration) error {
	l.metrics.pushedBack(reason)
	return &BusyError{Reason: reason, RetryAfter: after}
}
