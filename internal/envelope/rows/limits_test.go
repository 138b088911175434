package rows

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/internal/envelope"
)

// limitCase is a message that measures exactly n by one limit, and what a limit one lower says of it.
type limitCase struct {
	m     Message
	set   func(l *Limits, n int)
	n     int
	code  envelope.Code
	row   int
	field string
}

// limited is a table with columns of every kind that a limit concerns, and a key of one column or two.
func limited(t *testing.T, table string, key ...string) *Table {
	t.Helper()
	deep := arrow.ListOf(arrow.StructOf(arrow.Field{Name: "x", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true}))
	c, err := NewTable(Spec{Table: table, Key: key, DropUnknown: true, Arrow: arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.BinaryTypes.String}, {Name: "no", Type: arrow.PrimitiveTypes.Int64},
		{Name: "name", Type: arrow.BinaryTypes.LargeString, Nullable: true}, {Name: "bytes", Type: arrow.BinaryTypes.Binary, Nullable: true},
		{Name: "deep", Type: deep, Nullable: true},
	}, nil)})
	require.NoError(t, err)
	return c
}

// batchBytes are the bytes of the record batches of a stream that is not compressed.
func batchBytes(t *testing.T, stream []byte) int {
	t.Helper()
	r := ipc.NewMessageReader(bytes.NewReader(stream))
	defer r.Release()
	n := 0
	for {
		m, err := r.Message()
		if err != nil {
			return n
		}
		n += int(m.BodyLen())
	}
}

