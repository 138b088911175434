package fold

import (
	"io/fs"
	"os"
	"testing"

	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/publisher"
)

// engineTables are those of lance/testdata/engine/make.py: rows k000000 to k000149 but k000007, in two fragments, with an index.
const engineTables = "../lance/testdata/engine/"

// enrolledWorld is a graph that has taken over one of them.
func enrolledWorld(t *testing.T, name string) *world {
	t.Helper()
	store := objstore.NewMemory()
	dir := os.DirFS(engineTables + name + ".lance")
	require.NoError(t, fs.WalkDir(dir, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(dir, path)
		require.NoError(t, err)
		return store.Put(t.Context(), "theirs.lance/"+path, data)
	}))
	w := newWorld(t, store, 1)
	p, err := publisher.Claim(w.ctx, publisher.Options{Store: store}, "test")
	require.NoError(t, err)
	_, err = p.EnrolTable(w.ctx, publisher.EnrolSpec{Path: "theirs.lance", TableSpec: publisher.TableSpec{Key: "node:T"}})
	require.NoError(t, err)
	w.specs = []publisher.TableSpec{{Key: "node:T", Columns: []heads.Column{{Name: "id", Type: "string"}, {Name: "v", Type: "int64", Nullable: true}}}}
	w.claim(store)
	w.lanes[0].learn(w)
	return w
}

// born is a row's id and the versions that made and last wrote it.
type born struct{ id, created, updated uint64 }

// lineage reads them by key at the newest version, and holds ids to be unique.
func (w *world) lineage() map[string]born {
	w.t.Helper()
	table, err := lance.Open(w.ctx, w.store, "theirs.lance")
	require.NoError(w.t, err)
	out, seen := map[string]born{}, map[uint64]bool{}
	for rec, err := range table.Scan(w.ctx, lance.ScanOptions{Columns: []string{"id"}, RowAddress: true}) {
		require.NoError(w.t, err)
		at := rec.Column(1).(*array.Uint64)
		for i := range int(rec.NumRows()) {
			a := lance.RowAddress(at.Value(i))
			f, _ := table.Fragment(uint64(a.Fragment()))
			l, err := f.Lineage()
			require.NoError(w.t, err)
			b := born{l.IDs[a.Offset()], l.CreatedAt[a.Offset()], l.UpdatedAt[a.Offset()]}
			require.False(w.t, seen[b.id], "row id %d twice", b.id)
			seen[b.id] = true
			out[rec.Column(0).ValueStr(i)] = b
		}
		rec.Release()
	}
	return out
}

// TestFoldIntoEnrolledTables merges into tables that the engine made, in every file version, with and without stable row ids: rows are
// replaced, added, deleted and refused as in a table of ours, and a replaced row keeps its id and birth.
func TestFoldIntoEnrolledTables(t *testing.T) {
	for _, name := range []string{"v20", "v20_stable", "v21", "v21_stable", "v22", "v22_stable"} {
		for _, rival := range []bool{false, true} {
			t.Run(name+map[bool]string{true: " with a rival"}[rival], func(t *testing.T) {
				w := enrolledWorld(t, name)
				defer w.close()
				stable := name != name[:3]
				require.Len(t, w.scan("node:T"), 149)
				if rival {
					once := false
					w.opts.Step = func(s string) {
						if s == "prepared" && !once {
							once = true
							w.foreign("node:T", true, map[string]int64{"fresh": 100, "k000005": 100, "theirs": 100})
						}
					}
					w.claim(w.store)
				}
				var before map[string]born
				if stable {
					before = w.lineage()
				}
				w.write("node:T", upsert("fresh", 1), upsert("k000003", 1003), upsert("second", 2), insert("k000010", 9), remove("k000149"), upsert("k000005", 1005))
				require.Equal(t, 1, w.fold().Rejected)
				rows := w.scan("node:T")
				want := map[bool]int{false: 150, true: 151}[rival]
				require.Len(t, rows, want)
				for _, row := range []string{"fresh=1", "second=2", "k000003=1003", "k000005=1005", "k000010=10"} {
					require.Contains(t, rows, row)
				}
				require.NotContains(t, rows, "k000149=149")
				if !stable {
					return
				}
				after := w.lineage()
				table, err := lance.Open(w.ctx, w.store, "theirs.lance")
				require.NoError(t, err)
				for key, was := range before {
					if now, ok := after[key]; ok && (!rival || key != "k000005") {
						require.Equal(t, was.id, now.id, key)
						require.Equal(t, was.created, now.created, key)
					}
				}
				require.Equal(t, table.Version(), after["k000003"].updated)
				require.Equal(t, table.Version(), after["second"].created)
				require.Equal(t, rival, after["fresh"].created < table.Version(), "a row that a rival made keeps its birth")
			})
		}
	}
}
