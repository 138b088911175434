package publisher

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/countstore"
)

// requests are the counts of one piece of work, by verb.
type requests struct{ get, put, list, delete int }

func counted(c countstore.Counts) requests {
	return requests{get: c.Get + c.GetRange + c.GetTail + c.Stat, put: c.Put + c.PutIfAbsent + c.Upload, list: c.List, delete: c.Delete}
}

// TestRequestsOfAPublish pins what Publish itself costs for T tables (the fold has uploaded its files before): the record, one manifest and
// one LIST for each table, then 2 PUTs and 1 check for the heads, whatever T is. No GET and no DELETE: the record before goes with Tidy.
func TestRequestsOfAPublish(t *testing.T) {
	ctx := context.Background()
	store := countstore.New(objstore.NewMemory())
	p := newGraph(t, store)
	log := []entry{
		{{testTables[0], "a", 1, "upsert"}},
		{{testTables[0], "a", 2, "upsert"}},
		{{testTables[0], "a", 3, "upsert"}, {testTables[1], "x", 3, "upsert"}, {testTables[2], "r", 3, "upsert"}},
		{{testTables[0], "a", 4, "insert"}, {testTables[1], "x", 4, "upsert"}}, // one reject
	}
	want := []requests{
		{put: 1 + 1 + 2, list: 1 + 1},
		{put: 1 + 1 + 2, list: 1 + 1},
		{put: 1 + 3 + 2, list: 3 + 1},
		{put: 1 + 2 + 2, list: 2 + 1},
	}
	for i := range log {
		f, err := plan(ctx, p, log, uint64(i+1))
		require.NoError(t, err)
		store.Reset()
		_, err = p.Publish(ctx, f)
		require.NoError(t, err)
		got := counted(store.Counts())
		require.Equal(t, want[i], got, "publish %d: %v", i+1, store.Calls())
		manifest := counted(store.Under(heads.Join(testRoot, heads.ManifestPath)))
		require.Equal(t, requests{put: 2, list: 1}, manifest)
		store.Reset()
		require.NoError(t, p.Tidy(ctx))
		require.Equal(t, requests{delete: min(i, 1)}, counted(store.Counts()), "the record of the fold before goes")
	}
}

// TestRequestsOfAResolve pins the cost of "what is current?": one LIST of one key and two GETs, the hot file read whole by one of them; the
// definitions are one GET more; a folder that sees no change pays one LIST (P3).
func TestRequestsOfAResolve(t *testing.T) {
	ctx := context.Background()
	store := countstore.New(objstore.NewMemory())
	p := newGraph(t, store)
	log, _ := smallLog(), 0
	for _, through := range []uint64{3, 6, 7} {
		_, err := publishThrough(ctx, p, log, through)
		require.NoError(t, err)
	}
	store.Reset()
	s, err := heads.Current(ctx, store, testRoot)
	require.NoError(t, err)
	require.Equal(t, requests{get: 2, list: 1}, counted(store.Counts()), "%v", store.Calls())
	head, ok := s.Table(testTables[0])
	require.True(t, ok)
	require.Equal(t, heads.StateLive, head.Head.State)

	store.Reset()
	whole, err := heads.Resolve(ctx, store, testRoot)
	require.NoError(t, err)
	require.Equal(t, requests{get: 3, list: 1}, counted(store.Counts()), "%v", store.Calls())
	require.Equal(t, s.Version, whole.Version)

	_, err = p.Refresh(ctx)
	require.NoError(t, err)
	store.Reset()
	_, err = p.Refresh(ctx)
	require.NoError(t, err)
	require.Equal(t, requests{list: 1}, counted(store.Counts()), "%v", store.Calls())
}
