package fence

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
)

// rowsOf is a record of id and v, in the order of the keys.
func rowsOf(rows map[string]int64) arrow.Record {
	b := array.NewRecordBuilder(memory.DefaultAllocator, fields(arrow.BinaryTypes.String))
	defer b.Release()
	for _, id := range slices.Sorted(maps.Keys(rows)) {
		b.Field(0).(*array.StringBuilder).Append(id)
		b.Field(1).(*array.Int64Builder).Append(rows[id])
	}
	return b.NewRecord()
}

func keysOf(t require.TestingT, ids ...string) KeySet {
	set := KeySet{}
	require.NoError(t, set.AddRecord(record(ids...), []string{"id"}))
	return set
}

// contents are the live rows; a key that is live twice fails the test.
func contents(t require.TestingT, table *lance.Table) map[string]int64 {
	out := map[string]int64{}
	for rec, err := range table.Scan(ctx, lance.ScanOptions{}) {
		require.NoError(t, err)
		for i := range int(rec.NumRows()) {
			id := rec.Column(0).(*array.String).Value(i)
			require.NotContains(t, out, id, "a key is live twice (X1)")
			out[id] = rec.Column(1).(*array.Int64).Value(i)
		}
		rec.Release()
	}
	return out
}

// TestApplyModel holds random changes to a map. Whatever a change does not name stays (report C66), a key that is written again and again is
// one row (reports C64, C80), and a delete is no more than its keys (report C85).
func TestApplyModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		table, model := newTable(t, objstore.NewMemory()), map[string]int64{}
		key := rapid.Custom(func(rt *rapid.T) string { return fmt.Sprint("k", rapid.IntRange(0, 20).Draw(rt, "key")) })
		for range rapid.IntRange(1, 6).Draw(rt, "commits") {
			upserts := rapid.MapOfN(key, rapid.Int64(), 0, 8).Draw(rt, "upserts")
			deletes := slices.DeleteFunc(rapid.SliceOfN(key, 0, 4).Draw(rt, "deletes"), func(k string) bool { _, ok := upserts[k]; return ok })
			c := Changes{Deletes: keysOf(rt, deletes...)}
			if len(upserts) > 0 {
				c.Upserts = []arrow.Record{rowsOf(upserts)}
			}
			done, err := Apply(ctx, table, c, lance.CommitOptions{})
			require.NoError(rt, err)
			table = done.Table
			maps.Copy(model, upserts)
			maps.DeleteFunc(model, func(k string, _ int64) bool { return slices.Contains(deletes, k) })
			require.Equal(rt, model, contents(rt, table))
		}
	})
}

// TestApplyRaces: two writers with one base. Who touches the other's keys learns it, and lands on the newest version (reports C60, C61); who does not
// lands beside it.
func TestApplyRaces(t *testing.T) {
	for name, c := range map[string]struct {
		ours, theirs Changes
		conflict     bool
	}{
		"same new key":             {upserts("new"), upserts("new"), true},
		"other new keys":           {upserts("n1"), upserts("n2"), false},
		"same row":                 {upserts("a"), upserts("a"), true},
		"other rows":               {upserts("a"), upserts("b"), false},
		"delete of an updated row": {Changes{Deletes: keysOf(t, "a")}, upserts("a"), true},
		"update of a deleted row":  {upserts("a"), Changes{Deletes: keysOf(t, "a")}, true},
		"delete of a new key":      {Changes{Deletes: keysOf(t, "new")}, upserts("new"), true},
		"deletes of other rows":    {Changes{Deletes: keysOf(t, "a")}, Changes{Deletes: keysOf(t, "b")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			base, err := insert(t, newTable(t, objstore.NewMemory()), "a", "b", "c")
			require.NoError(t, err)
			theirs, err := Apply(ctx, base, c.theirs, lance.CommitOptions{})
			require.NoError(t, err)
			ours, err := Apply(ctx, base, c.ours, lance.CommitOptions{})
			if c.conflict {
				require.ErrorIs(t, err, lance.ErrConflict)
				ours, err = Apply(ctx, theirs.Table, c.ours, lance.CommitOptions{})
			}
			require.NoError(t, err)
			require.EqualValues(t, 4, ours.Table.Version())
			contents(t, ours.Table)
		})
	}
}

func upserts(ids ...string) Changes { return Changes{Upserts: []arrow.Record{record(ids...)}} }

