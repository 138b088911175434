package wal

import (
	"fmt"
	"hash/maphash"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// storedWindow is a store with n groups of two ids each, and the keys of the groups.
func storedWindow(t testing.TB, n int) *Log {
	t.Helper()
	l, err := Open(t.Context(), testOptions(vfs.NewMem()))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	for i := range n {
		first := NewSeq(1, uint64(1+2*i))
		g := &dedupeGroup{first: first, last: first + 1, time: int64(1000 + i), records: []dedupeRecord{
			{seq: first, rows: 1, id: fmt.Sprint("m", 2*i)}, {seq: first + 1, rows: 2, id: fmt.Sprint("m", 2*i+1)},
		}}
		require.NoError(t, l.db.Set(dedupeKey(g.last), encodeDedupe(g), pebble.NoSync))
	}
	return l
}

// unloaded is a window over a log's store whose load has not begun; start begins it.
func unloaded(t testing.TB, l *Log) (w *dedupeWindow, start func()) {
	t.Helper()
	w = newDedupeWindow(l.opts.DedupeWindow, l.opts.DedupeMax, l.loadStored)
	it, err := l.db.NewIter(kindSpan(kindDedupe))
	require.NoError(t, err)
	return w, func() { go w.old.run([]*pebble.Iterator{it}) }
}

// Issue 6: whoever uses the window before it is loaded waits, and is told what is in it.
func TestWindowIsUsedBeforeItIsLoaded(t *testing.T) {
	w, start := unloaded(t, storedWindow(t, 500))
	answers := make(chan *found, 20)
	for i := range cap(answers) {
		go func() {
			r, err := w.find(fmt.Sprint("m", i*50), [32]byte{})
			if err != nil {
				r = nil
			}
			answers <- r
		}()
	}
	select {
	case <-answers:
		t.Fatal("an answer before anything was loaded")
	default:
	}
	start()
	for range cap(answers) {
		r := <-answers
		require.NotNil(t, r)
		require.Equal(t, fmt.Sprint("m", r.seq.Counter()-1), r.id)
	}
	none, err := w.find("m1000", [32]byte{})
	require.NoError(t, err)
	require.Nil(t, none)
}

// A window that cannot be loaded is said before anything is admitted: Begin fails, and nothing else of the log is touched.
func TestBeginRefusesADamagedWindow(t *testing.T) {
	fs := filledLog(t)
	l, err := Open(t.Context(), testOptions(fs))
	require.NoError(t, err)
	key := dedupeKey(NewSeq(1, 15))
	value, closer, err := l.db.Get(key)
	require.NoError(t, err)
	data := append([]byte(nil), value...)
	require.NoError(t, closer.Close())
	data[40] ^= 1
	require.NoError(t, l.db.Set(key, data, pebble.Sync))
	require.NoError(t, l.Close())

	l, err = Open(t.Context(), testOptions(fs))
	require.NoError(t, err)
	require.ErrorIs(t, l.Begin(2), ErrCorrupt)
	require.ErrorIs(t, l.Append(t.Context(), entryOf("x", 1, 1), nil), ErrNotReady)
	require.NoError(t, l.Close())
}

// A log that is closed at once does not wait for its window to be loaded, and leaves no iterator.
func TestCloseEndsTheLoad(t *testing.T) {
	w, start := unloaded(t, storedWindow(t, 1000))
	close(w.old.stop)
	start()
	w.old.abandon()
	require.ErrorIs(t, w.old.wait(), ErrClosed)
}

// TestRestoredModel compares the table with a plain map over random groups, colliding hashes and expiries.
func TestRestoredModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := &restoredBuilder{restored: newRestored(maphash.MakeSeed())}
		want, at := map[uint64][]int{}, int64(0)
		for g := range rapid.IntRange(0, 30).Draw(rt, "groups") {
			at += int64(rapid.IntRange(0, 3).Draw(rt, "time"))
			ids := rapid.SliceOfN(rapid.Uint64Range(0, 15), 1, 6).Draw(rt, "hashes")
			for _, id := range ids {
				hash := id<<33 | id%3 // several share a slot, and some a tag and a slot
				b.hashes = append(b.hashes, hash)
				want[hash] = append(want[hash], g)
			}
			b.groups = append(b.groups, restoredGroup{key: storedKey{kindDedupe, uint64(g)}, time: at, ids: len(ids)})
		}
		b.index()
		b.nothing()
		all := append([]restoredGroup(nil), b.groups...)
		left, count := 0, b.count
		for range 4 {
			until, most := int64(rapid.IntRange(0, 90).Draw(rt, "until")), rapid.IntRange(0, 180).Draw(rt, "max")
			gone, err := b.expire(until, most)
			require.NoError(rt, err)
			var expired []storedKey
			for left < len(all) && (all[left].time <= until || count > most) {
				expired = append(expired, all[left].key)
				count, left = count-all[left].ids, left+1
			}
			require.Equal(rt, expired, gone)
			require.Equal(rt, count, b.count)
			for hash, groups := range want {
				keys, err := b.lookup(hash)
				require.NoError(rt, err)
				var still []storedKey
				for _, g := range groups {
					if g >= left {
						still = append(still, storedKey{kindDedupe, uint64(g)})
					}
				}
				require.ElementsMatch(rt, still, keys)
			}
		}
	})
}
