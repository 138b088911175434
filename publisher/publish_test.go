package publisher

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/objstore"
)

// smallLog is a history with every operation in it, over three tables.
func smallLog() []entry {
	return []entry{
		{{testTables[0], "a", 1, "upsert"}, {testTables[1], "x", 1, "insert"}, {testTables[2], "r", 1, "upsert"}},
		{{testTables[0], "b", 2, "upsert"}},
		{{testTables[1], "y", 2, "upsert"}},
		// second fold
		{{testTables[0], "a", 10, "upsert"}, {testTables[1], "x", 99, "insert"}, {testTables[2], "q", 3, "insert"}},
		{{testTables[0], "b", 0, "delete"}, {testTables[1], "z", 4, "insert"}},
		{{testTables[2], "nobody", 0, "delete"}},
		// third fold
		{{testTables[0], "b", 30, "insert"}, {testTables[1], "x", 31, "upsert"}, {testTables[2], "r", 0, "delete"}},
	}
}

func TestFoldsArePublishedWhole(t *testing.T) {
	ctx := context.Background()
	store := objstore.NewMemory()
	p := newGraph(t, store)
	log, m := smallLog(), newModel()
	from := uint64(0)
	for i, through := range []uint64{3, 6, 7} {
		published, err := publishThrough(ctx, p, log, through)
		require.NoError(t, err)
		m.apply(log, from, through)
		from = through
		require.NoError(t, m.check(ctx, store, log))
		require.Equal(t, uint64(i+1), published.Commit.Fold)
		require.Equal(t, published.Commit, published.Snapshot.Commit)
		cut, _ := published.Snapshot.Cut(0, testIncarnation)
		require.Equal(t, through, cut.Through)
	}
	commits, err := heads.Log(ctx, store, testRoot, 0)
	require.NoError(t, err)
	require.Equal(t, heads.KindFold, commits[0].Kind)
	require.Equal(t, heads.KindInit, commits[len(commits)-1].Kind)
	for i := range commits[:len(commits)-1] {
		require.Equal(t, commits[i+1].ID, commits[i].Parent)
		require.True(t, commits[i].CreatedAt.After(commits[i+1].CreatedAt))
	}
}
