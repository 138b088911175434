package fold

import (
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/publisher"
	"github.com/foldline/foldline/wal"
)

// TestOrigin: a row's place counts over all tables of its entry.
func TestOrigin(t *testing.T) {
	b := &wal.Batch{
		Entries: []wal.BatchEntry{{Seq: 7}, {Seq: 8}, {Seq: 9}},
		Tables: []wal.BatchTable{
			{Table: 1, Ops: make([]wal.Op, 4), Entry: []uint32{0, 0, 2, 2}},
			{Table: 2, Ops: make([]wal.Op, 3), Entry: []uint32{1, 2, 2}},
		},
	}
	l := &laneCut{lane: 3, incarnation: "I", batches: []*wal.Batch{b}}
	inputs := (&cut{lanes: []*laneCut{l}}).byTable()
	require.Len(t, inputs, 2)
	at := func(table, row int) publisher.Origin {
		in := inputs[table]
		i, ref := in.at(uint32(row))
		return in.chunks[i].origin(ref.row)
	}
	of := func(seq uint64, row uint32) publisher.Origin {
		return publisher.Origin{Lane: 3, Incarnation: "I", Seq: seq, Row: row}
	}
	require.Equal(t, of(7, 1), at(0, 1))
	require.Equal(t, of(9, 0), at(0, 2))
	require.Equal(t, of(8, 0), at(1, 0))
	require.Equal(t, of(9, 3), at(1, 2))
}

// TestRefs: row numbers find their chunk, also across empty ones.
func TestRefs(t *testing.T) {
	in := &tableInput{rows: 5, chunks: []chunk{{first: 0}, {first: 2}, {first: 2}, {first: 4}}}
	refs := in.refs([]uint32{0, 1, 2, 3, 4})
	require.Equal(t, []rowRef{{0, 0}, {0, 1}, {2, 0}, {2, 1}, {3, 0}}, refs)
	require.Equal(t, []run{{0, 0, 2}, {2, 0, 2}, {3, 0, 1}}, runsOf(refs))
}

// TestLayout holds what happens when the table has changed since a row was
// decoded. Columns are matched by name (C71, C73).
func TestLayout(t *testing.T) {
	table := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "name", Type: arrow.BinaryTypes.String},
		{Name: "note", Type: arrow.BinaryTypes.String, Nullable: true},
	}, nil)
	int64s, text := arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String
	for name, c := range map[string]struct {
		stored  []arrow.Field
		row     []string // "(null)" for null
		drop    bool
		columns []int
		upsert  string // code, empty when taken
		del     string
	}{
		"same":                    {fields("id", int64s, "name", text, "note", text), []string{"1", "a", "b"}, false, []int{0, 1, 2}, "", ""},
		"another order":           {fields("note", text, "id", int64s, "name", text), []string{"b", "1", "a"}, false, []int{1, 2, 0}, "", ""},
		"column added since":      {fields("id", int64s, "name", text), []string{"1", "a"}, false, []int{0, 1, -1}, "", ""},
		"required column added":   {fields("id", int64s, "note", text), []string{"1", "b"}, false, []int{0, -1, 1}, CodeNullValue, ""},
		"required value is null":  {fields("id", int64s, "name", text), []string{"1", "(null)"}, false, []int{0, 1, -1}, CodeNullValue, ""},
		"column dropped since":    {fields("id", int64s, "name", text, "old", text), []string{"1", "a", "x"}, false, []int{0, 1, -1}, CodeUnknownField, ""},
		"dropped, no value":       {fields("id", int64s, "name", text, "old", text), []string{"1", "a", "(null)"}, false, []int{0, 1, -1}, "", ""},
		"dropped, table drops":    {fields("id", int64s, "name", text, "old", text), []string{"1", "a", "x"}, true, []int{0, 1, -1}, "", ""},
		"type changed since":      {fields("id", int64s, "name", text, "note", int64s), []string{"1", "a", "5"}, false, []int{0, 1, -1}, CodeTypeMismatch, ""},
		"type changed, no value":  {fields("id", int64s, "name", text, "note", int64s), []string{"1", "a", "(null)"}, false, []int{0, 1, -1}, "", ""},
		"key column missing":      {fields("name", text), []string{"a"}, false, []int{-1, 0, -1}, CodeNullKey, CodeNullKey},
		"key column of two types": {fields("id", text, "name", text), []string{"1", "a"}, false, []int{-1, 1, -1}, CodeTypeMismatch, CodeTypeMismatch},
		"null key":                {fields("id", int64s, "name", text), []string{"(null)", "a"}, false, []int{0, 1, -1}, CodeNullKey, CodeNullKey},
	} {
		t.Run(name, func(t *testing.T) {
			stored := arrow.NewSchema(c.stored, nil)
			l, err := newLayout(table, []string{"id"}, c.drop, stored)
			require.NoError(t, err)
			require.Equal(t, c.columns, l.columns)
			b := array.NewRecordBuilder(memory.DefaultAllocator, stored)
			for i, v := range c.row {
				require.NoError(t, b.Field(i).AppendValueFromString(v))
			}
			rec := b.NewRecord()
			require.Equal(t, c.upsert, codeOf(t, l, rec, wal.OpUpsert))
			require.Equal(t, c.del, codeOf(t, l, rec, wal.OpDelete), "a delete needs its key only (C72)")
		})
	}
}

func fields(namesAndTypes ...any) []arrow.Field {
	var out []arrow.Field
	for i := 0; i < len(namesAndTypes); i += 2 {
		out = append(out, arrow.Field{Name: namesAndTypes[i].(string), Type: namesAndTypes[i+1].(arrow.DataType), Nullable: true})
	}
	return out
}

// codeOf plays readChunk for the only row of rec.
func codeOf(t *testing.T, l *layout, rec arrow.Record, op wal.Op) string {
	t.Helper()
	b := &wal.Batch{Entries: make([]wal.BatchEntry, 1), Tables: []wal.BatchTable{{Record: rec, Ops: []wal.Op{op}, Entry: []uint32{0}}}}
	p := &tablePlan{numbers: newKeyNumbers(1)}
	require.NoError(t, p.readChunk(chunk{batch: b}, l))
	require.Len(t, p.changes, 1)
	if len(p.refused) == 0 {
		require.Zero(t, p.changes[0].key)
		return ""
	}
	require.Equal(t, noKey, p.changes[0].key)
	return p.refused[0].fault.code
}
