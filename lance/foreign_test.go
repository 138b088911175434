package lance

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/objstore"
)

// syncRecorder notes which objects are made durable.
type syncRecorder struct {
	*objstore.Local
	mu     sync.Mutex
	synced map[string]bool
}

func (s *syncRecorder) Sync(ctx context.Context, key string) error {
	s.mu.Lock()
	s.synced[key] = true
	s.mu.Unlock()
	return s.Local.Sync(ctx, key)
}

// engineTable copies a table that the engine made.
func engineTable(t *testing.T, name string) (*Table, *syncRecorder) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir+"/"+name, os.DirFS("testdata/engine/"+name)))
	local, err := objstore.OpenLocal(dir)
	require.NoError(t, err)
	store := &syncRecorder{Local: local, synced: make(map[string]bool)}
	table, err := Open(t.Context(), store, name)
	require.NoError(t, err)
	return table, store
}

func engineRows(from, to int) []pair {
	var out []pair
	for i := from; i < to; i++ {
		out = append(out, pair{fmt.Sprintf("k%06d", i), int64(i)})
	}
	return out
}

// TestEngineTables opens tables that the engine made, reads every version, merges rows in and reads again.
func TestEngineTables(t *testing.T) {
	for _, name := range []string{"v20", "v20_stable", "v21", "v21_stable", "v22", "v22_stable"} {
		t.Run(name, func(t *testing.T) {
			table, store := engineTable(t, name+".lance")
			require.EqualValues(t, 4, table.Version())
			require.Equal(t, strings.HasSuffix(name, "stable"), table.StableRowIDs())
			require.Equal(t, []string{"id"}, table.Schema().PrimaryKey())
			want := append(engineRows(0, 7), engineRows(8, 150)...)
			rows, _ := readRows(t, table, ScanOptions{})
			require.Equal(t, want, rows)
			for version, count := range map[uint64]int{1: 100, 2: 150, 3: 149} {
				old, err := table.At(t.Context(), version)
				require.NoError(t, err)
				rows, _ := readRows(t, old, ScanOptions{})
				require.Len(t, rows, count)
			}
			indexes, err := table.Indexes()
			require.NoError(t, err)
			require.Equal(t, []uint32{0, 1}, indexes[0].Fragments.ToArray())
			tagged, err := OpenTag(t.Context(), store, name+".lance", "made")
			require.NoError(t, err)
			require.EqualValues(t, 4, tagged.Version())

			// Row 3 is replaced and two rows are inserted.
			p := newPlan(t, store, name+".lance", map[string]int64{"k000003": 1003, "x": 1, "y": 2}, []string{"k000149"})
			fresh, err := table.KeepRowIDs(p.tx.Op.(*Update).NewFragments, []RowAddress{NewRowAddress(0, 3)})
			require.NoError(t, err)
			p.tx.Op.(*Update).NewFragments = fresh
			r, err := table.Commit(t.Context(), p.tx, CommitOptions{Affected: p.affected})
			require.NoError(t, err)
			model := make(map[string]int64)
			for _, row := range want {
				model[row.id] = row.v
			}
			p.apply(model)
			requireModel(t, r.Table, model)
			for _, f := range r.Table.m.pb.GetFragments() {
				require.Equal(t, table.m.pb.GetFragments()[0].GetFiles()[0].GetFileMinorVersion(), f.GetFiles()[0].GetFileMinorVersion(),
					"the table's version is that of all files")
			}
			require.Equal(t, table.m.index, r.Table.m.index)
			require.True(t, store.synced[table.m.object], "the version that ours stands on was made durable")
			for _, f := range table.Fragments() {
				require.True(t, store.synced[name+".lance/data/"+f.Files()[0].Path])
			}
			clear(store.synced)
			mustCommit(t, r.Table, &UpdateConfig{}, CommitOptions{})
			require.Empty(t, store.synced, "our own version is durable already")
		})
	}
}

func TestEngineBitmapDeletions(t *testing.T) {
	table, _ := engineTable(t, "bitmap.lance")
	require.True(t, strings.HasSuffix(table.Fragments()[0].DeletionPath(), ".bin"))
	rows, _ := readRows(t, table, ScanOptions{})
	require.Len(t, rows, 6000)
	require.Equal(t, pair{"k000001", 1}, rows[0])
	deleted, err := table.Deletions(t.Context(), 0)
	require.NoError(t, err)
	require.EqualValues(t, 6000, deleted.GetCardinality())
	rec, err := table.Take(t.Context(), []RowAddress{NewRowAddress(0, 11), NewRowAddress(0, 3)}, nil)
	require.NoError(t, err)
	require.Equal(t, []pair{{"k000011", 11}, {"k000003", 3}}, pairsOf(rec))
	rec.Release()
	_, err = table.Take(t.Context(), []RowAddress{NewRowAddress(0, 10)}, nil)
	require.ErrorIs(t, err, ErrNotFound)
	_, _, err = table.DeleteRows(t.Context(), map[uint64]*roaring.Bitmap{0: roaring.BitmapOf(10)})
	require.ErrorIs(t, err, ErrInvalid)
}

// TestBaseOfAnotherEngineIsCleanedUp: the version of another engine that ours stands on goes, with its files, before the commit could make it
// durable. A later version is there, so that is a lost race and no damage.
func TestBaseOfAnotherEngineIsCleanedUp(t *testing.T) {
	for name, c := range map[string]struct {
		gone []uint64
		op   Operation
		want error
	}{
		"missed transactions are there": {[]uint64{4}, &Append{}, nil},
		"missed transactions are gone":  {[]uint64{4, 5}, &Append{}, ErrConflict},
		"a barrier asks for none":       {[]uint64{4, 5}, &UpdateConfig{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			base, store := engineTable(t, "v21.lance")
			latest := base
			for range c.gone {
				latest = mustCommit(t, latest, &UpdateConfig{}, CommitOptions{})
			}
			require.NoError(t, latest.DeleteVersions(t.Context(), c.gone))
			r, err := base.Commit(t.Context(), NewTransaction(base, c.op), CommitOptions{})
			if c.want != nil {
				require.ErrorIs(t, err, c.want)
				return
			}
			require.NoError(t, err)
			require.Equal(t, latest.Version()+1, r.Table.Version())
			newest, err := LatestVersion(t.Context(), store, "v21.lance")
			require.NoError(t, err)
			require.Equal(t, r.Table.Version(), newest)
		})
	}
}

// TestLostFileOfAnotherEngine: a file that the newest version names and nobody can find is no race.
func TestLostFileOfAnotherEngine(t *testing.T) {
	base, store := engineTable(t, "v21.lance")
	require.NoError(t, store.Delete(t.Context(), join(base.root, dataFolder, base.Fragments()[0].m.GetFiles()[0].GetPath())))
	_, err := base.Commit(t.Context(), NewTransaction(base, &UpdateConfig{}), CommitOptions{})
	require.ErrorIs(t, err, ErrNotFound)
	require.NotErrorIs(t, err, ErrConflict)
}
