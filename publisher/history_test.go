package publisher

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/countstore"
)

// openHistory opens the newest version of the history.
func openHistory(t *testing.T, store objstore.Store) *lance.Table {
	table, err := lance.Open(context.Background(), store, heads.Join(testRoot, heads.HistoryPath))
	require.NoError(t, err)
	return table
}

// TestHistoryStaysSmallAndWhole: through many moves the history has few fragments, few versions and no file without a version that names
// it; the log is whole after each, and a short look back reads little of it.
func TestHistoryStaysSmallAndWhole(t *testing.T) {
	ctx := context.Background()
	inner := objstore.NewMemory()
	g := newTicking(t, inner, Retention{MinVersions: 20, MaxVersions: 20})
	most, merged := 0, false
	for i := range 80 * journalKeep {
		g.publish(t, time.Second)
		if i%journalKeep != 0 {
			continue
		}
		h := openHistory(t, inner)
		most, merged = max(most, len(h.Fragments())), merged || len(h.Fragments()) < most
		require.Less(t, len(h.Fragments()), mergeBehind+4*mergeFanout)
		versions, err := h.Versions(ctx, h.Version())
		require.NoError(t, err)
		require.LessOrEqual(t, len(versions), historyVersions+2*pruneStep)
	}
	require.True(t, merged)
	h := openHistory(t, inner)
	require.Greater(t, h.Fragments()[0].Rows(), uint64(500), "the oldest were merged again and again")

	store := countstore.New(inner)
	commits, err := heads.Log(ctx, store, testRoot, 0)
	require.NoError(t, err)
	require.Len(t, commits, int(g.p.snap.Version-1))
	require.Equal(t, requests{get: 2 + 1 + len(h.Fragments()), list: 1}, counted(store.Counts()), "each fragment by one GET")
	store.Reset()
	commits, err = heads.Log(ctx, store, testRoot, 100)
	require.NoError(t, err)
	require.Len(t, commits, 100)
	require.LessOrEqual(t, store.Counts().Get, 2+1+100/journalKeep)
	store.Reset()
	_, err = heads.Log(ctx, store, testRoot, journalKeep)
	require.NoError(t, err)
	require.Equal(t, requests{get: 2, list: 1}, counted(store.Counts()), "the hot tail is enough")
	checkHistoryFiles(t, inner)
}

// checkHistoryFiles: every data file is named by a version that is there.
func checkHistoryFiles(t *testing.T, store objstore.Store) {
	ctx := context.Background()
	h := openHistory(t, store)
	versions, err := h.Versions(ctx, h.Version())
	require.NoError(t, err)
	named := map[string]bool{}
	for _, v := range versions {
		at, err := h.At(ctx, v)
		require.NoError(t, err)
		for _, f := range at.Fragments() {
			for _, file := range f.Files() {
				named[dataPath(h.Root(), file.Path)] = true
			}
		}
	}
	there, err := store.List(ctx, h.Root()+"/data/", "", 0)
	require.NoError(t, err)
	for _, info := range there {
		require.True(t, named[info.Key], info.Key)
	}
	require.Len(t, there, len(named))
}

// TestPublishMovesItsOwnHistory: a folder whose history cannot be written keeps publishing until 64 graph commits wait, and then moves
// them in the publish itself; what was in between is neither lost nor there twice.
func TestPublishMovesItsOwnHistory(t *testing.T) {
	ctx := context.Background()
	store := objstore.NewMemory()
	p := newGraph(t, store)
	var log []entry
	longest := 0
	for i := range 150 { // nobody tidies but for the publish before
		p.untidy = false
		log = append(log, entry{{testTables[0], "a", int64(i), "upsert"}})
		_, err := publishThrough(ctx, p, log, uint64(i+1))
		require.NoError(t, err)
		longest = max(longest, len(p.snap.Journal))
		require.LessOrEqual(t, len(p.snap.Journal), journalLimit)
	}
	require.Equal(t, journalLimit, longest)
	commits, err := heads.Log(ctx, store, testRoot, 0)
	require.NoError(t, err)
	require.Len(t, commits, int(p.snap.Version-1))
}

// TestTwoMoversMoveOnce: of two that move the same commits from the same version one loses, its files are gone, and the other's rows are there
// once; a mover that comes late finds that nothing is left to do.
func TestTwoMoversMoveOnce(t *testing.T) {
	ctx := context.Background()
	store := objstore.NewMemory()
	g := newTicking(t, store, Retention{})
	for len(g.p.snap.Journal) < 2*journalKeep-1 {
		g.publish(t, time.Second)
	}
	stale := *g.p.manifest
	commits := slices.Clone(g.p.snap.Journal[:8])
	before := openHistory(t, store)
	update := &lance.Update{PreservedFields: fieldIDs(before.Schema())}
	_, err := g.p.appendHistory(ctx, before, update, commits[:4])
	require.NoError(t, err)
	_, err = stale.appendHistory(ctx, before, &lance.Update{PreservedFields: fieldIDs(before.Schema())}, commits)
	require.ErrorIs(t, err, lance.ErrConflict)
	checkHistoryFiles(t, store)
	moved, err := stale.moveHistory(ctx, commits, g.p.snap.History, true)
	require.NoError(t, err)
	require.Equal(t, commits[7].Version, moved.Through)
	again, err := g.p.moveHistory(ctx, commits, g.p.snap.History, true)
	require.NoError(t, err)
	require.Equal(t, moved, again)
	for range 3 * journalKeep {
		g.publish(t, time.Second)
	}
	log, err := heads.Log(ctx, store, testRoot, 0)
	require.NoError(t, err)
	require.Len(t, log, int(g.p.snap.Version-1))
}

// TestMergeable: what is made one, by the rows of the fragments in front of the newest eight.
func TestMergeable(t *testing.T) {
	small := func(n int) []uint64 { return slices.Repeat([]uint64{100}, n) }
	large := func(n int, rows uint64) []uint64 { return slices.Repeat([]uint64{rows}, n) }
	for name, c := range map[string]struct {
		rows []uint64
		want int
	}{
		"too few":                       {small(7), 0},
		"eight":                         {small(8), 8},
		"small ones behind a large":     {append(large(1, 5000), small(8)...), 8},
		"large ones go with small ones": {append(large(6, 800), small(8)...), 14},
		"a large one among them":        {slices.Concat(small(7), large(1, 5000), small(7)), 0},
		"too much":                      {large(9, maxMergedRows/7), 0},
		"what is full stays":            {append(large(8, maxMergedRows/2), small(8)...), 8},
	} {
		from, to := mergeable(append(c.rows, small(mergeBehind)...))
		require.Equal(t, c.want, to-from, name)
		require.True(t, from == to || to == len(c.rows), name)
	}
}
