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

// dedupeWindow is the index of the message ids inside the window. It keeps a
// hash for each id, not the id: a hit is settled by reading the stored group.
// The hash is seeded per process, so a producer cannot aim collisions at it.
// It belongs to the committer.
type dedupeWindow struct {
	span  int64 // microseconds
	max   int
	seed  maphash.Seed
	group []*dedupeGroup // oldest first
	index map[uint64]Seq // newest sequence for a hash
	more  map[uint64][]Seq
	count int
	load  func(last Seq) (*dedupeGroup, error)
}

func newDedupeWindow(window time.Duration, max int, load func(Seq) (*dedupeGroup, error)) *dedupeWindow {
	return &dedupeWindow{
		span: window.Microseconds(), max: max, seed: maphash.MakeSeed(), load: load,
		index: map[uint64]Seq{}, more: map[uint64][]Seq{},
	}
}

// find gives the record of a message id that is inside the window, or nil.
func (w *dedupeWindow) find(id string) (*dedupeRecord, error) {
	hash := maphash.String(w.seed, id)
	seq, ok := w.index[hash]
	if !ok {
		return nil, nil
	}
	for _, at := range slices.Concat(w.more[hash], []Seq{seq}) {
		g := w.groupOf(at)
		if g == nil {
			continue
		}
		records := g.records
		if records == nil {
			stored, err := w.load(g.last)
			if err != nil {
				return nil, err
			}
			records = stored.records
		}
		for i := range records {
			if records[i].id == id {
				return &records[i], nil
			}
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

// restore adds a group read at open.
func (w *dedupeWindow) restore(stored *dedupeGroup) {
	g := w.open(stored.first, stored.time)
	for _, r := range stored.records {
		w.add(g, r)
	}
	g.last, g.records = stored.last, nil
}

// expire forgets groups that left the window by time or by count, and gives
// the last sequence of each for deletion. Time is the log's own, so a clock
// that jumps back forgets nothing early and remembers nothing twice.
func (w *dedupeWindow) expire(now int64) []Seq {
	var gone []Seq
	for len(w.group) > 0 {
		g := w.group[0]
		if g.time+w.span > now && w.count <= w.max {
			break
		}
		gone = append(gone, g.last)
		w.forget(g)
		w.group[0] = nil
		w.group = w.group[1:]
	}
	return gone
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
