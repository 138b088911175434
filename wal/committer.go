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
	written bool          // handed to Pebble: it may survive a fault
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
	synced := make(chan *flight)
	var g errgroup.Group
	g.Go(func() error { defer close(synced); return l.commitLoop(ctx, synced) })
	g.Go(func() error { return l.syncLoop(synced) })
	ended := make(chan error, 1)
	go func() { ended <- g.Wait() }()
	var err error
	select {
	case err = <-ended:
	case <-l.fault.stopped:
		// The loops may be stopped inside the storage engine: answer for them.
		l.queue.stop()
		for _, f := range l.flights.abandon() {
			l.answer(f)
		}
	}
	l.queue.stop()
	fault := l.fault.get()
	if fault != nil {
		l.refuse(fault)
		l.metrics.failed()
		l.opts.Logger.Error("wal failed", "error", fault)
		return fault
	}
	l.refuse(ErrNotReady)
	return err
}

// commitLoop turns what has arrived into batches until ctx ends or the log fails.
func (l *Log) commitLoop(ctx context.Context, synced chan<- *flight) error {
	for {
		select {
		case <-l.queue.wake:
			if err := l.commitWaiting(synced); err != nil {
				return err
			}
		case <-l.fault.done:
			return l.fault.get()
		case <-ctx.Done():
			l.queue.stop()
			return l.commitWaiting(synced)
		}
	}
}

// commitWaiting commits until nothing waits.
func (l *Log) commitWaiting(synced chan<- *flight) error {
	c := &l.commit
	for {
		c.taken = l.queue.take(maxBatchBytes, c.taken[:0])
		if len(c.taken) == 0 {
			return nil
		}
		f := &flight{waiting: append([]*pending(nil), c.taken...), started: time.Now()}
		err := l.prepareFlight(f)
		if err != nil || !l.flights.add(f) {
			l.answer(f)
			return l.fault.get()
		}
		// From here on f is answered by whoever takes it out of flights.
		if f.batch != nil {
			err = l.db.ApplyNoSyncWait(f.batch, pebble.Sync)
		}
		if err != nil {
			l.fault.set(err)
			f.batch = nil
		}
		synced <- f
	}
}

// prepareFlight assigns sequences to a flight's entries and encodes them into
// one Pebble batch. An error ends the log; nothing was written then.
func (l *Log) prepareFlight(f *flight) error {
	err := l.fault.get()
	if err == nil {
		if err = l.encode(f); err != nil {
			l.fault.set(err)
		}
	}
	for _, p := range f.waiting {
		p.release()
	}
	f.written = err == nil && f.batch != nil
	return err
}

// encode fills f from its waiting entries.
func (l *Log) encode(f *flight) error {
	c := &l.commit
	c.time = max(c.time, l.opts.Clock().UnixMicro())
	f.time = c.time
	c.window.settle(Seq(l.synced.Load()))
	batch := l.db.NewBatch()
	gone, err := c.window.expire(c.time)
	if err != nil {
		return err
	}
	for _, key := range gone {
		if err := batch.Delete(key.bytes(), nil); err != nil {
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
			if p.result().Err == nil {
				f.dupes++
			}
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
	receipt := &p.result().Receipt
	*receipt = Receipt{Lane: l.id.Lane, Incarnation: l.id.Incarnation, DedupeSince: l.dedupeSince}
	if id := p.entry.MsgID; id != "" {
		first, err := c.window.find(id, p.entry.Digest)
		if err != nil {
			return false, err
		}
		if first != nil {
			duplicate(p, first)
			return true, nil
		}
	}
	if p.entry.Known {
		p.result().Err = ErrUnknownMsgID
		return true, nil
	}
	epoch := Epoch(l.epoch.Load())
	next := NewSeq(epoch, 1)
	if c.last.Epoch() == epoch {
		next = c.last + 1
	}
	if next.Epoch() != epoch {
		return false, fmt.Errorf("epoch %d has no sequence left: %w", epoch, ErrNotReady)
	}
	receipt.Seq, receipt.Epoch, receipt.Rows = next, epoch, p.rows
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
func duplicate(p *pending, first *found) {
	r := p.result()
	if first.digest != p.entry.Digest {
		r.Err = wrapf(ErrMsgIDReused, "message id first used at sequence %d", first.seq)
		return
	}
	r.Receipt.Seq, r.Receipt.Epoch, r.Receipt.Rows = first.seq, first.seq.Epoch(), first.rows
	r.Receipt.Duplicate = true
	if o := first.origin; o != nil {
		r.Receipt.Lane, r.Receipt.Incarnation = o.Lane, o.Incarnation
	}
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
		First: c.value.entries[0].result().Receipt.Seq, Last: c.value.entries[n-1].result().Receipt.Seq,
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
func (l *Log) syncLoop(synced <-chan *flight) error {
	for f := range synced {
		l.settle(f)
	}
	return nil
}

func (l *Log) settle(f *flight) {
	var err error
	if f.batch != nil {
		if err = f.batch.SyncWait(); err == nil {
			err = l.mark.set(f.last)
		}
		if err != nil {
			l.fault.set(fmt.Errorf("sync: %w", err))
		}
	}
	if !l.flights.claim(f) {
		return // answered by Run
	}
	synced := f.batch != nil && l.fault.get() == nil
	if synced {
		l.advance(f)
	}
	took := time.Since(f.started)
	l.answer(f)
	if synced {
		// Behind the answers: nobody waits for these.
		l.metrics.synced(f, took)
		if err := f.batch.Close(); err != nil {
			l.opts.Logger.Warn("wal batch not closed", "error", err)
		}
	}
}

// advance publishes what a sync made durable.
func (l *Log) advance(f *flight) {
	l.mu.Lock()
	l.totalSynced, l.syncedAt = f.total, f.time
	l.synced.Store(uint64(f.last))
	l.mu.Unlock()
	l.syncs.Add(1)
}

// answer tells a flight's waiters how it ended. After a fault nothing is
// acknowledged any more (W1), duplicates included.
func (l *Log) answer(f *flight) {
	fault := l.fault.get()
	l.metrics.duplicate(f.dupes)
	bytes := int64(0)
	for _, p := range f.waiting {
		p.release()
		bytes += p.bytes
	}
	l.queue.leave(len(f.waiting), bytes)
	if fault != nil && f.written {
		fault = fmt.Errorf("%w: %w", ErrUnknownOutcome, fault)
	}
	for _, p := range f.waiting {
		r := p.result()
		if r.Err == nil {
			r.Err = fault
		}
		if r.Err != nil {
			r.Receipt = Receipt{}
		}
	}
	l.tell(f.waiting)
}
