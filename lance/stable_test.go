package lance

import (
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/objstore"
)

// newStableTable returns a table with stable row ids, which only other engines create: an empty one of ours with the flag set.
func newStableTable(t *testing.T) *Table {
	t.Helper()
	store := objstore.NewMemory()
	v1 := newTestTable(t, store)
	m := shallow(v1.m.pb)
	m.ReaderFeatureFlags, m.WriterFeatureFlags = flagStableRowIDs, flagStableRowIDs
	data, err := encodeManifest(m, v1.m.tx, nil)
	require.NoError(t, err)
	require.NoError(t, store.Put(t.Context(), v1.m.object, data))
	return newRival(t, store)
}

func requireLineage(t *testing.T, table *Table, id uint64, want lineage) {
	t.Helper()
	f, ok := table.Fragment(id)
	require.True(t, ok)
	got, err := lineageOf(f, false)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestStableRowIDs(t *testing.T) {
	v1 := newStableTable(t)
	require.True(t, v1.StableRowIDs())
	v2 := mustCommit(t, v1, &Append{Fragments: writeRows(t, v1, numbered(0, 3), WriteOptions{})}, CommitOptions{})
	requireLineage(t, v2, 0, lineage{ids: []uint64{0, 1, 2}, created: []uint64{2, 2, 2}, updated: []uint64{2, 2, 2}})

	// An update replaces row 1 and inserts one row: the updated row keeps its id and birth.
	gone := rows{0: roaring.BitmapOf(1)}
	updated, removed, err := v2.DeleteRows(t.Context(), gone)
	require.NoError(t, err)
	fresh := writeRows(t, v2, numbered(10, 12), WriteOptions{})
	fresh, err = v2.KeepRowIDs(fresh, []RowAddress{NewRowAddress(0, 1)})
	require.NoError(t, err)
	update := &Update{UpdatedFragments: updated, RemovedFragmentIDs: removed, NewFragments: fresh}
	// A rival lands first, so that the ids of the inserted row depend on the attempt.
	mustCommit(t, v2, &Append{Fragments: writeRows(t, v2, numbered(20, 22), WriteOptions{})}, CommitOptions{})
	v4 := mustCommit(t, v2, update, CommitOptions{Affected: gone})
	requireLineage(t, v4, 1, lineage{ids: []uint64{3, 4}, created: []uint64{3, 3}, updated: []uint64{3, 3}})
	requireLineage(t, v4, 2, lineage{ids: []uint64{1, 5}, created: []uint64{2, 4}, updated: []uint64{4, 4}})

	rewrite, err := v4.Compact(t.Context(), CompactOptions{})
	require.NoError(t, err)
	v5 := mustCommit(t, v4, rewrite, CommitOptions{})
	require.Len(t, v5.Fragments(), 1)
	requireLineage(t, v5, 3, lineage{
		ids: []uint64{0, 2, 3, 4, 1, 5}, created: []uint64{2, 2, 3, 3, 2, 4}, updated: []uint64{2, 2, 3, 3, 4, 4},
	})
	v6 := mustCommit(t, v5, &Restore{Version: 2}, CommitOptions{})
	v7 := mustCommit(t, v6, &Append{Fragments: writeRows(t, v6, numbered(0, 1), WriteOptions{})}, CommitOptions{})
	requireLineage(t, v7, 4, lineage{ids: []uint64{6}, created: []uint64{7}, updated: []uint64{7}})

	_, err = v7.KeepRowIDs(fresh, []RowAddress{NewRowAddress(9, 1)})
	require.ErrorIs(t, err, ErrInvalid)
	_, err = v2.KeepRowIDs(nil, []RowAddress{NewRowAddress(0, 1)})
	require.ErrorIs(t, err, ErrInvalid, "more updated rows than rows")
	plain := newTestTable(t, objstore.NewMemory())
	same, err := plain.KeepRowIDs(fresh, nil)
	require.NoError(t, err)
	require.Equal(t, fresh, same)
}
