package lance

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/countstore"
)

type pair struct {
	id string
	v  int64 // negative is null
}

// record builds rows of keyedSchema.
func record(t testing.TB, s *Schema, rows []pair) arrow.Record {
	t.Helper()
	b := array.NewRecordBuilder(memory.DefaultAllocator, s.Arrow())
	defer b.Release()
	for _, r := range rows {
		b.Field(0).(*array.StringBuilder).Append(r.id)
		if r.v < 0 {
			b.Field(1).AppendNull()
		} else {
			b.Field(1).(*array.Int64Builder).Append(r.v)
		}
	}
	return b.NewRecord()
}

func writeRows(t testing.TB, table *Table, rows []pair, o WriteOptions) []Fragment {
	t.Helper()
	w := table.NewFragmentWriter(t.Context(), o)
	rec := record(t, table.Schema(), rows)
	defer rec.Release()
	require.NoError(t, w.Write(rec))
	fragments, err := w.Finish()
	require.NoError(t, err)
	return fragments
}

// readRows scans the table and checks that each address takes its own row back.
func readRows(t testing.TB, table *Table, o ScanOptions) (rows []pair, addresses []RowAddress) {
	t.Helper()
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	o.RowAddress, o.Allocator = true, mem
	for rec, err := range table.Scan(t.Context(), o) {
		require.NoError(t, err)
		require.NotZero(t, rec.NumRows())
		rows = append(rows, pairsOf(rec)...)
		for _, a := range rec.Column(int(rec.NumCols()) - 1).(*array.Uint64).Uint64Values() {
			addresses = append(addresses, RowAddress(a))
		}
		rec.Release()
	}
	if tt, ok := t.(*testing.T); ok {
		mem.AssertSize(tt, 0)
	}
	return rows, addresses
}

func pairsOf(rec arrow.Record) []pair {
	out := make([]pair, rec.NumRows())
	for i := range out {
		out[i] = pair{rec.Column(0).(*array.String).Value(i), -1}
		if v := rec.Column(1).(*array.Int64); !v.IsNull(i) {
			out[i].v = v.Value(i)
		}
	}
	return out
}

func numbered(from, to int) []pair {
	var out []pair
	for i := from; i < to; i++ {
		v := int64(i)
		if i%7 == 0 {
			v = -1
		}
		out = append(out, pair{fmt.Sprintf("k%06d", i), v})
	}
	return out
}

func TestWriteScanTake(t *testing.T) {
	store := objstore.NewMemory()
	table := newTestTable(t, store)
	want := numbered(0, 5000)
	fragments := writeRows(t, table, want, WriteOptions{MaxRowsPerFile: 1900})
	require.Len(t, fragments, 3)
	mustCommit(t, table, &Append{Fragments: fragments}, CommitOptions{})
	table, err := Open(t.Context(), store, "t.lance")
	require.NoError(t, err)
	rows, addresses := readRows(t, table, ScanOptions{BatchRows: 700})
	require.Equal(t, want, rows)

	gone := map[uint64]*roaring.Bitmap{0: roaring.BitmapOf(0, 1, 2, 5), 2: roaring.New()}
	gone[2].AddRange(100, 1100)
	updated, removed, err := table.DeleteRows(t.Context(), gone)
	require.NoError(t, err)
	table = mustCommit(t, table, &Delete{UpdatedFragments: updated, DeletedFragmentIDs: removed}, CommitOptions{})
	var left []pair
	var live []RowAddress
	for i, a := range addresses {
		if b := gone[uint64(a.Fragment())]; b == nil || !b.Contains(a.Offset()) {
			left, live = append(left, want[i]), append(live, a)
		}
	}
	rows, addresses = readRows(t, table, ScanOptions{BatchRows: 333})
	require.Equal(t, left, rows)
	require.Equal(t, live, addresses)

	var picked []RowAddress
	var wantPicked []pair
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		i := r.IntN(len(live))
		picked, wantPicked = append(picked, live[i]), append(wantPicked, left[i])
	}
	rec, err := table.Take(t.Context(), picked, nil)
	require.NoError(t, err)
	defer rec.Release()
	require.Equal(t, wantPicked, pairsOf(rec))
	_, err = table.Take(t.Context(), []RowAddress{NewRowAddress(0, 5)}, nil)
	require.ErrorIs(t, err, ErrNotFound, "a deleted row")
	_, err = table.Take(t.Context(), []RowAddress{NewRowAddress(9, 5)}, nil)
	require.ErrorIs(t, err, ErrNotFound)
	empty, err := table.Take(t.Context(), nil, []string{"v"})
	require.NoError(t, err)
	require.Zero(t, empty.NumRows())
	empty.Release()
}

func TestScanColumnsAndFragments(t *testing.T) {
	table := newTestTable(t, objstore.NewMemory())
	table = mustCommit(t, table, &Append{Fragments: writeRows(t, table, numbered(0, 20), WriteOptions{MaxRowsPerFile: 10})}, CommitOptions{})
	var rows int64
	for rec, err := range table.Scan(t.Context(), ScanOptions{Columns: []string{}, RowAddress: true, Fragments: []uint64{1}}) {
		require.NoError(t, err)
		require.EqualValues(t, 1, rec.NumCols())
		require.Equal(t, uint64(1)<<32, rec.Column(0).(*array.Uint64).Value(0))
		rows += rec.NumRows()
		rec.Release()
	}
	require.EqualValues(t, 10, rows)
	for rec, err := range table.Scan(t.Context(), ScanOptions{Columns: []string{"v", "id"}}) {
		require.NoError(t, err)
		require.Equal(t, "v", rec.ColumnName(0))
		rec.Release()
		break
	}
	for _, o := range []ScanOptions{{Columns: []string{"x"}}, {Fragments: []uint64{5}}} {
		for _, err := range table.Scan(t.Context(), o) {
			require.Error(t, err)
		}
	}
}