// TestApplyRemovesDuplicates: of a key that an unfenced writer made live twice, the next upsert leaves one row, and a delete none.
func TestApplyRemovesDuplicates(t *testing.T) {
	table, err := insert(t, newTable(t, objstore.NewMemory()), "a", "b")
	require.NoError(t, err)
	w := table.NewFragmentWriter(ctx, lance.WriteOptions{})
	require.NoError(t, w.Write(record("a", "b")))
	fs, err := w.Finish()
	require.NoError(t, err)
	done, err := table.Commit(ctx, lance.NewTransaction(table, &lance.Append{Fragments: fs}), lance.CommitOptions{})
	require.NoError(t, err)
	done, err = Apply(ctx, done.Table, Changes{Upserts: []arrow.Record{rowsOf(map[string]int64{"a": 7})}, Deletes: keysOf(t, "b")}, lance.CommitOptions{})
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"a": 7}, contents(t, done.Table))
}

// TestApplyRefuses: nothing is written for changes that contradict themselves (report C65) or have no key (report C62).
func TestApplyRefuses(t *testing.T) {
	table, err := insert(t, newTable(t, objstore.NewMemory()), "a")
	require.NoError(t, err)
	for name, c := range map[string]Changes{
		"a key twice":                   upserts("x", "x"),
		"a key twice, in two records":   {Upserts: []arrow.Record{record("x"), record("x")}},
		"a key to upsert and to delete": {Upserts: []arrow.Record{record("x")}, Deletes: keysOf(t, "x")},
	} {
		_, err := Apply(ctx, table, c, lance.CommitOptions{})
		require.ErrorIs(t, err, lance.ErrInvalid, name)
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, fields(arrow.BinaryTypes.String))
	defer b.Release()
	b.Field(0).AppendNull()
	b.Field(1).AppendNull()
	_, err = Apply(ctx, table, Changes{Upserts: []arrow.Record{b.NewRecord()}}, lance.CommitOptions{})
	require.ErrorIs(t, err, ErrNullKey)
	latest, err := table.Latest(ctx)
	require.NoError(t, err)
	require.Equal(t, table.Version(), latest.Version())
}

// TestApplyLeavesNumberedRows: a table that numbers its rows is refused before anything is written.
func TestApplyLeavesNumberedRows(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir+"/t.lance", os.DirFS("../lance/testdata/engine/v21_stable.lance")))
	store, err := objstore.OpenLocal(dir)
	require.NoError(t, err)
	table, err := lance.Open(ctx, store, "t.lance")
	require.NoError(t, err)
	_, err = Apply(ctx, table, upserts("a"), lance.CommitOptions{})
	require.ErrorIs(t, err, lance.ErrUnsupported)
}

// TestPrefilter: no false negatives, for keys of every length and type, and few false suspects.
func TestPrefilter(t *testing.T) {
	set := KeySet{}
	for i := range 3000 {
		set[fmt.Sprintf("%0*d", 1+i%40, i)] = 0
	}
	f, falsely := newPrefilter(set), 0
	for k := range set {
		require.True(t, f.mayHave([]byte(k)), k)
	}
	for i := range 3000 {
		if k := fmt.Sprintf("%0*d", 1+i%40, i+1_000_000); f.mayHave([]byte(k)) {
			falsely++
		}
	}
	require.Less(t, falsely, 3000/8)
	require.False(t, newPrefilter(KeySet{"a": 0}).mayHave([]byte("b")))
}

// TestFindRowsOfEveryKeyType finds each of 100 rows, of keys whose values lie in the record as they are, and of those that are encoded.
func TestFindRowsOfEveryKeyType(t *testing.T) {
	for _, kind := range []arrow.DataType{
		arrow.BinaryTypes.String, arrow.BinaryTypes.Binary, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.LargeBinary,
		arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Uint64,
	} {
		for _, key := range [][]string{{"id"}, {"id", "part"}} {
			t.Run(fmt.Sprint(kind, key), func(t *testing.T) { findEveryRow(t, kind, key) })
		}
	}
}

func findEveryRow(t *testing.T, kind arrow.DataType, key []string) {
	columns := arrow.NewSchema([]arrow.Field{{Name: "part", Type: arrow.PrimitiveTypes.Int32}, {Name: "id", Type: kind}}, nil)
	s, err := lance.NewSchema(columns, key)
	require.NoError(t, err)
	table, err := lance.Create(ctx, objstore.NewMemory(), "t.lance", s, lance.CreateOptions{})
	require.NoError(t, err)
	b := array.NewRecordBuilder(memory.DefaultAllocator, columns)
	defer b.Release()
	for i := range 200 {
		b.Field(0).(*array.Int32Builder).Append(int32(i % 3))
		require.NoError(t, b.Field(1).AppendValueFromString(fmt.Sprint(1000+i)))
	}
	rec := b.NewRecord()
	done, err := Apply(ctx, table, Changes{Upserts: []arrow.Record{rec}}, lance.CommitOptions{})
	require.NoError(t, err)
	set := KeySet{}
	require.NoError(t, set.AddRecord(rec.NewSlice(50, 150), key))
	found, err := FindRows(ctx, done.Table, set)
	require.NoError(t, err)
	require.Len(t, found, 100)
	done, err = Apply(ctx, done.Table, Changes{Deletes: set}, lance.CommitOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 100, done.Table.Rows())
}

