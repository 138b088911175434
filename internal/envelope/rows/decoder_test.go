package rows

import (
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/internal/envelope"
)

// airport is a table with a key, a column that takes no null, and the usual types.
func airport(t testing.TB, change func(*Spec)) *Table {
	t.Helper()
	spec := Spec{
		Table: "node:Airport", ID: 7, Key: []string{"id"},
		Arrow: arrow.NewSchema([]arrow.Field{
			{Name: "id", Type: arrow.BinaryTypes.String},
			{Name: "name", Type: arrow.BinaryTypes.String},
			{Name: "n", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
			{Name: "city", Type: arrow.BinaryTypes.String, Nullable: true},
		}, nil),
	}
	if change != nil {
		change(&spec)
	}
	table, err := NewTable(spec)
	require.NoError(t, err)
	return table
}

func lookupOf(tables ...*Table) Lookup {
	return func(key string) (*Table, error) {
		for _, t := range tables {
			if t.Key() == key {
				return t, nil
			}
		}
		return nil, fmt.Errorf("no table %s", key)
	}
}

func newTestDecoder(t testing.TB, limits Limits) *Decoder {
	t.Helper()
	alloc := memory.NewCheckedAllocator(memory.NewGoAllocator())
	d := NewDecoder(alloc, limits)
	t.Cleanup(func() {
		d.Close()
		alloc.AssertSize(t, 0)
	})
	return d
}

func TestDecodeKeepsRowsAndOrder(t *testing.T) {
	d := newTestDecoder(t, Limits{})
	body := "{\"id\":\"ARN\",\"name\":\"Arlanda\",\"n\":9007199254740993}\n\n{\"n\":null,\"name\":\"\\u00e9\",\"id\":\"é\"}\n"
	r, err := decodeOne(d, Message{Table: "node:Airport", Body: []byte(body)}, lookupOf(airport(t, nil)))
	require.NoError(t, err)
	defer r.Release()
	require.Equal(t, 2, r.Rows)
	rec := r.Tables[0].Record
	require.Equal(t, "ARN", rec.Column(0).(*array.String).Value(0))
	require.Equal(t, int64(9007199254740993), rec.Column(2).(*array.Int64).Value(0))
	require.True(t, rec.Column(2).IsNull(1))
	require.Equal(t, "é", rec.Column(1).(*array.String).Value(1))
	require.True(t, rec.Column(3).IsNull(0))
	require.Equal(t, []envelope.Op{envelope.OpUpsert, envelope.OpUpsert}, r.Tables[0].Ops)
}

func TestRecordSchemaRelaxesAllButTheKey(t *testing.T) {
	for _, f := range airport(t, nil).Record().Fields() {
		require.Equal(t, f.Name != "id", f.Nullable, f.Name)
	}
}

func TestDeleteNeedsTheKeyOnly(t *testing.T) {
	d := newTestDecoder(t, Limits{})
	body := `{"id":"ARN"}` + "\n" + `{"name":17,"id":"GOT","n":{"deep":[1]}}`
	r, err := decodeOne(d, Message{Table: "node:Airport", Op: envelope.OpDelete, Body: []byte(body)}, lookupOf(airport(t, nil)))
	require.NoError(t, err)
	defer r.Release()
	rec := r.Tables[0].Record
	require.Equal(t, "GOT", rec.Column(0).(*array.String).Value(1))
	for column := 1; column < 4; column++ {
		require.Equal(t, 2, rec.Column(column).NullN())
	}
}

func TestDropUnknownCountsThem(t *testing.T) {
	d := newTestDecoder(t, Limits{})
	drop := airport(t, func(s *Spec) { s.DropUnknown = true })
	body := `{"id":"ARN","name":"A","x":1,"y":{"a":[{"b":null}]}}` + "\n" + `{"id":"B","name":"B","x":null}`
	r, err := decodeOne(d, Message{Table: "node:Airport", Body: []byte(body)}, lookupOf(drop))
	require.NoError(t, err)
	defer r.Release()
	require.Equal(t, 3, r.Dropped)
}

func TestLinesNameTableAndOperation(t *testing.T) {
	d := newTestDecoder(t, Limits{})
	other := airport(t, func(s *Spec) { s.Table = "edge:Flight" })
	body := strings.Join([]string{
		`{"table":"node:Airport","op":"upsert","row":{"id":"ARN","name":"A"}}`,
		`{"row":{"id":"F1","name":"x"},"table":"edge:Flight"}`,
		`{"op":"delete","row":{"id":"GOT","name":1},"table":"node:Airport"}`,
		`{"table":"edge:Flight","row":{"id":"F2","name":"x"},"op":"insert"}`,
	}, "\n")
	r, err := decodeOne(d, Message{Body: []byte(body)}, lookupOf(airport(t, nil), other))
	require.NoError(t, err)
	defer r.Release()
	require.Len(t, r.Tables, 2)
	require.Equal(t, []envelope.Op{envelope.OpUpsert, envelope.OpDelete}, r.Tables[0].Ops)
	require.Equal(t, []envelope.Op{envelope.OpUpsert, envelope.OpInsert}, r.Tables[1].Ops)
	require.Equal(t, []int{0, 2}, r.Tables[0].Lines)
	require.Equal(t, []int{1, 3}, r.Tables[1].Lines)
}

func TestMemberOrderIsIrrelevantAndABadMessageLeavesNothing(t *testing.T) {
	d := newTestDecoder(t, Limits{})
	lookup := lookupOf(airport(t, nil))
	for range 3 {
		_, err := decodeOne(d, Message{Table: "node:Airport", Body: []byte("{\"id\":\"a\",\"name\":\"b\"}\n{\"id\":\"c\"}")}, lookup)
		require.Error(t, err)
		r, err := decodeOne(d, Message{Table: "node:Airport", Body: []byte(`{"city":"x","n":1,"name":"b","id":"a"}`)}, lookup)
		require.NoError(t, err)
		require.Equal(t, 1, r.Rows)
		require.Equal(t, "x", r.Tables[0].Record.Column(3).(*array.String).Value(0))
		r.Release()
	}
}

// Architecture, section 5: everything that is refused before anything is durable.
func TestRefusals(t *testing.T) {
	small := Limits{PayloadBytes: 4096, Rows: 3, Columns: 6, Nesting: 3, KeyBytes: 16, StringBytes: 20, RecordBytes: 1 << 10}
	good := `{"id":"a","name":"b"}`
	for name, c := range map[string]struct {
		table, content, body string
		op                   envelope.Op
		code                 envelope.Code
		row                  int
		field                string
	}{
		"empty":                {body: "", code: envelope.CodeEmptyBody, row: -1},
		"white space":          {body: " \n\t\r\n", code: envelope.CodeEmptyBody, row: -1},
		"null":                 {body: "null", code: envelope.CodeNullBody},
		"null line":            {body: good + "\nnull", code: envelope.CodeNullBody, row: 1},
		"array":                {body: "[" + good + "]", code: envelope.CodeBadLine},
		"number":               {body: "17", code: envelope.CodeBadLine},
		"cut off":              {body: `{"id":"a","na`, code: envelope.CodeBadJSON},
		"cut off after member": {body: `{"id":"a"`, code: envelope.CodeBadJSON},
		"trailing garbage":     {body: good + " x", code: envelope.CodeBadJSON, row: 1},
		"trailing brace":       {body: good + "}", code: envelope.CodeBadJSON, row: 1},
		"two on a line":        {body: good + " " + good, code: envelope.CodeBadLine, row: 1},
		"trailing comma":       {body: `{"id":"a","name":"b",}`, code: envelope.CodeBadJSON},
		"comment":              {body: good + "\n// x", code: envelope.CodeBadJSON, row: 1},
		"single quotes":        {body: `{'id':'a'}`, code: envelope.CodeBadJSON},
		"byte order mark":      {body: "\ufeff" + good, code: envelope.CodeBadJSON},
		"bad UTF-8":            {body: "{\"id\":\"\xff\"}", code: envelope.CodeBadUTF8, row: -1},
		"lone surrogate":       {body: `{"id":"\ud800","name":"b"}`, code: envelope.CodeBadJSON, field: "id"},
		"control character":    {body: "{\"id\":\"a\x01\"}", code: envelope.CodeBadJSON, field: "id"},
		"duplicate member":     {body: `{"id":"a","name":"b","id":"a"}`, code: envelope.CodeDuplicateMember, field: "id"},
		"duplicate, escaped":   {body: `{"id":"a","name":"b","\u0069d":"a"}`, code: envelope.CodeDuplicateMember, field: "id"},
		"unknown field":        {body: `{"id":"a","name":"b","nme":1}`, code: envelope.CodeUnknownField, field: "nme"},
		"unknown in a delete":  {body: `{"id":"a","nme":1}`, op: envelope.OpDelete, code: envelope.CodeUnknownField, field: "nme"},
		"missing key":          {body: good + "\n" + `{"name":"b"}`, code: envelope.CodeMissingKey, row: 1, field: "id"},
		"missing key, delete":  {body: `{"name":"b"}`, op: envelope.OpDelete, code: envelope.CodeMissingKey, field: "id"},
		"null key":             {body: `{"id":null,"name":"b"}`, code: envelope.CodeMissingKey, field: "id"},
		"null key, delete":     {body: `{"id":null}`, op: envelope.OpDelete, code: envelope.CodeMissingKey, field: "id"},
		"missing required":     {body: `{"id":"a"}`, code: envelope.CodeNullInRequired, field: "name"},
		"null in required":     {body: `{"id":"a","name":null}`, code: envelope.CodeNullInRequired, field: "name"},
		"wrong kind":           {body: `{"id":"a","name":17}`, code: envelope.CodeBadValue, field: "name"},
		"number as key":        {body: `{"id":17,"name":"b"}`, code: envelope.CodeBadValue, field: "id"},
		"rounded":              {body: `{"id":"a","name":"b","n":1.5}`, code: envelope.CodeBadValue, field: "n"},
		"out of range":         {body: `{"id":"a","name":"b","n":1e19}`, code: envelope.CodeOutOfRange, field: "n"},
		"payload":              {body: `{"id":"` + strings.Repeat("a", 4096) + `"}`, code: envelope.CodeTooLarge, row: -1},
		"rows":                 {body: strings.Repeat(good+"\n", 4), code: envelope.CodeTooLarge, row: -1},
		"columns":              {body: `{"id":"a","name":"b","n":1,"city":"c","a":1,"b":1,"c":1}`, table: "drop", code: envelope.CodeTooLarge},
		"nesting":              {body: `{"id":"a","name":"b","a":[[[[1]]]]}`, table: "drop", code: envelope.CodeTooDeep, field: "a"},
		"nesting far":          {body: `{"id":"a","name":"b","a":` + strings.Repeat("[", 4000), table: "drop", code: envelope.CodeBadJSON, field: "a"},
		"duplicate in dropped": {body: `{"id":"a","name":"b","a":{"x":1,"x":1}}`, table: "drop", code: envelope.CodeDuplicateMember, field: "a"},
		"duplicate dropped":    {body: `{"id":"a","name":"b","a":1,"a":1}`, table: "drop", code: envelope.CodeDuplicateMember, field: "a"},
		"key bytes":            {body: `{"id":"12345678901234567","name":"b"}`, code: envelope.CodeTooLarge, field: "id"},
		"string bytes":         {body: `{"id":"a","name":"123456789012345678901"}`, code: envelope.CodeTooLarge, field: "name"},
		"unknown table":        {table: "node:Nothing", body: good, code: envelope.CodeUnknownTable, row: -1},
		"content type":         {content: "text/csv", body: good, code: envelope.CodeUnsupportedContent, row: -1},
		"charset":              {content: "application/json; charset=latin1", body: good, code: envelope.CodeUnsupportedContent, row: -1},

		"line: array":         {table: "-", body: `[]`, code: envelope.CodeBadLine},
		"line: no table":      {table: "-", body: `{"row":` + good + `}`, code: envelope.CodeBadLine, field: "table"},
		"line: no row":        {table: "-", body: `{"table":"node:Airport"}`, code: envelope.CodeBadLine, field: "row"},
		"line: null row":      {table: "-", body: `{"table":"node:Airport","row":null}`, code: envelope.CodeNullBody},
		"line: unknown op":    {table: "-", body: `{"table":"node:Airport","op":"merge","row":` + good + `}`, code: envelope.CodeUnknownOp, field: "op"},
		"line: op upper case": {table: "-", body: `{"table":"node:Airport","op":"UPSERT","row":` + good + `}`, code: envelope.CodeUnknownOp, field: "op"},
		"line: op null":       {table: "-", body: `{"table":"node:Airport","op":null,"row":` + good + `}`, code: envelope.CodeBadLine, field: "op"},
		"line: member":        {table: "-", body: `{"table":"node:Airport","rows":[]}`, code: envelope.CodeBadLine},
		"line: table twice":   {table: "-", body: `{"table":"node:Airport","table":"node:Airport","row":` + good + `}`, code: envelope.CodeDuplicateMember, field: "table"},
		"line: row twice":     {table: "-", body: `{"table":"node:Airport","row":` + good + `,"row":` + good + `}`, code: envelope.CodeDuplicateMember, field: "row"},
		"line: bad table key": {table: "-", body: `{"table":"a.b","row":` + good + `}`, code: envelope.CodeBadLine, field: "table"},
		"line: unknown table": {table: "-", body: `{"table":"node:Airport","row":` + good + "}\n" + `{"table":"node:No","row":{}}`, code: envelope.CodeUnknownTable, row: 1},
		"line: bad row":       {table: "-", body: `{"row":{"id":"a","name":"b","n":"x"},"table":"node:Airport"}`, code: envelope.CodeBadValue, field: "n"},
		"line: duplicate":     {table: "-", body: `{"row":{"id":"a","name":"b","id":"a"},"table":"node:Airport"}`, code: envelope.CodeDuplicateMember, field: "id"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newTestDecoder(t, small)
			drop := airport(t, func(s *Spec) { s.Table, s.DropUnknown = "drop", true })
			m := Message{Table: c.table, ContentType: c.content, Body: []byte(c.body), Op: c.op}
			switch c.table {
			case "":
				m.Table = "node:Airport"
			case "-":
				m.Table = ""
			}
			_, err := decodeOne(d, m, lookupOf(airport(t, nil), drop))
			var e *envelope.Error
			require.ErrorAs(t, err, &e)
			require.ErrorIs(t, err, envelope.ErrInvalid)
			require.Equal(t, c.code, e.Code, e.Reason)
			require.Equal(t, c.row, e.Row, e.Reason)
			require.Equal(t, c.field, e.Field, e.Reason)
			require.NotEmpty(t, e.Reason)
		})
	}
}

