package rows

import (
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/internal/envelope"
	"github.com/foldline/foldline/internal/testkit"
)

// jsonBodies are valid bodies of the fuzz table: by lines that name it and not, of the scanned form and not.
func jsonBodies() []testkit.Body {
	full := `{"id":"a","n":9007199254740993,"f":1.5,"t":"2026-03-29T02:30:00Z","d":"1.5","b":"AAEC","l":[{"x":1},null]}`
	return []testkit.Body{
		testkit.JSONBody("scanned", strings.Repeat(`{"id":"a","n":-1,"f":0.5}`+"\n", 3)),
		testkit.JSONBody("full", full+"\n"+full),
		testkit.JSONBody("escapes", `{"id":"\u00e9\ud83d\ude00\n","n":1e3,"x":{"y":[1,{"z":null}]}}`+"\r\n"+"{\n \"id\" : \"é\"\n}"),
		testkit.JSONBody("lines", `{"table":"node:F","op":"delete","row":{"id":"a"}}`+"\n"+`{"row":`+full+`,"table":"node:F"}`),
	}
}

// Issue 6: the damaged bodies of the corpus through the whole decoder. No panic, bounded allocations, no leak; each is rows or a typed refusal. The undamaged bodies are Arrow's own, so that each of them has to be accepted; its dictionaries beside a decimal share
// a vtable with a table of another size.
func TestDamagedBodies(t *testing.T) {
	table := fuzzTable(t)
	limits := Limits{RecordBytes: 256 << 10}
	for kind, bodies := range map[string][]testkit.Body{
		envelope.ContentNDJSON: jsonBodies(),
		envelope.ContentArrow:  testkit.ArrowBodies(t, table.Record()),
	} {
		d := newTestDecoder(t, limits)
		for _, b := range bodies {
			m := Message{Table: table.Key(), ContentType: kind}
			if b.Name == "lines" {
				m.Table = ""
			}
			testkit.RequireBoundedDecode(t, b, 61, limits.RecordBytes, func(body []byte) error {
				m.Body = body
				return decoded(t, d, m, lookupOf(table))
			})
		}
	}
}

// decoded decodes a message and gives its rows back; an error that is no typed refusal fails the test. A stream without rows is as good as decoded.
func decoded(t *testing.T, d *Decoder, m Message, lookup Lookup) error {
	t.Helper()
	r, err := decodeOne(d, m, lookup)
	if err == nil {
		r.Release()
		return nil
	}
	var e *envelope.Error
	require.ErrorAs(t, err, &e)
	require.ErrorIs(t, err, envelope.ErrInvalid)
	require.NotEmpty(t, e.Reason)
	if m.ContentType == envelope.ContentArrow && e.Code == envelope.CodeEmptyBody && len(m.Body) > 0 {
		return nil
	}
	return err
}

// FuzzDecodeArrow: any body that calls itself an Arrow stream is rows of the table or a typed refusal.
func FuzzDecodeArrow(f *testing.F) {
	table := fuzzTable(f)
	for _, b := range testkit.ArrowBodies(f, table.Record()) {
		for data := range testkit.Seeds(b) {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		alloc := memory.NewCheckedAllocator(memory.NewGoAllocator())
		defer alloc.AssertSize(t, 0)
		d := NewDecoder(alloc, Limits{RecordBytes: 1 << 20})
		defer d.Close()
		_ = decoded(t, d, Message{Table: table.Key(), ContentType: envelope.ContentArrow, Body: body}, lookupOf(table))
	})
}
