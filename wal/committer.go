package wal

import (
	"context"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"golang.org/x/sync/errgroup"
)

// maxBatchBytes bounds what one sync carries. At this size the disk's bandwidth
// and not the number of syncs is the limit.
const maxBatchBytes = 2 * MaxValueBytes

// committer is the state of Run's committing goroutine.
type committer struct {
	last   Seq    // last sequence assigned
	prev   Seq    // last sequence of the newest value, before the one being built
	total  totals // of everything assigned
	time   int64  // newest log time
	window *dedupeWindow
	value  *valueBuilder
	taken  []*pending
}

// flight is one Pebble batch on its way to disk, with those who wait for it.
type flight struct {
	batch   *pebble.Batch // nil when it only carries duplicates
	waiting []*pending
	last    Seq
	total   totals
	time    int64
	entries int
	rows    int
	bytes   int64
	dupes   int
	started time.Time
}

// Run commits what is appended until ctx ends: one Pebble batch and one sync
// for all that has arrived. On a clean stop everything appended is synced and
// answered, and it returns nil; a failed log returns [ErrFault] with the cause.
// It may be called once.
func (l *Log) Run(ctx context.Context) error {
	// Unbuffered: while one batch syncs, the next is encoded and written behind
	// it, and the one after that gathers in the queue.
	flights := make(chan *flight)
	var g errgroup.Group
	g.Go(func() error { defer close(flights); return l.commitLoop(ctx, flights) })
	g.Go(func() error { return l.syncLoop(flights) })
	err := g.Wait()
	l.queue.stop()
	l.queue.refuse(ErrNotReady)
	if fault := l.fault.get(); fault != nil {
		return fault
	}
	return err
}

// commitLoop turns what has arrived into batches until ctx ends or the log fails.
func (l *Log) commitLoop(ctx context.Context, flights chan<- *flight) error {
	for {
		select {
		case <-l.queue.wake:
			if err := l.commitWaiting(flights); err != nil {
				return err
			}
		case <-l.fault.done:
			return l.fault.get()
		case <-ctx.Done():
			l.queue.stop()
			return l.commitWaiting(flights)
		}
	}
}

// commitWaiting commits until nothing waits.
func (l *Log) commitWaiting(flights chan<- *flight) error {
	c := &l.commit
	for {
		c.taken = l.queue.take(maxBatchBytes, c.taken[:0])
		if len(c.taken) == 0 {
			return nil
		}
		f, err := l.write(c.taken)
		flights <- f
		if err != nil {
			return err
		}
	}
}

// write assigns sequences to entries, encodes them into one Pebble batch and
// hands it to Pebble without waiting for the sync. The flight is never nil: on
// an error its waiters learn that the outcome is unknown.
func (l *Log) write(taken []*pending) (*flight, error) {
	f := &flight{waiting: append([]*pending(nil), taken...), started: time.Now()}
	err := l.encode(f)
	if err == nil && f.batch != nil {
		err = l.guarded("apply", func() error { return l.db.ApplyNoSyncWait(f.batch, pebble.Sync) })
	}
	for _, p := range f.waiting {
		p.release()
	}
	if err != nil {
		l.fault.set(err, false)
		f.batch = nil
		for _, p := range f.waiting {
			p.err = fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
		}
	}
	return f, err
}

// encode fills f from its waiting entries.
func (l *Log) encode(f *flight) error {
	c := &l.commit
	c.time = max(c.time, l.opts.Clock().UnixMicro())
	f.time = c.time
	c.window.settle(Seq(l.synced.Load()))
	batch := l.db.NewBatch()
	for _, gone := range c.window.expire(c.time) {
		if err := batch.Delete(dedupeKey(gone), nil); err != nil {
			return err
		}
	}
	var group *dedupeGroup
	for _, p := range f.waiting {
		dup, err := l.assign(p, &group)
		if err != nil {
			return err
		}
		if dup {
			f.dupes++
			continue
		}
		f.entries++
		f.rows += p.rows
		if err := l.place(batch, p); err != nil {
			return err
		}
	}
	if err := l.flushValue(batch); err != nil {
		return err
	}
	f.last, f.total = c.last, c.total
	if f.entries == 0 {
		return batch.Close()
	}
	if group != nil {
		if err := batch.Set(dedupeKey(group.last), encodeDedupe(group), nil); err != nil {
			return err
		}
	}
	f.batch, f.bytes = batch, int64(batch.Len())
	return nil
}