// A few bytes of JSON must not take the width of a wide table a hundred thousand times over.
func TestNarrowRowsOfAWideTableAreBounded(t *testing.T) {
	d := newTestDecoder(t, Limits{RecordBytes: 1 << 20})
	wide := airport(t, func(s *Spec) {
		fields := append(s.Arrow.Fields(), arrow.Field{
			Name: "vector", Type: arrow.FixedSizeListOf(4096, arrow.PrimitiveTypes.Float32), Nullable: true})
		s.Arrow = arrow.NewSchema(fields, nil)
	})
	body := strings.Repeat(`{"id":"a","name":"b"}`+"\n", 100)
	_, err := decodeOne(d, Message{Table: "node:Airport", Body: []byte(body)}, lookupOf(wide))
	var e *envelope.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, envelope.CodeTooLarge, e.Code)
	require.Less(t, e.Row, 100)
}

func TestLookupErrorsPassThrough(t *testing.T) {
	d := newTestDecoder(t, Limits{})
	busy := &envelope.Error{Class: envelope.ClassBusy, Code: envelope.CodeSchemasStale, Row: envelope.NoRow}
	_, err := decodeOne(d, Message{Table: "node:Airport", Body: []byte("{}")}, func(string) (*Table, error) { return nil, busy })
	require.ErrorIs(t, err, envelope.ErrBusy)
	require.Same(t, busy, err)
}

func TestBuildersOfManyTablesAreBounded(t *testing.T) {
	d := newTestDecoder(t, Limits{})
	for i := range 3 * maxKeptBuilds {
		table := airport(t, func(s *Spec) { s.Table = fmt.Sprintf("node:T%d", i) })
		r, err := decodeOne(d, Message{Table: table.Key(), Body: []byte(`{"id":"a","name":"b"}`)}, lookupOf(table))
		require.NoError(t, err)
		r.Release()
		require.LessOrEqual(t, len(d.kept), maxKeptBuilds)
	}
}
