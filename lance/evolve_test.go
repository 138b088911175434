package lance

import (
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/objstore"
)

// doubled computes a column from v: twice its value, -1 where that is null.
func doubled(rec arrow.Record) ([]arrow.Array, error) {
	b := array.NewInt64Builder(memory.DefaultAllocator)
	defer b.Release()
	v := rec.Column(0).(*array.Int64)
	for i := range v.Len() {
		if v.IsNull(i) {
			b.Append(-1)
		} else {
			b.Append(2 * v.Value(i))
		}
	}
	return []arrow.Array{b.NewArray()}, nil
}

// TestFillColumns adds a column with values to tables of every file version, with deleted rows and with row ids, and writes on.
func TestFillColumns(t *testing.T) {
	for _, name := range []string{"v20", "v21_stable", "v22"} {
		table, _ := engineTable(t, name+".lance")
		required := arrow.Field{Name: "twice", Type: arrow.PrimitiveTypes.Int64}
		op, err := table.FillColumns(t.Context(), []string{"v"}, doubled, required)
		require.NoError(t, err)
		next := mustCommit(t, table, op, CommitOptions{})
		rows := 0
		for rec, err := range next.Scan(t.Context(), ScanOptions{Columns: []string{"v", "twice"}}) {
			require.NoError(t, err)
			for i := range int(rec.NumRows()) {
				require.Equal(t, 2*rec.Column(0).(*array.Int64).Value(i), rec.Column(1).(*array.Int64).Value(i))
				rows++
			}
			rec.Release()
		}
		require.Equal(t, 149, rows)
		if next.StableRowIDs() {
			before, err := table.Fragments()[0].Lineage()
			require.NoError(t, err)
			after, err := next.Fragments()[0].Lineage()
			require.NoError(t, err)
			require.Equal(t, before.IDs, after.IDs)
			require.Equal(t, before.CreatedAt, after.CreatedAt)
			require.Equal(t, next.Version(), after.UpdatedAt[0])
		}
		project, err := next.DropColumns("twice")
		require.NoError(t, err)
		dropped := mustCommit(t, next, project, CommitOptions{})
		require.Len(t, dropped.Fragments()[0].Files(), 1, "its files go with it")
		again, err := dropped.FillColumns(t.Context(), []string{"v"}, doubled, required)
		require.NoError(t, err)
		require.Greater(t, again.Fragments[0].Files()[1].Fields[0], int32(1))

		for reason, bad := range map[string]arrow.Field{
			"taken": {Name: "v", Type: arrow.PrimitiveTypes.Int64}, "reserved": {Name: "_rowid", Type: arrow.PrimitiveTypes.Int64},
			"type": {Name: "x", Type: arrow.BinaryTypes.String},
		} {
			_, err := table.FillColumns(t.Context(), []string{"v"}, doubled, bad)
			require.ErrorIs(t, err, ErrInvalid, reason)
		}
	}
}

func TestForbidNull(t *testing.T) {
	store := objstore.NewMemory()
	table := newTestTable(t, store)
	table = mustCommit(t, table, &Append{Fragments: writeRows(t, table, []pair{{"a", int64(1)}}, WriteOptions{})}, CommitOptions{})
	op, err := table.ForbidNull(t.Context(), "v")
	require.NoError(t, err)
	rival := mustCommit(t, table, &UpdateConfig{}, CommitOptions{})
	_, err = table.Commit(t.Context(), NewTransaction(table, op), CommitOptions{})
	require.ErrorIs(t, err, ErrConflict, "what was validated is no longer the newest")
	_, err = rival.Commit(t.Context(), NewTransaction(table, op), CommitOptions{})
	require.ErrorIs(t, err, ErrConflict)
	op, err = rival.ForbidNull(t.Context(), "v")
	require.NoError(t, err)
	tight := mustCommit(t, rival, op, CommitOptions{})
	require.False(t, tight.Schema().Arrow().Field(1).Nullable)

	loose := newTestTable(t, objstore.NewMemory())
	add, err := loose.AddColumns(arrow.Field{Name: "n", Type: arrow.PrimitiveTypes.Int64, Nullable: true})
	require.NoError(t, err)
	loose = mustCommit(t, loose, &Append{Fragments: writeRows(t, loose, numbered(0, 10), WriteOptions{})}, CommitOptions{})
	add, err = loose.AddColumns(add.Schema.Arrow().Field(2))
	require.NoError(t, err)
	loose = mustCommit(t, loose, add, CommitOptions{})
	loose = mustCommit(t, loose, planDelete(t, loose, rows{0: roaring.BitmapOf(0)}), CommitOptions{})
	_, err = loose.ForbidNull(t.Context(), "n")
	require.ErrorIs(t, err, ErrInvalid)
	require.ErrorContains(t, err, NewRowAddress(0, 1).String())
	_, err = loose.ForbidNull(t.Context(), "none")
	require.ErrorIs(t, err, ErrInvalid)
}
