package wal

import (
	"fmt"
	"hash/maphash"

	"github.com/cockroachdb/pebble/v2"
)

// storedKey names a stored group of the window: one of this log (kindDedupe and its last sequence) or an imported one
// (kindImported and its place).
type storedKey struct {
	kind byte
	n    uint64
}

func (k storedKey) bytes() []byte { return makeKey(k.kind, k.n) }

func (k storedKey) String() string {
	if k.kind == kindImported {
		return fmt.Sprintf("imported group %d", k.n)
	}
	return fmt.Sprintf("dedupe %d", k.n)
}

// restored is the part of the window that was stored before the log was opened. It is loaded once, by a goroutine of
// its own while the owner claims its epoch, and only shrinks: group by group, oldest first. It takes 8 to 16 bytes for
// each id, and 24 for each group; the ids and digests stay on disk.
type restored struct {
	seed  maphash.Seed
	ready chan struct{} // closed when the rest is loaded, or err is set
	err   error
	stop  chan struct{}

	groups []restoredGroup // oldest first
	left   int             // groups before it have left the window
	count  int             // of ids in the groups from left on
	slots  []slot          // open addressing; the length is a power of two
	mask   uint64
}

type restoredGroup struct {
	key  storedKey
	time int64
	ids  int
}

// slot is an id: the upper half of its hash, and its group from 1; 0 is a free slot.
type slot struct{ tag, group uint32 }

func newRestored(seed maphash.Seed) *restored {
	return &restored{seed: seed, ready: make(chan struct{}), stop: make(chan struct{}), slots: make([]slot, 1)}
}

// wait returns when the window is loaded.
func (r *restored) wait() error {
	<-r.ready
	return r.err
}

// nothing is for a log that has nothing to load.
func (r *restored) nothing() { close(r.ready) }

// abandon ends a load that nobody needs any more and returns when it has ended.
func (r *restored) abandon() {
	select {
	case <-r.stop:
	default:
		close(r.stop)
	}
	<-r.ready
}

// run loads what the iterators show, in their order, and closes them.
func (r *restored) run(its []*pebble.Iterator) {
	defer close(r.ready)
	b := &restoredBuilder{restored: r}
	for _, it := range its {
		err := b.read(it)
		if closeErr := it.Close(); err == nil {
			err = closeErr
		}
		if err != nil && r.err == nil {
			r.err = err
		}
	}
	if r.err == nil {
		b.index()
	}
}

// restoredBuilder gathers the hashes first, for the table's size is known only then.
type restoredBuilder struct {
	*restored
	hashes []uint64 // of all ids, group by group
}

// stopCheck is the number of groups between two looks at stop.
const stopCheck = 256

func (b *restoredBuilder) read(it *pebble.Iterator) error {
	for ok := it.First(); ok && b.err == nil; ok = it.Next() {
		if len(b.groups)%stopCheck == 0 {
			select {
			case <-b.stop:
				return ErrClosed
			default:
			}
		}
		key, value := it.Key(), []byte(nil)
		n, err := keyNumber(key[0], key)
		if err == nil {
			value, err = it.ValueAndErr()
		}
		if err == nil {
			err = b.add(storedKey{key[0], n}, value)
		}
		if err != nil {
			return err
		}
	}
	return it.Error()
}

func (b *restoredBuilder) add(key storedKey, value []byte) error {
	before := len(b.hashes)
	g, err := scanStored(key, value, func(r *rawRecord) { b.hashes = append(b.hashes, maphash.Bytes(b.seed, r.id)) })
	if err != nil {
		return err
	}
	b.groups = append(b.groups, restoredGroup{key: key, time: g.time, ids: len(b.hashes) - before})
	return nil
}

// index builds the table, at most two thirds full.
func (b *restoredBuilder) index() {
	b.count = len(b.hashes)
	size := uint64(1)
	for size*2 < uint64(len(b.hashes))*3+2 {
		size *= 2
	}
	b.slots, b.mask = make([]slot, size), size-1
	at := 0
	for g := range b.groups {
		for range b.groups[g].ids {
			hash := b.hashes[at]
			i := hash & b.mask
			for b.slots[i].group != 0 {
				i = (i + 1) & b.mask
			}
			b.slots[i] = slot{tag: uint32(hash >> 32), group: uint32(g) + 1}
			at++
		}
	}
}

// lookup gives the groups in the window that may hold an id of a hash.
func (r *restored) lookup(hash uint64) ([]storedKey, error) {
	if err := r.wait(); err != nil {
		return nil, err
	}
	var keys []storedKey
	for i := hash & r.mask; r.slots[i].group != 0; i = (i + 1) & r.mask {
		if s := r.slots[i]; s.tag == uint32(hash>>32) && int(s.group) > r.left {
			keys = append(keys, r.groups[s.group-1].key)
		}
	}
	return keys, nil
}

func (r *restored) empty() bool { return r.left == len(r.groups) }

// expire forgets the groups that are not younger than a time, and the oldest as long as more than max ids are left.
func (r *restored) expire(until int64, max int) (gone []storedKey, err error) {
	if err := r.wait(); err != nil {
		return nil, err
	}
	for !r.empty() {
		g := r.groups[r.left]
		if g.time > until && r.count <= max {
			return gone, nil
		}
		gone = append(gone, g.key)
		r.count -= g.ids
		r.left++
	}
	r.groups, r.slots, r.mask, r.left = nil, make([]slot, 1), 0, 0
	return gone, nil
}
