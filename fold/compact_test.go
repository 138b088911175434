package fold

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/countstore"
	"github.com/foldline/foldline/publisher"
)

// cadenced is a world whose clock stands and whose folder compacts every minute, on a store that counts.
func cadenced(t *testing.T, tables ...string) (*world, *countstore.Store) {
	inner := objstore.NewMemory()
	store := countstore.New(inner)
	w := newWorld(t, inner, 1)
	for _, table := range tables {
		w.specs = append(w.specs, noteTable(table))
	}
	w.clock = &manualClock{}
	w.retention = publisher.Retention{MinVersions: 30, MaxVersions: 30}
	w.opts.AdoptInterval = time.Hour
	w.opts.Compact = CompactOptions{Interval: time.Minute, MinFragments: 8, MaxRows: 512}
	w.claim(store)
	w.lanes[0].learn(w)
	t.Cleanup(w.close)
	return w, store
}

// turn folds what is there a second after the last fold, with what follows a fold.
func (w *world) turn() Report {
	w.t.Helper()
	w.clock.seconds.Add(1)
	r, err := w.folder.turn(w.ctx)
	require.NoError(w.t, err)
	return r
}

// fragments are those of a table at its head.
func (w *world) fragments(key string) int {
	w.t.Helper()
	t, err := w.heads().OpenTable(w.ctx, w.store, key)
	require.NoError(w.t, err)
	return len(t.Fragments())
}

// TestFolderKeepsTablesSmall: 300 folds a second apart, of new rows in one table and of the same 40 keys in another, with dead letters beside them, a compaction each minute
// and a cleanup each ten seconds. Fragments stay within what a compaction leaves and the folds of the next minute add, versions within twice those that are kept; every row
// is there once, at the head and in each state that is retained, and one that is not is told as pruned.
func TestFolderKeepsTablesSmall(t *testing.T) {
	w, store := cadenced(t, "node:New", "node:Same")
	cleaner, err := publisher.NewCleaner(w.publisherOptions(store), publisher.CleanOptions{OlderThan: 20 * time.Second, MinVersions: 10})
	require.NoError(t, err)
	cleaned := 0
	want := map[string][]string{}
	same := map[string]int{}
	most := map[heads.TableID]int{}
	for i := range 300 {
		key := fmt.Sprintf("k%02d", i%40)
		w.write("node:New", upsert(fmt.Sprintf("n%03d", i), i), insert("n000", -1))
		w.write("node:Same", upsert(key, i))
		same[key] = i
		want["node:New"] = append(want["node:New"], fmt.Sprintf("n%03d=%d", i, i))
		w.turn()
		for id, table := range w.folder.tables {
			most[id] = max(most[id], len(table.Fragments()))
		}
		if i%10 == 9 {
			done, err := cleaner.Clean(w.ctx)
			require.NoError(t, err)
			cleaned += done.Versions
		}
	}
	for key, value := range same {
		want["node:Same"] = append(want["node:Same"], fmt.Sprintf("%s=%d", key, value))
	}
	for table, rows := range want {
		slices.Sort(rows)
		require.Equal(t, rows, w.scan(table))
	}
	require.Equal(t, 300, len(w.rejects()))
	// MinFragments + log2(MaxRows) and four for each MaxRows rows are left, 60 folds come before the next look, and one call more is made after each fold.
	require.Len(t, most, 3)
	for id, n := range most {
		require.LessOrEqual(t, n, 8+9+4+60+3, "table %d", id)
	}
	require.Greater(t, most[w.table("node:New").ID], 60, "folds of a minute are not compacted before it is over")
	require.LessOrEqual(t, w.fragments("node:Same"), 8+9+4+40)
	require.Greater(t, cleaned, 3*200, "of three tables")
	pruned := w.heads().PrunedThrough
	_, err = heads.AtVersion(w.ctx, w.store, "", pruned)
	require.ErrorIs(t, err, heads.ErrPruned)
	for v := pruned + 1; v <= w.heads().Version; v += 7 {
		s, err := heads.AtVersion(w.ctx, w.store, "", v)
		require.NoError(t, err)
		for _, head := range s.Tables {
			at, err := s.OpenTable(w.ctx, w.store, head.Key)
			require.NoError(t, err)
			require.Len(t, w.scanVersion(at), int(head.Head.Rows))
			there, err := at.Versions(w.ctx, at.Version())
			require.NoError(t, err)
			require.LessOrEqual(t, len(there), 2*30+10+10, "%s: those retained, as many that may go, and what ten folds add", head.Key)
		}
	}
	files, err := w.store.List(w.ctx, w.table("node:Same").Path+"/data/", "", 0)
	require.NoError(t, err)
	require.Less(t, len(files), 150, "files go with the versions that named them")
}

// TestNothingToCompactCostsNothing: a look asks the store for nothing, but for tables that were not opened since the start: those are read once.
func TestNothingToCompactCostsNothing(t *testing.T) {
	w, store := cadenced(t, "node:A", "node:B")
	w.write("node:A", upsert("a", 1))
	w.turn()
	clear(w.folder.tables)
	w.clock.seconds.Add(60)
	store.Reset()
	w.turn()
	got := store.Counts()
	got.ReadBytes = 0
	require.Equal(t, countstore.Counts{List: 1, GetTail: 3}, got, "the fold's own LIST; both tables and the dead letters are opened")
	w.clock.seconds.Add(60)
	store.Reset()
	w.turn()
	require.Equal(t, countstore.Counts{List: 1}, store.Counts(), "%v", store.Calls())
}

// TestCompactOnRequest goes on until nothing is worth it, a call at a turn, also without a cadence.
func TestCompactOnRequest(t *testing.T) {
	w, _ := cadenced(t, "node:A")
	w.opts.Compact = CompactOptions{MaxRows: 8}
	w.claim(w.store)
	for i := range 20 {
		w.write("node:A", upsert(fmt.Sprintf("n%02d", i), i))
		w.turn()
	}
	require.Equal(t, 20, w.fragments("node:A"), "no cadence")
	done := make(chan CompactReport, 1)
	go func() {
		r, err := w.folder.Compact(w.ctx, "node:A")
		if err != nil {
			t.Error(err)
		}
		done <- r
	}()
	var r CompactReport
	for r.Commits == 0 {
		select {
		case r = <-done:
		case task := <-w.folder.tasks:
			w.folder.runTask(w.ctx, task)
		}
	}
	require.Greater(t, r.Commits, 1)
	require.Equal(t, 20, r.Before)
	require.Equal(t, r.After, w.fragments("node:A"))
	require.LessOrEqual(t, r.After, 4)
	require.Len(t, w.scan("node:A"), 20)
}
