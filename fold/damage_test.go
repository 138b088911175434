package fold

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/testkit"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
)

// damageable is a graph of two tables, written and folded once, whose folder holds nothing of them in memory.
func damageable(t *testing.T) *world {
	w := newWorld(t, objstore.NewMemory(), 1, noteTable("node:T"), noteTable("node:Other"))
	w.indexFS, w.clock = nil, &manualClock{} // an index would find the rows without the data files
	w.write("node:T", upsert("kept", 1))
	w.write("node:Other", upsert("kept", 1))
	w.fold()
	w.claim(w.store)
	_, err := w.folder.publisher.Adopt(w.ctx) // the barriers, so that heads are the newest versions
	require.NoError(t, err)
	return w
}

// TestDamagedTableStopsNoOther: a table that cannot be read is suspended at once; what was acknowledged before its first row is folded, its rows wait for
// SuspendAfter and are dead letters then, and the others go on (F4, architecture 7.6).
func TestDamagedTableStopsNoOther(t *testing.T) {
	for _, damage := range testkit.Damages() {
		t.Run(damage.Name, func(t *testing.T) {
			w := damageable(t)
			defer w.close()
			require.NoError(t, damage.Do(t.Context(), w.store, w.table("node:T").Path))
			w.write("node:Other", upsert("before", 2))
			w.write("node:T", upsert("lost", 2), insert("new", 3), remove("kept"))
			w.write("node:Other", upsert("after", 3))

			w.fold()
			held := w.table("node:T").Head
			require.Equal(t, heads.StateSuspended, held.State)
			require.NotEmpty(t, held.Hold.Reason)
			require.Equal(t, w.clock.now().UTC(), held.Hold.Since)
			require.Equal(t, []string{"before=2", "kept=1"}, w.scan("node:Other"))
			require.Empty(t, w.rejects())
			version := w.heads().Version
			w.clock.seconds.Add(29)
			require.True(t, w.fold().Empty(), "its rows wait")
			require.Equal(t, version, w.heads().Version)

			w.clock.seconds.Add(1)
			require.Equal(t, 3, w.fold().Rejected)
			require.Equal(t, []string{"after=3", "before=2", "kept=1"}, w.scan("node:Other"))
			require.Equal(t, []string{`node:T upsert table_unavailable {"id":"lost","value":2}`, `node:T insert table_unavailable {"id":"new","value":3}`,
				`node:T delete table_unavailable {"id":"kept"}`}, w.rejects())
			w.claim(w.store)
			w.write("node:Other", upsert("more", 4))
			w.fold()
			require.Len(t, w.scan("node:Other"), 4)
		})
	}
}

// TestDamageThatPasses: a table that can be read again within the wait takes its rows, in their order, and none is a dead letter.
func TestDamageThatPasses(t *testing.T) {
	w := damageable(t)
	defer w.close()
	path := w.table("node:T").Path
	before := w.objects(path)
	require.NoError(t, testkit.Damages()[1].Do(t.Context(), w.store, path))
	w.write("node:T", upsert("new", 2))
	w.write("node:Other", upsert("after", 3))
	require.True(t, w.fold().Empty())
	require.Equal(t, heads.StateSuspended, w.table("node:T").Head.State)

	for key, bytes := range before {
		require.NoError(t, w.store.Put(t.Context(), key, bytes))
	}
	require.True(t, w.fold().Empty(), "it is tried again once a second")
	w.clock.seconds.Add(1)
	require.Equal(t, 2, w.fold().Rows)
	require.Equal(t, heads.Head{}.Hold, w.table("node:T").Head.Hold)
	require.Equal(t, []string{"kept=1", "new=2"}, w.scan("node:T"))
	require.Empty(t, w.rejects())
}

// objects are the bytes under a path.
func (w *world) objects(path string) map[string][]byte {
	w.t.Helper()
	infos, err := w.store.List(w.ctx, path+"/", "", 0)
	require.NoError(w.t, err)
	out := map[string][]byte{}
	for _, i := range infos {
		bytes, err := w.store.Get(w.ctx, i.Key)
		require.NoError(w.t, err)
		out[i.Key] = slices.Clone(bytes)
	}
	return out
}

// TestTableMadeAgain: somebody deleted a table and made another one at its place. It is suspended, not folded onto.
func TestTableMadeAgain(t *testing.T) {
	w := damageable(t)
	defer w.close()
	table := w.table("node:T")
	old, err := lance.Open(t.Context(), w.store, table.Path)
	require.NoError(t, err)
	for key := range w.objects(table.Path) {
		require.NoError(t, w.store.Delete(t.Context(), key))
	}
	_, err = lance.Create(t.Context(), w.store, table.Path, old.Schema(), lance.CreateOptions{})
	require.NoError(t, err)
	for range table.Head.Version - 1 {
		again, err := lance.Open(t.Context(), w.store, table.Path)
		require.NoError(t, err)
		_, err = again.Commit(t.Context(), lance.NewTransaction(again, &lance.UpdateConfig{TableMetadata: &lance.MapUpdate{Set: map[string]string{"a": "b"}}}), lance.CommitOptions{})
		require.NoError(t, err)
	}
	w.write("node:T", upsert("new", 2))
	w.write("node:Other", upsert("after", 3))
	w.fold()
	require.Equal(t, heads.StateSuspended, w.table("node:T").Head.State)
	w.clock.seconds.Add(30)
	require.Equal(t, 1, w.fold().Rejected)
}
