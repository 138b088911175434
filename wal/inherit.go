package wal

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// Predecessor is a log that was closed before this one began. What it acknowledged under a message id must not be applied again.
type Predecessor struct {
	Lane        uint32
	Incarnation string
	// Through is its last folded sequence. Ids of entries above it are not imported: those were given up, and a retry is to be applied.
	Through Seq
	// Source gives its window: a *Log that was opened to be read, or a *Remote; the caller closes it. Nil when it cannot be reached: then
	// receipts carry the present time as DedupeSince.
	Source WindowSource
}

// importBytes is about how much of an import is written at once.
const importBytes = 1 << 20

// Inherit makes a new log know the message ids that its predecessors acknowledged, of one lane or, after a change of the lane count, of several: a retry
// is then answered with the predecessor's receipt. It has to come before Begin, when the heads have closed the predecessors, so that their windows do not
// change any more. Memory is bounded by a group of each. The last of its syncs makes all of it count; a crash before it leaves nothing, and Inherit is called again.
// Naming logs that were inherited before, and no others, does nothing. [ErrInvalid] for a log that has entries; [ErrIdentity] for a source of another log.
func (l *Log) Inherit(ctx context.Context, from []Predecessor) error {
	if l.inherited(from) {
		return nil
	}
	if l.readOnly || l.epoch.Load() != 0 || l.synced.Load() != 0 || l.lineage != nil {
		return wrapf(ErrInvalid, "wal: only a new log inherits message ids, once and before it runs")
	}
	if err := l.commit.window.old.wait(); err != nil {
		return l.storeError(err)
	}
	in := &inheritance{log: l, lineage: &lineage{}}
	if !l.dedupeSince.IsZero() {
		in.since = l.dedupeSince
	}
	if err := in.run(ctx, from); err != nil {
		return fmt.Errorf("wal: inherit message ids: %w", err)
	}
	l.lineage, l.dedupeSince = in.lineage, in.since
	l.commit.window = newDedupeWindow(l.opts.DedupeWindow, l.opts.DedupeMax, l.loadStored)
	if err := l.recoverTime(ctx); err != nil {
		return err
	}
	return l.startWindow(ctx)
}

// inherited tells whether all of the logs were looked for before.
func (l *Log) inherited(from []Predecessor) bool {
	for _, p := range from {
		if l.lineage == nil || !slices.Contains(l.lineage.logs, Origin{p.Lane, p.Incarnation}) {
			return false
		}
	}
	return true
}

// inheritance is one Inherit under way.
type inheritance struct {
	log     *Log
	lineage *lineage
	since   time.Time
	batch   *pebble.Batch
	next    uint64 // place of the next group
}

func (in *inheritance) run(ctx context.Context, from []Predecessor) error {
	in.batch = in.log.db.NewBatch()
	defer func() { _ = in.batch.Close() }()
	// What an import that was cut off has left.
	if err := in.batch.DeleteRange(spanStart(kindImported), spanEnd(kindImported), nil); err != nil {
		return err
	}
	var streams []*windowStream
	defer func() {
		for _, s := range streams {
			s.stop()
		}
	}()
	for _, p := range from {
		s, err := in.reach(ctx, p)
		if err != nil {
			return fmt.Errorf("of lane %d, incarnation %s: %w", p.Lane, p.Incarnation, err)
		}
		if s != nil {
			streams = append(streams, s)
		}
	}
	if err := in.merge(streams); err != nil {
		return err
	}
	return in.finish()
}

// reach notes what is known of a predecessor and opens its window, nil when there is none.
func (in *inheritance) reach(ctx context.Context, p Predecessor) (*windowStream, error) {
	in.cover(Origin{p.Lane, p.Incarnation})
	if p.Source == nil {
		in.lost(in.log.opts.Clock())
		return nil, nil
	}
	s, err := p.Source.Status(ctx)
	switch {
	case err != nil:
		return nil, err
	case s.Graph != in.log.id.Graph || s.Lane != p.Lane || s.Incarnation != p.Incarnation:
		return nil, wrapf(ErrIdentity, "the log is of graph %q lane %d, incarnation %s", s.Graph, s.Lane, s.Incarnation)
	case s.SyncedThrough < p.Through:
		in.lost(in.log.opts.Clock()) // its disk is older than its graph
	}
	in.lost(s.DedupeSince)
	for _, o := range s.Predecessors {
		in.cover(o)
	}
	return newWindowStream(p.Source.Window(ctx, s), p)
}

func (in *inheritance) cover(o Origin) {
	if !slices.Contains(in.lineage.logs, o) {
		in.lineage.logs = append(in.lineage.logs, o)
	}
}

// lost notes that ids before an instant are not all known.
func (in *inheritance) lost(at time.Time) {
	if at.After(in.since) {
		in.since = at
	}
}

// merge stores the groups of all windows by their time, so that they leave the window in that order.
func (in *inheritance) merge(streams []*windowStream) error {
	for {
		var oldest *windowStream
		for _, s := range streams {
			if s.group != nil && (oldest == nil || s.group.time < oldest.group.time) {
				oldest = s
			}
		}
		if oldest == nil {
			return nil
		}
		if err := in.store(oldest.group); err != nil {
			return err
		}
		if err := oldest.advance(); err != nil {
			return err
		}
	}
}

func (in *inheritance) store(g *storedGroup) error {
	key := storedKey{kindImported, in.next}
	in.next++
	if err := in.batch.Set(key.bytes(), encodeImported(g.origin, encodeDedupe(&g.dedupeGroup)), nil); err != nil {
		return err
	}
	if in.batch.Len() < importBytes {
		return nil
	}
	if err := in.log.db.Apply(in.batch, pebble.NoSync); err != nil {
		return in.log.storeError(err)
	}
	in.batch.Reset()
	return nil
}

// finish makes the import count.
func (in *inheritance) finish() error {
	if !in.since.IsZero() {
		if err := in.batch.Set(lossKey(), encodeLoss(in.since.UnixMicro()), nil); err != nil {
			return err
		}
	}
	if err := in.batch.Set(lineageKey(), in.lineage.encode(), nil); err != nil {
		return err
	}
	// Pebble's log is in order: what is synced here has all that went before it.
	return in.log.storeError(in.log.db.Apply(in.batch, pebble.Sync))
}

// windowStream is the window of a predecessor, group by group, without what was not folded.
type windowStream struct {
	own   Origin
	fold  Seq
	group *storedGroup // the next one; nil at the end
	next  func() (*WindowGroup, error, bool)
	stop  func()
}

func newWindowStream(groups iter.Seq2[*WindowGroup, error], p Predecessor) (*windowStream, error) {
	s := &windowStream{own: Origin{p.Lane, p.Incarnation}, fold: p.Through}
	s.next, s.stop = iter.Pull2(groups)
	if err := s.advance(); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

func (s *windowStream) advance() error {
	for {
		w, err, ok := s.next()
		if !ok || err != nil {
			s.group = nil
			return err
		}
		s.group = &w.stored
		if s.group.origin != nil {
			return nil // of one that went before: all of that was settled then
		}
		s.group.origin = &s.own
		s.group.records = slices.DeleteFunc(s.group.records, func(r dedupeRecord) bool { return r.seq > s.fold })
		if n := len(s.group.records); n > 0 {
			s.group.last = s.group.records[n-1].seq
			return nil
		}
	}
}
