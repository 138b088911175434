package fence

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/internal/testkit"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
)

func TestMain(m *testing.M) { testkit.Main(m) }

var ctx = context.Background()

func fields(keyType arrow.DataType) *arrow.Schema {
	return arrow.NewSchema([]arrow.Field{{Name: "id", Type: keyType}, {Name: "v", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil)
}

func schemaOf(t testing.TB, keyType arrow.DataType, key ...string) *lance.Schema {
	s, err := lance.NewSchema(fields(keyType), key)
	require.NoError(t, err)
	return s
}

func newTable(t testing.TB, store objstore.Store) *lance.Table {
	table, err := lance.Create(context.Background(), store, "t.lance", schemaOf(t, arrow.BinaryTypes.String, "id"), lance.CreateOptions{})
	require.NoError(t, err)
	return table
}

func record(ids ...string) arrow.Record {
	b := array.NewRecordBuilder(memory.DefaultAllocator, fields(arrow.BinaryTypes.String))
	defer b.Release()
	for i, id := range ids {
		b.Field(0).(*array.StringBuilder).Append(id)
		b.Field(1).(*array.Int64Builder).Append(int64(i))
	}
	return b.NewRecord()
}

// insert commits new rows with their filter.
func insert(t testing.TB, table *lance.Table, ids ...string) (*lance.Table, error) {
	rec := record(ids...)
	defer rec.Release()
	set := KeySet{}
	require.NoError(t, set.AddRecord(rec, []string{"id"}))
	w := table.NewFragmentWriter(ctx, lance.WriteOptions{})
	require.NoError(t, w.Write(rec))
	fs, err := w.Finish()
	require.NoError(t, err)
	f, err := NewFilter(table.Schema(), set.Hashes())
	require.NoError(t, err)
	done, err := table.Commit(ctx, lance.NewTransaction(table, &lance.Update{NewFragments: fs, Filter: f}), lance.CommitOptions{MaxAttempts: 2})
	return done.Table, err
}

func TestFilterFormFollowsTheNumberOfKeys(t *testing.T) {
	s := schemaOf(t, arrow.BinaryTypes.String, "id")
	for _, n := range []int{0, 1, MaxExactKeys, MaxExactKeys + 1, 5000} {
		set := KeySet{}
		for i := range n {
			set[fmt.Sprint(i)] = uint64(i) * 0x9e3779b97f4a7c15
		}
		f, err := NewFilter(s, set.Hashes())
		require.NoError(t, err)
		require.Equal(t, n <= MaxExactKeys, f.IsExact(), "%d keys", n)
		require.Equal(t, s.PrimaryKeyFieldIDs(), f.FieldIDs)
		for h := range set.Hashes() {
			if f.IsExact() {
				_, ok := slices.BinarySearch(f.Exact, h)
				require.True(t, ok)
			} else {
				require.True(t, f.Bloom.Has(h))
			}
		}
	}
}

// TestFilterFailsClosed: without a key, or with one that the engine's filter would silently leave out, there is no filter at all.
func TestFilterFailsClosed(t *testing.T) {
	none := func(func(uint64) bool) {}
	for _, s := range []*lance.Schema{schemaOf(t, arrow.BinaryTypes.String), schemaOf(t, arrow.PrimitiveTypes.Float64, "id"),
		schemaOf(t, arrow.PrimitiveTypes.Int16, "id"), schemaOf(t, arrow.FixedWidthTypes.Boolean, "id")} {
		_, err := NewFilter(s, none)
		require.ErrorIs(t, err, ErrNotCovered)
	}
	s := schemaOf(t, arrow.BinaryTypes.String, "id")
	good, err := NewFilter(s, none)
	require.NoError(t, err)
	tx := func(op lance.Operation) *lance.Transaction { return &lance.Transaction{Op: op, UUID: "u"} }
	require.NoError(t, Covers(tx(&lance.Update{Filter: good}), s))
	for name, op := range map[string]lance.Operation{
		"append": &lance.Append{}, "no filter": &lance.Update{}, "other field": &lance.Update{Filter: &lance.KeyFilter{FieldIDs: []int32{1}}},
		"too many fields": &lance.Update{Filter: &lance.KeyFilter{FieldIDs: []int32{0, 1}}}, "no field": &lance.Update{Filter: &lance.KeyFilter{}},
	} {
		require.ErrorIs(t, Covers(tx(op), s), ErrNotCovered, name)
	}
}

func TestNullKeysAreNamed(t *testing.T) {
	nullable := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, nullable)
	defer b.Release()
	b.Field(0).(*array.StringBuilder).Append("a")
	b.Field(0).AppendNull()
	rec := b.NewRecord()
	defer rec.Release()
	err := KeySet{}.AddRecord(rec, []string{"id"})
	require.ErrorIs(t, err, ErrNullKey)
	require.ErrorContains(t, err, "row 1")
}

func TestFindRowsGivesAllAddresses(t *testing.T) {
	table := newTable(t, objstore.NewMemory())
	table, err := insert(t, table, "a", "b", "c")
	require.NoError(t, err)
	rec := record("b", "d") // an unfenced append makes a duplicate
	defer rec.Release()
	w := table.NewFragmentWriter(ctx, lance.WriteOptions{})
	require.NoError(t, w.Write(rec))
	fs, err := w.Finish()
	require.NoError(t, err)
	done, err := table.Commit(ctx, lance.NewTransaction(table, &lance.Append{Fragments: fs}), lance.CommitOptions{})
	require.NoError(t, err)
	table = done.Table

	set := KeySet{"a": 0, "b": 0, "nobody": 0}
	found, err := FindRows(ctx, table, set)
	require.NoError(t, err)
	require.Equal(t, map[string][]lance.RowAddress{"a": {lance.NewRowAddress(0, 0)}, "b": {lance.NewRowAddress(0, 1), lance.NewRowAddress(1, 0)}}, found)

	rows := Rows{}
	rows.Add(lance.NewRowAddress(0, 1))
	updated, removed, err := table.DeleteRows(ctx, rows)
	require.NoError(t, err)
	done, err = table.Commit(ctx, lance.NewTransaction(table, &lance.Delete{UpdatedFragments: updated, DeletedFragmentIDs: removed}), lance.CommitOptions{Affected: rows})
	require.NoError(t, err)
	found, err = FindRows(ctx, done.Table, set)
	require.NoError(t, err)
	require.Equal(t, []lance.RowAddress{lance.NewRowAddress(1, 0)}, found["b"])
}

// TestSameKeyRacesAreLoud: two writers with the same base insert one key; one of them learns it (X1).
func TestSameKeyRacesAreLoud(t *testing.T) {
	table := newTable(t, objstore.NewMemory())
	_, err := insert(t, table, "a", "b")
	require.NoError(t, err)
	_, err = insert(t, table, "b", "c")
	require.ErrorIs(t, err, lance.ErrConflict)
	_, err = insert(t, table, "c", "d")
	require.NoError(t, err)
}

func TestBarrier(t *testing.T) {
	table := newTable(t, objstore.NewMemory())
	owned := func(context.Context) error { return nil }
	up, err := Barrier(ctx, table, 3, owned)
	require.NoError(t, err)
	require.Equal(t, "3", up.Metadata()[MetaEpoch])
	again, err := Barrier(ctx, table, 3, owned)
	require.NoError(t, err)
	require.Equal(t, up.Version(), again.Version(), "a barrier that stands is not put again")
	_, err = Barrier(ctx, table, 2, owned)
	require.ErrorIs(t, err, ErrFenced)
	higher, err := Barrier(ctx, table, 9, owned)
	require.NoError(t, err)
	require.Equal(t, up.Version()+1, higher.Version())
	_, err = insert(t, higher, "a")
	require.NoError(t, err, "a barrier conflicts with nobody's rows")
}

// TestGuardSeesEveryHigherEpoch: in the newest metadata, in a transaction between (a restore may have rewound the metadata), and when a transaction
// is gone the authority is asked.
func TestGuardSeesEveryHigherEpoch(t *testing.T) {
	table := newTable(t, objstore.NewMemory())
	owned := func(context.Context) error { return nil }
	raised, err := Barrier(ctx, table, 5, owned)
	require.NoError(t, err)
	raisedTx, err := raised.Transaction(ctx)
	require.NoError(t, err)
	asked := 0
	refuse := errors.New("moved on")
	authority := func(context.Context) error { asked++; return refuse }

	check := Guard(5, authority)
	require.NoError(t, check(ctx, lance.Attempt{Number: 1, Latest: raised}))
	require.Zero(t, asked)
	require.ErrorIs(t, Guard(4, authority)(ctx, lance.Attempt{Number: 1, Latest: raised}), ErrFenced)
	rewound := lance.Attempt{Number: 1, Latest: table, Theirs: []lance.Committed{{Version: 2, Tx: raisedTx}}}
	require.ErrorIs(t, Guard(4, owned)(ctx, rewound), ErrFenced)
	gone := lance.Attempt{Number: 1, Latest: table, Theirs: []lance.Committed{{Version: 2}}}
	require.ErrorIs(t, check(ctx, gone), refuse)
	require.ErrorIs(t, Guard(5, owned)(ctx, gone), ErrUnseen)
	require.ErrorIs(t, check(ctx, lance.Attempt{Number: 2, Latest: raised}), refuse)
}

func TestEpochText(t *testing.T) {
	e, err := Epoch(nil)
	require.NoError(t, err)
	require.Zero(t, e)
	_, err = Epoch(map[string]string{MetaEpoch: "x"})
	require.Error(t, err)
}
