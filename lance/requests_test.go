package lance

import (
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/countstore"
)

// TestReadAndWriteRequests gates the requests of what touches data files: a small file is read by one GET and written by one
// upload, a deletion file by one GET and one PUT.
func TestReadAndWriteRequests(t *testing.T) {
	store := countstore.New(objstore.NewMemory())
	table := newTestTable(t, store)
	store.Reset()
	fragments := writeRows(t, table, numbered(0, 200), WriteOptions{MaxRowsPerFile: 100})
	require.Equal(t, 2, store.Counts().Upload)
	require.Equal(t, 2, store.Counts().Requests())
	table = mustCommit(t, table, &Append{Fragments: fragments}, CommitOptions{})
	table = mustCommit(t, table, planDelete(t, table, rows{0: roaring.BitmapOf(4)}), CommitOptions{})

	store.Reset()
	readRows(t, table, ScanOptions{})
	require.Equal(t, countstore.Counts{GetRange: 2, Get: 1}, withoutReadBytes(store.Counts()), "%v", store.Calls())

	store.Reset()
	rec, err := table.Take(t.Context(), []RowAddress{NewRowAddress(0, 5), NewRowAddress(1, 7), NewRowAddress(0, 9)}, nil)
	require.NoError(t, err)
	rec.Release()
	require.Equal(t, countstore.Counts{GetRange: 2, Get: 1}, withoutReadBytes(store.Counts()), "%v", store.Calls())

	store.Reset()
	op, err := table.Compact(t.Context(), CompactOptions{})
	require.NoError(t, err)
	require.Equal(t, countstore.Counts{GetRange: 2, Get: 1, Upload: 1}, withoutBytes(store.Counts()), "%v", store.Calls())
	mustCommit(t, table, op, CommitOptions{})
}

// TestTakeModel compares Take with indexing into what a scan returned, for any order and repeats.
func TestTakeModel(t *testing.T) {
	table := newTestTable(t, objstore.NewMemory())
	table = mustCommit(t, table, &Append{Fragments: writeRows(t, table, numbered(0, 60), WriteOptions{MaxRowsPerFile: 20})}, CommitOptions{})
	table = mustCommit(t, table, planDelete(t, table, rows{0: roaring.BitmapOf(0, 4), 2: roaring.BitmapOf(19)}), CommitOptions{})
	live, addresses := readRows(t, table, ScanOptions{})
	rapid.Check(t, func(rt *rapid.T) {
		picks := rapid.SliceOfN(rapid.IntRange(0, len(live)-1), 0, 2*len(live)).Draw(rt, "picks")
		var wanted []RowAddress
		want := make([]pair, len(picks))
		for i, at := range picks {
			wanted = append(wanted, addresses[at])
			want[i] = live[at]
		}
		rec, err := table.Take(t.Context(), wanted, nil)
		require.NoError(rt, err)
		require.Equal(rt, want, pairsOf(rec))
		rec.Release()
	})
}

// TestDeleteRowsRequests gates what deleting costs: a PUT for each touched fragment, a GET more where rows were deleted before, none for a
// fragment that goes as a whole. The requests run side by side.
func TestDeleteRowsRequests(t *testing.T) {
	store := countstore.New(objstore.NewMemory())
	table := newTestTable(t, store)
	table = mustCommit(t, table, &Append{Fragments: writeRows(t, table, numbered(0, 400), WriteOptions{MaxRowsPerFile: 10})}, CommitOptions{})
	first := rows{}
	for id := range uint64(20) {
		first[id] = roaring.BitmapOf(uint32(id % 10))
	}
	table = mustCommit(t, table, planDelete(t, table, first), CommitOptions{})
	second := rows{}
	for id := range uint64(40) {
		second[id] = roaring.BitmapOf(uint32((id + 1) % 10))
	}
	second[39] = roaring.New()
	second[39].AddRange(0, 10)
	store.Reset()
	updated, removed, err := table.DeleteRows(t.Context(), second)
	require.NoError(t, err)
	require.Equal(t, countstore.Counts{Get: 20, Put: 39}, withoutBytes(store.Counts()), "%v", store.Calls())
	require.Equal(t, []uint64{39}, removed)
	require.Len(t, updated, 39)
	for i, f := range updated {
		require.EqualValues(t, i, f.ID(), "ascending, however they ran")
	}
	done := mustCommit(t, table, &Delete{UpdatedFragments: updated, DeletedFragmentIDs: removed}, CommitOptions{})
	live, _ := readRows(t, done, ScanOptions{})
	require.Len(t, live, 400-20-39-10)

	_, _, err = table.DeleteRows(t.Context(), rows{3: roaring.BitmapOf(3), 99: roaring.BitmapOf(1)})
	require.ErrorIs(t, err, ErrInvalid)
}

func withoutBytes(c countstore.Counts) countstore.Counts {
	c.ReadBytes, c.WrittenBytes = 0, 0
	return c
}