func limitCases(t *testing.T, width int) map[string]limitCase {
	payload := func(l *Limits, n int) { l.PayloadBytes = n }
	rows := func(l *Limits, n int) { l.Rows = n }
	columns := func(l *Limits, n int) { l.Columns = n }
	nesting := func(l *Limits, n int) { l.Nesting = n }
	keyBytes := func(l *Limits, n int) { l.KeyBytes = n }
	record := func(l *Limits, n int) { l.RecordBytes = n }
	text := func(l *Limits, n int) { l.StringBytes = n }

	json := func(table string, lines ...string) Message {
		return Message{Table: table, Body: []byte(strings.Join(lines, "\n"))}
	}
	schema := limited(t, "node:L", "id").Record()
	arrows := func(table string, names string, batches ...string) Message {
		var fields []arrow.Field
		for name := range strings.FieldsSeq(names) {
			f, _ := schema.FieldsByName(name)
			f[0].Nullable = true
			fields = append(fields, f[0])
		}
		return Message{Table: table, ContentType: envelope.ContentArrow, Body: ipcBody(t, arrow.NewSchema(fields, nil), batches...)}
	}
	const good = `{"id":"a","no":1}`
	tooLarge, tooDeep, none := envelope.CodeTooLarge, envelope.CodeTooDeep, envelope.NoRow
	three := json("node:L", good, good, good)
	plain := arrows("node:L", "id no", good+"\n"+good, good)
	long := strings.Repeat("x", 20)
	return map[string]limitCase{
		"payload":        {three, payload, len(three.Body), tooLarge, none, ""},
		"payload, Arrow": {plain, payload, len(plain.Body), tooLarge, none, ""},

		"rows":                  {three, rows, 3, tooLarge, none, ""},
		"rows over all tables":  {json("", `{"table":"node:L","row":`+good+`}`, `{"table":"node:K","row":`+good+`}`), rows, 2, tooLarge, none, ""},
		"rows over all batches": {plain, rows, 3, tooLarge, none, ""},

		"columns":                   {json("node:L", good, `{"id":"a","no":1,"name":"b","y":1,"z":1}`), columns, 5, tooLarge, 1, ""},
		"columns, by the reader":    {json("node:L", good, `{"id":"a","no":1,"name":"\u0062","y":1,"z":1}`), columns, 5, tooLarge, 1, ""},
		"columns, Arrow":            {arrows("node:L", "id no name", `{"id":"a","no":1,"name":"x"}`), columns, 3, tooLarge, none, ""},
		"columns of columns, Arrow": {arrows("node:L", "id no deep", `{"id":"a","no":1,"deep":null}`), columns, 6, tooLarge, none, "deep.item.x"},

		"nesting":                 {json("node:L", good, `{"id":"a","no":1,"deep":[{"x":["y"]}]}`), nesting, 3, tooDeep, 1, "deep[0].x"},
		"nesting of what is left": {json("node:L", good, `{"id":"a","no":1,"z":[{"x":["y"]}]}`), nesting, 3, tooDeep, 1, "z"},
		"nesting, Arrow":          {arrows("node:L", "id no deep", `{"id":"a","no":1,"deep":[{"x":["y"]}]}`), nesting, 3, tooDeep, none, "deep.item.x"},

		"key bytes":                   {json("node:L", good, `{"id":"`+long+`","no":1}`), keyBytes, 20, tooLarge, 1, "id"},
		"key bytes, escaped":          {json("node:L", good, `{"id":"\u0078`+long+`","no":1}`), keyBytes, 21, tooLarge, 1, "id"},
		"key bytes of a delete":       {Message{Table: "node:L", Op: envelope.OpDelete, Body: []byte(`{"id":"` + long + `"}`)}, keyBytes, 20, tooLarge, 0, "id"},
		"key bytes of two columns":    {json("node:K", good, `{"id":"`+long+`","no":1}`), keyBytes, 20 + 8 + 2, tooLarge, 1, "id"},
		"key bytes, Arrow":            {arrows("node:L", "id no", good+"\n"+good, `{"id":"`+long+`","no":1}`), keyBytes, 20, tooLarge, 2, "id"},
		"key bytes of two, Arrow":     {arrows("node:K", "id no", good, `{"id":"`+long+`","no":1}`), keyBytes, 20 + 8 + 2, tooLarge, 1, "no"},
		"string bytes":                {json("node:L", good, `{"id":"a","no":1,"name":"`+long+`"}`), text, 20, tooLarge, 1, "name"},
		"string bytes, escaped":       {json("node:L", good, `{"id":"a","no":1,"name":"\u0078`+long+`"}`), text, 21, tooLarge, 1, "name"},
		"string bytes, base64":        {json("node:L", good, `{"id":"a","no":1,"bytes":"AAEC"}`), text, 3, tooLarge, 1, "bytes"},
		"string bytes within":         {json("node:L", good, `{"id":"a","no":1,"deep":[null,{"x":["","`+long+`"]}]}`), text, 20, tooLarge, 1, "deep[1].x[1]"},
		"string bytes, Arrow":         {arrows("node:L", "id no name", good[:len(good)-1]+`,"name":null}`, `{"id":"a","no":1,"name":"`+long+`"}`), text, 20, tooLarge, 1, "name"},
		"string bytes within, Arrow":  {arrows("node:L", "id no deep", `{"id":"a","no":1,"deep":[{"x":["`+long+`"]}]}`), text, 20, tooLarge, none, "deep.item.x.item"},
		"record bytes":                {three, record, 3 * width, tooLarge, 2, ""},
		"record bytes, all tables":    {json("", `{"table":"node:L","row":`+good+`}`, `{"table":"node:K","row":`+good+`}`), record, 2 * width, tooLarge, 1, ""},
		"record bytes, all batches":   {plain, record, max(3*width, batchBytes(t, plain.Body)), tooLarge, none, ""},
		"record bytes, wide rows":     {arrows("node:L", "id no", strings.Repeat(good+"\n", 99)+good), record, 100 * width, tooLarge, none, ""},
		"record bytes, with its text": {arrows("node:L", "id no name", `{"id":"a","no":1,"name":"`+strings.Repeat(long, 99)+`"}`), record, -1, tooLarge, none, ""},
	}
}

// Issue 6, "limits stated and enforced": a message that measures exactly the limit is accepted, whatever it is made of; when the limit is one lower it is
// refused by an error that names the row and the field, when one is concerned, and the limit; and nothing of it stays.
func TestLimitsAreExact(t *testing.T) {
	one, two := limited(t, "node:L", "id"), limited(t, "node:K", "id", "no")
	tables := lookupOf(one, two)
	for name, c := range limitCases(t, one.width) {
		t.Run(name, func(t *testing.T) {
			if c.n < 0 {
				c.n = batchBytes(t, c.m.Body)
			}
			var limits Limits
			c.set(&limits, c.n)
			r, err := decodeOne(newTestDecoder(t, limits), c.m, tables)
			require.NoError(t, err)
			r.Release()

			c.set(&limits, c.n-1)
			d, batch := newTestDecoder(t, limits), &Batch{}
			_, err = d.Add(c.m, tables)
			var e *envelope.Error
			require.ErrorAs(t, err, &e)
			require.ErrorIs(t, err, envelope.ErrInvalid)
			require.Equal(t, [3]string{string(c.code), strconv.Itoa(c.row), c.field}, [3]string{string(e.Code), strconv.Itoa(e.Row), e.Field}, e.Reason)
			require.Contains(t, e.Reason, fmt.Sprint(c.n-1), "the bound")
			d.Take(batch)
			require.Empty(t, batch.tables, "rows of a refused message")
			batch.Release()
		})
	}
}