// assign gives p its sequence and receipt, or the receipt of its first copy.
func (l *Log) assign(p *pending, group **dedupeGroup) (dup bool, err error) {
	c := &l.commit
	p.receipt = Receipt{Lane: l.id.Lane, Incarnation: l.id.Incarnation}
	if id := p.entry.MsgID; id != "" {
		first, err := c.window.find(id)
		if err != nil {
			return false, err
		}
		if first != nil {
			l.duplicate(p, first)
			return true, nil
		}
	}
	epoch := Epoch(l.epoch.Load())
	next := NewSeq(epoch, 1)
	if c.last.Epoch() == epoch {
		next = c.last + 1
	}
	if next.Epoch() != epoch {
		return false, fmt.Errorf("epoch %d has no sequence left: %w", epoch, ErrNotReady)
	}
	p.receipt.Seq, p.receipt.Epoch, p.receipt.Rows = next, epoch, p.rows
	if p.entry.MsgID != "" {
		if *group == nil {
			*group = c.window.open(next, c.time)
		}
		c.window.add(*group, dedupeRecord{seq: next, rows: p.rows, digest: p.entry.Digest, id: p.entry.MsgID})
	}
	c.last = next
	return false, nil
}

// duplicate answers p with the receipt of its first copy. The answer rides in
// this flight, which is answered after the first copy's.
func (l *Log) duplicate(p *pending, first *dedupeRecord) {
	if first.digest != p.entry.Digest {
		p.err = wrapf(ErrMsgIDReused, "message id first used at sequence %d", first.seq)
		return
	}
	p.receipt.Seq, p.receipt.Epoch, p.receipt.Rows = first.seq, first.seq.Epoch(), first.rows
	p.receipt.Duplicate = true
}

// place adds p to the value being built, ending that value first when p does
// not fit, and stores schemas not stored before.
func (l *Log) place(batch *pebble.Batch, p *pending) error {
	c := &l.commit
	if !c.value.fits(p) {
		// p's sequence is already assigned; the value ends before it.
		if err := l.flushValue(batch); err != nil {
			return err
		}
	}
	c.value.add(p)
	for _, s := range p.schemas {
		if s.stored {
			continue
		}
		if err := batch.Set(schemaKey(s.id), s.bytes, nil); err != nil {
			return err
		}
		s.stored = true
	}
	return nil
}

// flushValue writes the value being built into the batch.
func (l *Log) flushValue(batch *pebble.Batch) error {
	c := &l.commit
	n := len(c.value.entries)
	if n == 0 {
		return nil
	}
	h := valueHeader{
		First: c.value.entries[0].receipt.Seq, Last: c.value.entries[n-1].receipt.Seq,
		Prev: c.prev, Time: c.time, Total: c.total,
	}
	size, write := c.value.encode(&h)
	op := batch.SetDeferred(keyBytes, size)
	copy(op.Key, valueKey(h.Last))
	write(op.Value)
	c.total, c.prev = h.Total, h.Last
	c.value.reset()
	return op.Finish()
}

// syncLoop waits for the sync of each flight, in order, moves the
// synced-through mark and answers.
func (l *Log) syncLoop(flights <-chan *flight) error {
	for f := range flights {
		l.settle(f)
	}
	return nil
}

func (l *Log) settle(f *flight) {
	if f.batch != nil {
		err := f.batch.SyncWait()
		if err == nil {
			// A fatal event of the storage engine during the sync counts too.
			err = l.fault.get()
		}
		if err != nil {
			l.metrics.syncFailed()
			l.fault.set(fmt.Errorf("sync: %w", err), false)
		} else {
			l.advance(f)
		}
		l.closeBatch(f)
	}
	if fault := l.fault.get(); fault != nil {
		for _, p := range f.waiting {
			if p.err == nil {
				p.err = fmt.Errorf("%w: %w", ErrUnknownOutcome, fault)
			}
		}
	}
	l.metrics.duplicate(f.dupes)
	bytes := int64(0)
	for _, p := range f.waiting {
		bytes += p.bytes
	}
	l.queue.leave(len(f.waiting), bytes)
	for _, p := range f.waiting {
		if p.err != nil {
			p.done(Receipt{}, p.err)
			continue
		}
		p.done(p.receipt, nil)
	}
}

// advance publishes what a sync made durable.
func (l *Log) advance(f *flight) {
	l.mu.Lock()
	l.totalSynced, l.syncedAt = f.total, f.time
	l.synced.Store(uint64(f.last))
	l.mu.Unlock()
	l.syncs.Add(1)
	l.metrics.synced(f, time.Since(f.started))
}

// closeBatch returns a batch to Pebble, unless Pebble is not to be touched.
func (l *Log) closeBatch(f *flight) {
	if l.fault.poisoned() {
		return
	}
	if err := f.batch.Close(); err != nil {
		l.opts.Logger.Warn("wal batch not closed", "error", err)
	}
}
