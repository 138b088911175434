package lance

import (
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/lance/internal/deletion"
	"github.com/foldline/foldline/lance/internal/pb"
	"github.com/foldline/foldline/objstore"
)

func TestCompactKeepsRows(t *testing.T) {
	store := objstore.NewMemory()
	table := newTestTable(t, store)
	want := numbered(0, 500)
	table = mustCommit(t, table, &Append{Fragments: writeRows(t, table, want, WriteOptions{MaxRowsPerFile: 50})}, CommitOptions{})
	gone := rows{3: roaring.BitmapOf(0, 7, 49)}
	updated, removed, err := table.DeleteRows(t.Context(), gone)
	require.NoError(t, err)
	table = mustCommit(t, table, &Delete{UpdatedFragments: updated, DeletedFragmentIDs: removed}, CommitOptions{})
	left, _ := readRows(t, table, ScanOptions{})
	op, err := table.Compact(t.Context(), CompactOptions{TargetRows: 200})
	require.NoError(t, err)
	require.Len(t, op.Groups, 3)
	compacted := mustCommit(t, table, op, CommitOptions{})
	rows, _ := readRows(t, compacted, ScanOptions{})
	require.Equal(t, left, rows)
	require.Len(t, compacted.Fragments(), 3)
	again, err := compacted.Compact(t.Context(), CompactOptions{TargetRows: 100})
	require.NoError(t, err)
	require.Nil(t, again, "nothing is left to do")
	// A deletion that lands meanwhile must not be lost.
	op, err = compacted.Compact(t.Context(), CompactOptions{})
	require.NoError(t, err)
	mustCommit(t, compacted, planDelete(t, compacted, map[uint64]*roaring.Bitmap{compacted.Fragments()[0].ID(): roaring.BitmapOf(1)}), CommitOptions{})
	_, err = compacted.Commit(t.Context(), NewTransaction(compacted, op), CommitOptions{})
	require.ErrorIs(t, err, ErrConflict)
}

// TestCompactionPlan: what is joined, what is rewritten alone, and what an index protects up to the second bound.
func TestCompactionPlan(t *testing.T) {
	fragment := func(id, physical, deleted uint64) *pb.DataFragment {
		f := &pb.DataFragment{Id: id, PhysicalRows: physical}
		if deleted > 0 {
			f.DeletionFile = &pb.DeletionFile{NumDeletedRows: deleted}
		}
		return f
	}
	indexed, err := deletion.EncodeBitmap(roaring.BitmapOf(5, 6))
	require.NoError(t, err)
	section, err := marshal(&pb.IndexSection{Indices: []*pb.IndexMetadata{{Name: "i", FragmentBitmap: indexed}}})
	require.NoError(t, err)
	m := &pb.Manifest{Fragments: []*pb.DataFragment{
		fragment(0, 10, 0), fragment(1, 10, 0), fragment(2, 100, 0), fragment(3, 100, 30), fragment(4, 100, 5), fragment(5, 10, 4),
		fragment(6, 10, 6), fragment(7, 10, 0), fragment(8, 100, 0), fragment(9, 10, 0),
	}}
	table, err := newTable(nil, "", namingV2, newManifest("m", m, nil, section, 0))
	require.NoError(t, err)
	o := CompactOptions{TargetRows: 100}
	o.ensureDefaults()
	covered, err := table.indexedFragments()
	require.NoError(t, err)
	var got [][]uint64
	for _, g := range table.planGroups(covered, o) {
		got = append(got, fragmentIDs(g))
	}
	require.Equal(t, [][]uint64{{0, 1}, {3}, {6, 7}}, got)
}
