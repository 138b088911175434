package fold

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/fold/keyindex"
	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/countstore"
	"github.com/foldline/foldline/objstore/faultstore"
	"github.com/foldline/foldline/publisher"
)

// standbyOf makes a standby of a world with an index of its own, on a store that counts.
func standbyOf(t *testing.T, w *world, faults ...faultstore.Injector) (*Standby, *countstore.Store) {
	t.Helper()
	index, err := keyindex.Open(keyindex.Options{Dir: "index", FS: vfs.NewMem()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, index.Close()) })
	store := countstore.New(faultstore.New(w.store, faults...))
	s, err := NewStandby(StandbyOptions{Store: store, Index: index, Interval: time.Second, Poll: 5 * time.Second})
	require.NoError(t, err)
	return s, store
}

// takeOver makes a folder of a standby, its index, its tables and its store.
func takeOver(t *testing.T, w *world, s *Standby) {
	t.Helper()
	p, err := publisher.Claim(w.ctx, publisher.Options{Store: s.o.Store, Keys: s.o.Index}, "standby")
	require.NoError(t, err)
	w.opts.Opened = s.Tables()
	w.folderOf(p, s.o.Store, s.o.Index)
}

// readOf lists what was read of the tables' files since the last Reset, by operation; manifests are left out, of which the first commit
// after a takeover reads the barrier's.
func readOf(store *countstore.Store) map[string]int {
	out := map[string]int{}
	for _, c := range store.Calls() {
		if !strings.HasPrefix(c.Key, "_foldline/") && !strings.Contains(c.Key, "/_versions/") && !slices.Contains([]string{"put", "upload"}, c.Op) {
			out[c.Op]++
		}
	}
	return out
}

func (w *world) seed(specs []publisher.TableSpec, rows int) {
	for _, s := range specs {
		many := make([]row, rows)
		for i := range many {
			many[i] = upsert(fmt.Sprintf("key-%05d", i), i)
		}
		w.write(s.Key, many...)
	}
	w.fold()
}

// TestWarmStandbyFoldsWithoutReading: a standby that has followed the heads reads nothing for its first fold but the deletion files that
// it adds to: it costs what the active folder's next fold would have cost (architecture 7.8).
func TestWarmStandbyFoldsWithoutReading(t *testing.T) {
	specs := noteTables(3)
	w := newWorld(t, objstore.NewMemory(), 1, specs...)
	defer w.close()
	s, reads := standbyOf(t, w)
	const rows = 5000
	w.seed(specs, rows)
	require.NoError(t, s.FollowOnce(w.ctx))
	for fold := range 3 {
		for _, spec := range specs {
			w.write(spec.Key, upsert(fmt.Sprint("new-", fold), 1), remove(fmt.Sprintf("key-%05d", fold)))
		}
		w.fold()
		reads.Reset()
		require.NoError(t, s.FollowOnce(w.ctx))
		got := reads.Counts()
		require.Zero(t, got.Writes(), "a standby commits nothing")
		// Two LISTs and 3 GETs of the heads; of each table the manifest, the new data file and the deletion file.
		require.LessOrEqual(t, got.Requests(), 2+3+3*len(specs), "%v", reads.Calls())
		require.Less(t, got.ReadBytes, int64(len(specs)*rows*4), "no table is scanned")
	}
	reads.Reset()
	require.NoError(t, s.FollowOnce(w.ctx))
	require.Equal(t, countstore.Counts{List: 1}, reads.Counts(), "nothing has moved")

	takeOver(t, w, s)
	for _, spec := range specs {
		w.write(spec.Key, upsert("key-00100", 7), upsert("fresh", 8))
	}
	reads.Reset()
	require.Equal(t, len(specs), w.fold().Updated)
	require.Equal(t, map[string]int{"get": len(specs)}, readOf(reads), "of each table the deletion file that grows")
	w.closeIndex()
	for _, spec := range specs {
		require.Len(t, w.scan(spec.Key), rows+3-3+1)
	}
}

// TestStandbyReadsOnlyTheDelta: what was published after the standby's last look is all that the first fold reads first.
func TestStandbyReadsOnlyTheDelta(t *testing.T) {
	specs := noteTables(1)
	w := newWorld(t, objstore.NewMemory(), 1, specs...)
	defer w.close()
	s, reads := standbyOf(t, w)
	w.seed(specs, 5000)
	require.NoError(t, s.FollowOnce(w.ctx))
	w.write(specs[0].Key, upsert("late", 1), upsert("key-00000", 2))
	w.fold()

	takeOver(t, w, s)
	w.write(specs[0].Key, upsert("late", 3))
	reads.Reset()
	require.Equal(t, 1, w.fold().Updated)
	require.Equal(t, map[string]int{"get_range": 1, "get": 1}, readOf(reads), "the new data file and the deletion file")
}

// TestStandbyOutlivesDamage: a table that cannot be read does not keep the others from being followed, and is followed when it can be again.
func TestStandbyOutlivesDamage(t *testing.T) {
	specs := noteTables(2)
	w := newWorld(t, objstore.NewMemory(), 1, specs...)
	defer w.close()
	var mended atomic.Bool
	s, _ := standbyOf(t, w, func(_ context.Context, c faultstore.Call) faultstore.Fault {
		if strings.HasPrefix(c.Key, w.table(specs[0].Key).Path) && !mended.Load() {
			return faultstore.Fault{Before: objstore.ErrNotFound}
		}
		return faultstore.Fault{}
	})
	w.seed(specs, 10)
	require.NoError(t, s.FollowOnce(w.ctx))
	require.Len(t, s.Tables(), 1)
	mended.Store(true)
	require.NoError(t, s.FollowOnce(w.ctx))
	require.Len(t, s.Tables(), 2)
}

// TestStandbyPaces: announcements are followed together, at most once in an interval, and without any the standby polls.
func TestStandbyPaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, objstore.NewMemory(), 1, noteTable("node:T"))
		defer w.close()
		s, store := standbyOf(t, w)
		ctx, cancel := context.WithCancel(w.ctx)
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		synctest.Wait()
		looks := func(d time.Duration) int {
			store.Reset()
			<-time.After(d)
			synctest.Wait()
			return store.Counts().List
		}
		for range 10 {
			s.Trigger()
		}
		require.Equal(t, 1, looks(1500*time.Millisecond), "ten announcements are one look")
		require.Equal(t, 1, looks(5*time.Second), "and then the poll")
		s.Retire()
		require.NoError(t, <-ended)
		cancel()
	})
}
