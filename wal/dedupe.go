package wal

import (
	"hash/maphash"
	"slices"
	"sort"
	"time"
)

// dedupeRecord is what the log remembers of an entry with a message id.
type dedupeRecord struct {
	seq    Seq
	rows   int
	digest [32]byte
	id     string
}

// dedupeGroup is the records of one sync batch, stored as one Pebble record
// under the batch's last sequence.
type dedupeGroup struct {
	first, last Seq
	time        int64    // log time, microseconds
	hashes      []uint64 // of each record's id, in order
	// records is kept until the group is known to be synced; after that the
	// group is read from Pebble, which then shows synced data only.
	records []dedupeRecord
}

// dedupeWindow is the index of the message ids inside the window: those that were stored before the log was opened,
// in restored, and those of this process. It keeps a hash for each id, not the id: a hit is settled by reading the
// stored group. The hash is seeded per process, so a producer cannot aim collisions at it. It belongs to the committer.
type dedupeWindow struct {
	span  int64 // microseconds
	max   int
	seed  maphash.Seed
	old   *restored
	group []*dedupeGroup // of this process, oldest first
	index map[uint64]Seq // newest sequence for a hash
	more  map[uint64][]Seq
	count int // in group
	load  func(storedKey) (*storedGroup, error)
}

// found is a record of the window and the log that it was acknowledged by, nil for this one.
type found struct {
	dedupeRecord
	origin *Origin
}

func newDedupeWindow(window time.Duration, max int, load func(storedKey) (*storedGroup, error)) *dedupeWindow {
	w := &dedupeWindow{
		span: window.Microseconds(), max: max, seed: maphash.MakeSeed(), load: load,
		index: map[uint64]Seq{}, more: map[uint64][]Seq{},
	}
	w.old = newRestored(w.seed)
	return w
}

// find gives the record of a message id that is inside the window, or nil. It waits until the window is loaded. The parts of one message may have
// gone to two predecessors under one id: then the one with the digest is meant.
func (w *dedupeWindow) find(id string, digest [32]byte) (*found, error) {
	hash := maphash.String(w.seed, id)
	best, err := w.findOwn(id, hash)
	if best != nil || err != nil {
		return best, err
	}
	keys, err := w.old.lookup(hash)
	for i := 0; i < len(keys) && err == nil; i++ {
		var g *storedGroup
		if g, err = w.load(keys[i]); err != nil {
			return nil, err
		}
		if r := g.find(id); r != nil && (best == nil || r.digest == digest) {
			best = r
		}
	}
	return best, err
}

// findOwn looks through what this process has stored.
func (w *dedupeWindow) findOwn(id string, hash uint64) (*found, error) {
	seq, ok := w.index[hash]
	if !ok {
		return nil, nil
	}
	for _, at := range slices.Concat(w.more[hash], []Seq{seq}) {
		g := w.groupOf(at)
		if g == nil {
			continue
		}
		stored := &storedGroup{dedupeGroup: *g}
		if g.records == nil {
			var err error
			if stored, err = w.load(storedKey{kindDedupe, uint64(g.last)}); err != nil {
				return nil, err
			}
		}
		if r := stored.find(id); r != nil {
			return r, nil
		}
	}
	return nil, nil
}

// groupOf finds the group that holds a sequence.
func (w *dedupeWindow) groupOf(seq Seq) *dedupeGroup {
	i := sort.Search(len(w.group), func(i int) bool { return w.group[i].last >= seq })
	if i == len(w.group) || w.group[i].first > seq {
		return nil
	}
	return w.group[i]
}

// open starts the group of a sync batch; records are added with add.
func (w *dedupeWindow) open(first Seq, now int64) *dedupeGroup {
	g := &dedupeGroup{first: first, last: first, time: now}
	w.group = append(w.group, g)
	return g
}

func (w *dedupeWindow) add(g *dedupeGroup, r dedupeRecord) {
	hash := maphash.String(w.seed, r.id)
	if old, ok := w.index[hash]; ok {
		// Another id with the same hash, or the same id expired a moment ago.
		w.more[hash] = append(w.more[hash], old)
	}
	w.index[hash] = r.seq
	g.records = append(g.records, r)
	g.hashes = append(g.hashes, hash)
	g.last = max(g.last, r.seq)
	w.count++
}

// expire forgets groups that left the window by time or by count, and gives
// the key of each for deletion. Time is the log's own, so a clock
// that jumps back forgets nothing early and remembers nothing twice. It waits until the window is loaded.
func (w *dedupeWindow) expire(now int64) ([]storedKey, error) {
	gone, err := w.old.expire(now-w.span, w.max-w.count)
	if err != nil || !w.old.empty() {
		return gone, err // what is older goes first
	}
	for len(w.group) > 0 {
		g := w.group[0]
		if g.time+w.span > now && w.count <= w.max {
			break
		}
		gone = append(gone, storedKey{kindDedupe, uint64(g.last)})
		w.forget(g)
		w.group[0] = nil
		w.group = w.group[1:]
	}
	return gone, nil
}

func (w *dedupeWindow) forget(g *dedupeGroup) {
	for _, hash := range g.hashes {
		w.count--
		if more := w.more[hash]; len(more) > 0 {
			w.forgetMore(g, hash, more)
			continue
		}
		if seq, ok := w.index[hash]; ok && seq <= g.last {
			delete(w.index, hash)
		}
	}
}

// forgetMore drops the sequences of a group from a hash with several.
func (w *dedupeWindow) forgetMore(g *dedupeGroup, hash uint64, more []Seq) {
	kept := more[:0]
	for _, seq := range more {
		if seq > g.last {
			kept = append(kept, seq)
		}
	}
	if len(kept) == 0 {
		delete(w.more, hash)
	} else {
		w.more[hash] = kept
	}
	if w.index[hash] <= g.last && len(kept) == 0 {
		delete(w.index, hash)
	}
}

// settle drops the in-memory records of groups that are synced.
func (w *dedupeWindow) settle(synced Seq) {
	for i := len(w.group) - 1; i >= 0; i-- {
		g := w.group[i]
		if g.records == nil {
			return
		}
		if g.last <= synced {
			g.records = nil
		}
	}
}