// TestFirstColumnOfNulls is report C63: the first column of the rows that come is null throughout, and still each takes its row's place.
func TestFirstColumnOfNulls(t *testing.T) {
	columns := arrow.NewSchema([]arrow.Field{
		{Name: "vector", Type: arrow.FixedSizeListOf(4, arrow.PrimitiveTypes.Float32), Nullable: true},
		{Name: "path", Type: arrow.BinaryTypes.String}, {Name: "status", Type: arrow.BinaryTypes.String, Nullable: true},
	}, nil)
	rows := func(from, to int, status string) arrow.Record {
		b := array.NewRecordBuilder(memory.DefaultAllocator, columns)
		defer b.Release()
		for i := from; i < to; i++ {
			b.Field(0).AppendNull()
			b.Field(1).(*array.StringBuilder).Append(fmt.Sprint("/file/", i))
			b.Field(2).(*array.StringBuilder).Append(status)
		}
		return b.NewRecord()
	}
	table := applied(t, newTableOf(t, columns, "path"), rows(0, 1000, "new"))
	table = applied(t, table, rows(300, 428, "seen"))
	require.EqualValues(t, 1000, table.Rows())
	require.Equal(t, map[string]int{"new": 872, "seen": 128}, countBy(t, table, "status"))
}

// TestIdentityIsTheKey: two ends are one edge whoever sends them (report C75), in the key's order and not the columns' (report C71), and any other column
// may change, one that looks like a partition included (report C81).
func TestIdentityIsTheKey(t *testing.T) {
	columns := arrow.NewSchema([]arrow.Field{
		{Name: "dst", Type: arrow.PrimitiveTypes.Int64}, {Name: "day", Type: arrow.BinaryTypes.String, Nullable: true}, {Name: "src", Type: arrow.PrimitiveTypes.Int64},
	}, nil)
	edge := func(src, dst int64, day string) arrow.Record {
		b := array.NewRecordBuilder(memory.DefaultAllocator, columns)
		defer b.Release()
		b.Field(0).(*array.Int64Builder).Append(dst)
		b.Field(1).(*array.StringBuilder).Append(day)
		b.Field(2).(*array.Int64Builder).Append(src)
		return b.NewRecord()
	}
	table := newTableOf(t, columns, "src", "dst")
	for _, rec := range []arrow.Record{edge(1, 2, "2024/01/11"), edge(2, 1, "2024/01/11"), edge(1, 2, "2024/01/12"), edge(1, 3, "2024/01/12"), edge(1, 2, "2024/01/13")} {
		table = applied(t, table, rec)
	}
	require.Equal(t, map[string]int{"2024/01/11": 1, "2024/01/12": 1, "2024/01/13": 1}, countBy(t, table, "day"))
}

// TestKeyDefinitions is report C79.
func TestKeyDefinitions(t *testing.T) {
	for _, key := range [][]string{{"id", "id"}, {"ID"}, {"missing"}, {"v"}, {""}} {
		_, err := lance.NewSchema(fields(arrow.BinaryTypes.String), key)
		require.ErrorIs(t, err, lance.ErrInvalid, "%q", key)
	}
	_, err := Apply(ctx, newTableOf(t, fields(arrow.BinaryTypes.String)), upserts("a"), lance.CommitOptions{})
	require.Error(t, err, "a table without a key takes no upserts")
}

func newTableOf(t *testing.T, columns *arrow.Schema, key ...string) *lance.Table {
	t.Helper()
	s, err := lance.NewSchema(columns, key)
	require.NoError(t, err)
	table, err := lance.Create(ctx, objstore.NewMemory(), "t.lance", s, lance.CreateOptions{})
	require.NoError(t, err)
	return table
}

func applied(t *testing.T, table *lance.Table, rec arrow.Record) *lance.Table {
	t.Helper()
	done, err := Apply(ctx, table, Changes{Upserts: []arrow.Record{rec}}, lance.CommitOptions{})
	require.NoError(t, err)
	return done.Table
}

func countBy(t *testing.T, table *lance.Table, column string) map[string]int {
	t.Helper()
	out := map[string]int{}
	for rec, err := range table.Scan(ctx, lance.ScanOptions{Columns: []string{column}}) {
		require.NoError(t, err)
		for i := range int(rec.NumRows()) {
			out[rec.Column(0).ValueStr(i)]++
		}
		rec.Release()
	}
	return out
}
