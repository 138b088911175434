package rows

import (
	"bytes"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/internal/envelope"
)

// ipcBody is the stream of records that JSON rows of a schema describe; nullability is the schema's word only.
func ipcBody(t *testing.T, s *arrow.Schema, batches ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := ipc.NewWriter(&out, ipc.WithSchema(s))
	for _, rows := range batches {
		// Rows are read by the decoder's own readers, with every column relaxed.
		c := &compiler{limits: Limits{}.EnsureDefaults()}
		b := array.NewRecordBuilder(memory.NewGoAllocator(), s)
		for _, row := range strings.Split(rows, "\n") {
			fillRow(t, c, s, b, row)
		}
		require.NoError(t, w.Write(b.NewRecord()))
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

func fillRow(t *testing.T, c *compiler, s *arrow.Schema, b *array.RecordBuilder, row string) {
	t.Helper()
	dec := newRowReader(row)
	_, err := dec.ReadToken()
	require.NoError(t, err)
	for i, f := range s.Fields() {
		_, err := dec.ReadValue()
		require.NoError(t, err)
		require.Nil(t, c.newReader(f, true, b.Field(i)).read(dec))
	}
}

func text(name string, nullable bool) arrow.Field {
	return arrow.Field{Name: name, Type: arrow.BinaryTypes.String, Nullable: nullable}
}

func TestArrowStream(t *testing.T) {
	d := newTestDecoder(t, Limits{})
	// Other order, one column left out, wide text, two batches.
	s := arrow.NewSchema([]arrow.Field{
		{Name: "n", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, {Name: "name", Type: arrow.BinaryTypes.LargeString, Nullable: true}, text("id", true)}, nil)
	body := ipcBody(t, s, `{"n":9007199254740993,"name":"Arlanda","id":"ARN"}`, `{"n":null,"name":"Landvetter","id":"GOT"}`+"\n"+`{"n":1,"name":"é","id":""}`)
	r, err := decodeOne(d, Message{Table: "node:Airport", ContentType: envelope.ContentArrow, Op: envelope.OpInsert, Body: body}, lookupOf(airport(t, nil)))
	require.NoError(t, err)
	defer r.Release()
	require.Equal(t, 3, r.Rows)
	rec := r.Tables[0].Record
	require.True(t, rec.Schema().Equal(airport(t, nil).Record()))
	require.Equal(t, []string{"ARN", "GOT", ""}, []string{rec.Column(0).ValueStr(0), rec.Column(0).ValueStr(1), rec.Column(0).ValueStr(2)})
	require.Equal(t, "é", rec.Column(1).(*array.String).Value(2))
	require.Equal(t, int64(9007199254740993), rec.Column(2).(*array.Int64).Value(0))
	require.True(t, rec.Column(2).IsNull(1))
	require.Equal(t, 3, rec.Column(3).NullN())
	require.Equal(t, []envelope.Op{envelope.OpInsert, envelope.OpInsert, envelope.OpInsert}, r.Tables[0].Ops)
}

func TestArrowDeleteNeedsTheKeyOnly(t *testing.T) {
	d := newTestDecoder(t, Limits{})
	s := arrow.NewSchema([]arrow.Field{text("id", true), {Name: "name", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil)
	r, err := decodeOne(d, Message{Table: "node:Airport", ContentType: envelope.ContentArrow, Op: envelope.OpDelete, Body: ipcBody(t, s, `{"id":"ARN","name":1}`)}, lookupOf(airport(t, nil)))
	require.NoError(t, err)
	defer r.Release()
	require.Equal(t, 1, r.Tables[0].Record.Column(1).NullN())
}

func TestArrowRefusals(t *testing.T) {
	id, name := text("id", true), text("name", true)
	schema := func(fields ...arrow.Field) *arrow.Schema { return arrow.NewSchema(fields, nil) }
	for label, c := range map[string]struct {
		s     *arrow.Schema
		rows  []string
		code  envelope.Code
		row   int
		field string
	}{
		"missing key":      {schema(name), []string{`{"name":"x"}`}, envelope.CodeMissingKey, -1, "id"},
		"null key":         {schema(id, name), []string{`{"id":"a","name":"x"}`, `{"id":"b","name":"x"}` + "\n" + `{"id":null,"name":"x"}`}, envelope.CodeMissingKey, 2, "id"},
		"missing required": {schema(id), []string{`{"id":"a"}`}, envelope.CodeNullInRequired, -1, "name"},
		"null in required": {schema(id, name), []string{`{"id":"a","name":null}`}, envelope.CodeNullInRequired, 0, "name"},
		"type":             {schema(id, arrow.Field{Name: "name", Type: arrow.BinaryTypes.Binary, Nullable: true}), []string{`{"id":"a","name":"AA=="}`}, envelope.CodeSchemaMismatch, -1, "name"},
		"narrower":         {schema(id, name, arrow.Field{Name: "n", Type: arrow.PrimitiveTypes.Int32, Nullable: true}), []string{`{"id":"a","name":"x","n":1}`}, envelope.CodeSchemaMismatch, -1, "n"},
		"unknown column":   {schema(id, name, text("x", true)), []string{`{"id":"a","name":"x","x":"x"}`}, envelope.CodeUnknownField, -1, "x"},
		"key bytes":        {schema(id, name), []string{`{"id":"12345678901234567","name":"x"}`}, envelope.CodeTooLarge, 0, "id"},
		"string bytes":     {schema(id, name), []string{`{"id":"a","name":"123456789012345678901"}`}, envelope.CodeTooLarge, 0, "name"},
		"rows":             {schema(id, name), []string{strings.Repeat(`{"id":"a","name":"x"}`+"\n", 3) + `{"id":"a","name":"x"}`}, envelope.CodeTooLarge, -1, ""},
	} {
		t.Run(label, func(t *testing.T) {
			d := newTestDecoder(t, Limits{Rows: 3, KeyBytes: 16, StringBytes: 20})
			_, err := decodeOne(d, Message{Table: "node:Airport", ContentType: envelope.ContentArrow, Body: ipcBody(t, c.s, c.rows...)}, lookupOf(airport(t, nil)))
			var e *envelope.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, c.code, e.Code, e.Reason)
			require.Equal(t, c.row, e.Row, e.Reason)
			require.Equal(t, c.field, e.Field, e.Reason)
		})
	}
	d := newTestDecoder(t, Limits{})
	for body, code := range map[string]envelope.Code{"": envelope.CodeEmptyBody, "x": envelope.CodeBadArrow} {
		_, err := decodeOne(d, Message{Table: "node:Airport", ContentType: envelope.ContentArrow, Body: []byte(body)}, lookupOf(airport(t, nil)))
		var e *envelope.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, code, e.Code)
	}
	_, err := decodeOne(d, Message{ContentType: envelope.ContentArrow, Body: []byte("x")}, lookupOf(airport(t, nil)))
	require.ErrorIs(t, err, envelope.ErrInvalid)
}

// Nulls and types at every level of nested columns (C94, C98), and values that are no value of their type.
func TestArrowNestedAndRanges(t *testing.T) {
	strict := arrow.StructOf(text("city", false), arrow.Field{Name: "tags", Type: arrow.ListOfNonNullable(arrow.BinaryTypes.String), Nullable: true})
	loose := arrow.StructOf(text("city", true), arrow.Field{Name: "tags", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true})
	day := arrow.FixedWidthTypes.Date64
	table, err := NewTable(Spec{Table: "node:T", Key: []string{"id"}, Arrow: arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "v", Type: strict, Nullable: true}, {Name: "d", Type: day, Nullable: true}}, nil)})
	require.NoError(t, err)
	id := arrow.Field{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true}
	for rows, want := range map[string]envelope.Code{
		`{"id":1,"v":{"city":"A","tags":["x"]}}` + "\n" + `{"id":2,"v":null}` + "\n" + `{"id":3,"v":{"city":"B","tags":null}}`: "",
		`{"id":1,"v":{"city":null,"tags":null}}`:  envelope.CodeNullInRequired,
		`{"id":1,"v":{"city":"A","tags":[null]}}`: envelope.CodeNullInRequired,
	} {
		d := newTestDecoder(t, Limits{})
		r, err := decodeOne(d, Message{Table: "node:T", ContentType: envelope.ContentArrow,
			Body: ipcBody(t, arrow.NewSchema([]arrow.Field{id, {Name: "v", Type: loose, Nullable: true}}, nil), rows)}, lookupOf(table))
		if want == "" {
			require.NoError(t, err)
			require.Equal(t, `{"city":"B","tags":null}`, r.Tables[0].Record.Column(1).ValueStr(2))
			require.True(t, r.Tables[0].Record.Column(1).IsNull(1))
			r.Release()
			continue
		}
		var e *envelope.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, want, e.Code, e.Reason)
		require.True(t, strings.HasPrefix(e.Field, "v."), e.Field)
	}
	b := array.NewRecordBuilder(memory.NewGoAllocator(), arrow.NewSchema([]arrow.Field{id, {Name: "d", Type: day, Nullable: true}}, nil))
	b.Field(0).(*array.Int64Builder).Append(1)
	b.Field(1).(*array.Date64Builder).Append(1)
	var out bytes.Buffer
	w := ipc.NewWriter(&out, ipc.WithSchema(b.Schema()))
	require.NoError(t, w.Write(b.NewRecord()))
	require.NoError(t, w.Close())
	_, err = decodeOne(newTestDecoder(t, Limits{}), Message{Table: "node:T", ContentType: envelope.ContentArrow, Body: out.Bytes()}, lookupOf(table))
	var e *envelope.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, envelope.CodeOutOfRange, e.Code)
	require.Equal(t, 0, e.Row)
}