func TestEvolvedSchemaReads(t *testing.T) {
	table := newTestTable(t, objstore.NewMemory())
	table = mustCommit(t, table, &Append{Fragments: writeRows(t, table, numbered(0, 10), WriteOptions{})}, CommitOptions{})
	add, err := table.AddColumns(arrow.Field{Name: "w", Type: arrow.PrimitiveTypes.Float64, Nullable: true})
	require.NoError(t, err)
	table = mustCommit(t, table, add, CommitOptions{})
	id, ok := table.Schema().FieldID("w")
	require.True(t, ok)
	require.EqualValues(t, 2, id)
	for rec, err := range table.Scan(t.Context(), ScanOptions{}) {
		require.NoError(t, err)
		require.Equal(t, int(rec.NumRows()), rec.Column(2).NullN())
		rec.Release()
	}
	rename, err := table.RenameColumn("v", "value")
	require.NoError(t, err)
	table = mustCommit(t, table, rename, CommitOptions{})
	rows, _ := readRows(t, table, ScanOptions{Columns: []string{"id", "value"}})
	require.Equal(t, numbered(0, 10), rows)
	drop, err := table.DropColumns("value", "w")
	require.NoError(t, err)
	table = mustCommit(t, table, drop, CommitOptions{})
	require.Equal(t, 1, table.Schema().Arrow().NumFields())
	add, err = table.AddColumns(arrow.Field{Name: "v", Type: arrow.PrimitiveTypes.Int64, Nullable: true})
	require.NoError(t, err)
	table = mustCommit(t, table, add, CommitOptions{})
	id, _ = table.Schema().FieldID("v")
	require.EqualValues(t, 2, id, "the id of the dropped v is still in a data file, that of w never was")
	rows, _ = readRows(t, table, ScanOptions{Columns: []string{"id", "v"}})
	require.EqualValues(t, -1, rows[3].v, "the old values of a dropped column do not come back")

	for name, plan := range map[string]func() error{
		"drop key":      func() error { _, err := table.DropColumns("id"); return err },
		"drop unknown":  func() error { _, err := table.DropColumns("x"); return err },
		"rename taken":  func() error { _, err := table.RenameColumn("v", "id"); return err },
		"reserved name": func() error { _, err := table.RenameColumn("v", "_rowid"); return err },
		"null key":      func() error { _, err := table.AllowNull("id"); return err },
		"not null": func() error {
			_, err := table.AddColumns(arrow.Field{Name: "n", Type: arrow.PrimitiveTypes.Int8})
			return err
		},
		"taken": func() error {
			_, err := table.AddColumns(arrow.Field{Name: "v", Type: arrow.PrimitiveTypes.Int8, Nullable: true})
			return err
		},
	} {
		require.ErrorIs(t, plan(), ErrInvalid, name)
	}
}

func TestFragmentWriterRefuses(t *testing.T) {
	store := countstore.New(objstore.NewMemory())
	table := newTestTable(t, store)
	b := array.NewRecordBuilder(memory.DefaultAllocator, table.Schema().Arrow())
	defer b.Release()
	b.Field(0).(*array.StringBuilder).Append("a")
	b.Field(0).AppendNull()
	b.Field(1).AppendNull()
	b.Field(1).AppendNull()
	rec := b.NewRecord()
	defer rec.Release()
	w := table.NewFragmentWriter(t.Context(), WriteOptions{})
	require.ErrorContains(t, w.Write(rec), `row 1: column "id" takes no null`)
	_, err := w.Finish()
	require.ErrorIs(t, err, ErrInvalid)

	w = table.NewFragmentWriter(t.Context(), WriteOptions{MaxRowsPerFile: 5})
	ok := record(t, table.Schema(), numbered(0, 12))
	defer ok.Release()
	require.NoError(t, w.Write(ok))
	require.NoError(t, w.Abort())
	infos, err := store.List(t.Context(), "t.lance/data/", "", 0)
	require.NoError(t, err)
	require.Empty(t, infos)
	w = table.NewFragmentWriter(t.Context(), WriteOptions{})
	fragments, err := w.Finish()
	require.NoError(t, err)
	require.Empty(t, fragments, "no rows, no file")
	w = NewFragmentWriter(t.Context(), store, "t.lance", table.Schema(), WriteOptions{FileVersion: "9.9"})
	require.ErrorIs(t, w.Write(ok), ErrUnsupported)
}

// TestRequiredColumnAddedMeanwhile: rows that were written before another writer added a column that takes no null cannot land on top of
// it, where they would read as nulls.
func TestRequiredColumnAddedMeanwhile(t *testing.T) {
	store := objstore.NewMemory()
	table := newTestTable(t, store)
	table = mustCommit(t, table, &Append{Fragments: writeRows(t, table, numbered(0, 10), WriteOptions{})}, CommitOptions{})
	late := writeRows(t, table, numbered(20, 21), WriteOptions{})
	merge, err := table.AddColumns(arrow.Field{Name: "n", Type: arrow.PrimitiveTypes.Int64, Nullable: true})
	require.NoError(t, err)
	last := merge.Schema.proto[len(merge.Schema.proto)-1]
	last.Nullable = false // as another engine does that writes the values
	next := mustCommit(t, table, merge, CommitOptions{})
	_, err = table.Commit(t.Context(), NewTransaction(table, &Append{Fragments: late}), CommitOptions{})
	require.ErrorIs(t, err, ErrIncompatible)
	require.ErrorContains(t, err, `no column "n"`)
	newest, err := LatestVersion(t.Context(), store, table.Root())
	require.NoError(t, err)
	require.Equal(t, next.Version(), newest)
}
