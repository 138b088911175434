package lance

import (
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/foldline/foldline/objstore"
)

type rows = map[uint64]*roaring.Bitmap

// planDelete builds a Delete of the given rows on t.
func planDelete(t *testing.T, table *Table, r rows) Operation {
	t.Helper()
	updated, removed, err := table.DeleteRows(t.Context(), r)
	require.NoError(t, err)
	return &Delete{UpdatedFragments: updated, DeletedFragmentIDs: removed}
}

// TestRebase walks the cases of merging deletion vectors: ours and theirs are both planned on version 2, which has fragments 0
// and 1 of ten rows; theirs lands first.
func TestRebase(t *testing.T) {
	all := roaring.New()
	all.AddRange(0, 10)
	half := roaring.New()
	half.AddRange(5, 10)
	other := roaring.New()
	other.AddRange(0, 5)
	for name, c := range map[string]struct {
		ours, theirs rows
		blind        bool // our rows are not told to the commit
		err          error
		left         uint64
		fragments    []uint64
	}{
		"disjoint fragments":      {ours: rows{0: roaring.BitmapOf(1)}, theirs: rows{1: roaring.BitmapOf(1)}, left: 18, fragments: []uint64{0, 1}},
		"disjoint rows":           {ours: rows{0: roaring.BitmapOf(1)}, theirs: rows{0: roaring.BitmapOf(2)}, left: 18, fragments: []uint64{0, 1}},
		"same row":                {ours: rows{0: roaring.BitmapOf(1)}, theirs: rows{0: roaring.BitmapOf(1)}, err: ErrConflict},
		"rows unknown":            {ours: rows{0: roaring.BitmapOf(1)}, theirs: rows{0: roaring.BitmapOf(2)}, blind: true, err: ErrConflict},
		"blind, disjoint":         {ours: rows{0: roaring.BitmapOf(1)}, theirs: rows{1: roaring.BitmapOf(2)}, blind: true, left: 18, fragments: []uint64{0, 1}},
		"together the whole":      {ours: rows{0: half}, theirs: rows{0: other}, left: 10, fragments: []uint64{1}},
		"theirs removed it":       {ours: rows{0: roaring.BitmapOf(1)}, theirs: rows{0: all}, err: ErrConflict},
		"ours removes it":         {ours: rows{0: all}, theirs: rows{0: roaring.BitmapOf(1)}, err: ErrConflict},
		"both remove different":   {ours: rows{0: all}, theirs: rows{1: all}, left: 0},
		"ours removes, untouched": {ours: rows{0: all}, theirs: rows{1: roaring.BitmapOf(3)}, left: 9, fragments: []uint64{1}},
	} {
		t.Run(name, func(t *testing.T) {
			store := objstore.NewMemory()
			v2 := mustCommit(t, newTestTable(t, store), &Append{Fragments: []Fragment{madeUp(10), madeUp(10)}}, CommitOptions{})
			ours := planDelete(t, v2, c.ours)
			mustCommit(t, v2, planDelete(t, v2, c.theirs), CommitOptions{})
			o := CommitOptions{Affected: c.ours}
			if c.blind {
				o.Affected = nil
			}
			r, err := v2.Commit(t.Context(), NewTransaction(v2, ours), o)
			if c.err != nil {
				require.ErrorIs(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.left, r.Table.Rows())
			require.ElementsMatch(t, c.fragments, ids(r.Table))
			tx, err := r.Table.Transaction(t.Context())
			require.NoError(t, err)
			require.EqualValues(t, 3, tx.ReadVersion, "a rebased transaction is stamped with what it stands on")
			for _, f := range r.Table.Fragments() {
				deleted, err := r.Table.Deletions(t.Context(), f.ID())
				require.NoError(t, err)
				want := roaring.New()
				for _, side := range []rows{c.ours, c.theirs} {
					if side[f.ID()] != nil {
						want.Or(side[f.ID()])
					}
				}
				require.True(t, want.Equals(deleted), "fragment %d", f.ID())
			}
		})
	}
}

// TestRebaseOverChangedFiles: a fragment whose data files were replaced cannot be merged with.
func TestRebaseOverChangedFiles(t *testing.T) {
	store := objstore.NewMemory()
	v2 := mustCommit(t, newTestTable(t, store), &Append{Fragments: []Fragment{madeUp(10)}}, CommitOptions{})
	ours := planDelete(t, v2, rows{0: roaring.BitmapOf(1)})
	changed := Fragment{proto.CloneOf(v2.Fragments()[0].m)}
	changed.m.Files[0].Path = dataFileName()
	mustCommit(t, v2, &Update{UpdatedFragments: []Fragment{changed}}, CommitOptions{})
	_, err := v2.Commit(t.Context(), NewTransaction(v2, ours), CommitOptions{Affected: rows{0: roaring.BitmapOf(1)}})
	require.ErrorIs(t, err, ErrConflict)
}

// TestRebaseChain lands ours after several deletions of others.
func TestRebaseChain(t *testing.T) {
	store := objstore.NewMemory()
	v2 := mustCommit(t, newTestTable(t, store), &Append{Fragments: []Fragment{madeUp(10)}}, CommitOptions{})
	ours := planDelete(t, v2, rows{0: roaring.BitmapOf(9)})
	latest := v2
	for i := range uint32(4) {
		latest = mustCommit(t, latest, planDelete(t, latest, rows{0: roaring.BitmapOf(i)}), CommitOptions{})
	}
	r, err := v2.Commit(t.Context(), NewTransaction(v2, ours), CommitOptions{Affected: rows{0: roaring.BitmapOf(9)}})
	require.NoError(t, err)
	deleted, err := r.Table.Deletions(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, []uint32{0, 1, 2, 3, 9}, deleted.ToArray())
}

// TestReadVersionGone: a planned-on version that was cleaned away cannot be rebased from.
func TestReadVersionGone(t *testing.T) {
	store := objstore.NewMemory()
	v2 := mustCommit(t, newTestTable(t, store), &Append{Fragments: []Fragment{madeUp(10)}}, CommitOptions{})
	tx := NewTransaction(v2, planDelete(t, v2, rows{0: roaring.BitmapOf(9)}))
	v3 := mustCommit(t, v2, planDelete(t, v2, rows{0: roaring.BitmapOf(1)}), CommitOptions{})
	require.NoError(t, v3.DeleteVersions(t.Context(), []uint64{2}))
	_, err := v3.Commit(t.Context(), tx, CommitOptions{Affected: rows{0: roaring.BitmapOf(9)}})
	require.ErrorIs(t, err, ErrConflict)
}
