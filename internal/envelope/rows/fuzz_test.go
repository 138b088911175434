package rows

import (
	"bytes"
	"encoding/json"
	"io"
	"math/big"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/internal/envelope"
	"github.com/foldline/foldline/internal/testkit"
)

func fuzzTable(t testing.TB) *Table {
	t.Helper()
	table, err := NewTable(Spec{
		Table: "node:F", Key: []string{"id"}, DropUnknown: true,
		Arrow: arrow.NewSchema([]arrow.Field{
			{Name: "id", Type: arrow.BinaryTypes.String},
			{Name: "n", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
			{Name: "f", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
			{Name: "t", Type: arrow.FixedWidthTypes.Timestamp_us, Nullable: true},
			{Name: "d", Type: &arrow.Decimal128Type{Precision: 20, Scale: 4}, Nullable: true},
			{Name: "b", Type: arrow.BinaryTypes.Binary, Nullable: true},
			{Name: "l", Type: arrow.ListOf(arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Uint32, Nullable: true})), Nullable: true},
		}, nil),
	})
	require.NoError(t, err)
	return table
}

// FuzzDecode holds the decoder against encoding/json: what we accept it accepts, with the same strings and the very
// same integers; what we call bad JSON it refuses, or it is text that RFC 8259 lets a reader refuse.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"id":"a","n":9007199254740993,"f":1.5,"t":"2026-03-29T02:30:00Z","d":"1.5","b":"AAEC","l":[{"x":1},null]}`,
		"{\"id\":\"a\"}\n{\"id\":\"b\",\"n\":1e3}", `{"id":"\u00e9\ud83d\ude00","x":{"y":[1,{"z":null}]}}`, `null`, ``, `[]`, `{"id":"a","id":"b"}`,
		`{"table":"node:F","op":"delete","row":{"id":"a"}}`, `{"row":{"id":"a"},"table":"node:F"}`, `{"id":"a","n":1E400}`,
	} {
		f.Add([]byte(seed), false)
		f.Add([]byte(seed), true)
	}
	for _, b := range jsonBodies() {
		for data := range testkit.Seeds(b) {
			f.Add(data, b.Name == "lines")
		}
	}
	table := fuzzTable(f)
	f.Fuzz(func(t *testing.T, body []byte, lines bool) {
		alloc := memory.NewCheckedAllocator(memory.NewGoAllocator())
		defer alloc.AssertSize(t, 0)
		d := NewDecoder(alloc, Limits{})
		defer d.Close()
		m := Message{Table: "node:F", Body: body}
		if lines {
			m.Table = ""
		}
		before := bytes.Clone(body)
		r, err := decodeOne(d, m, lookupOf(table))
		require.Equal(t, before, body, "the body was changed")
		if err != nil {
			var e *envelope.Error
			require.ErrorAs(t, err, &e)
			require.NotEmpty(t, e.Reason)
			if e.Code == envelope.CodeBadJSON && !mayRefuse(body) {
				require.Error(t, standardAccepts(body), "refused what encoding/json accepts: %v", e)
			}
			return
		}
		defer r.Release()
		require.NoError(t, standardAccepts(body), "accepted what encoding/json refuses")
		if !lines {
			compare(t, body, r.Tables[0].Record)
		}
	})
}

// mayRefuse tells whether the text holds what RFC 8259 leaves to the reader and encoding/json accepts: escapes of lone
// surrogates, and nesting.
func mayRefuse(body []byte) bool {
	lower := bytes.ToLower(body)
	return bytes.Contains(lower, []byte(`\ud`)) || bytes.Count(body, []byte("[")) > 1000
}

func standardAccepts(body []byte) error {
	dec := json.NewDecoder(bytes.NewReader(body))
	for {
		var v any
		dec.UseNumber()
		if err := dec.Decode(&v); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func compare(t *testing.T, body []byte, rec arrow.Record) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	for row := range int(rec.NumRows()) {
		var v map[string]any
		require.NoError(t, dec.Decode(&v))
		require.Equal(t, v["id"], rec.Column(0).(*array.String).Value(row))
		n, ok := v["n"].(json.Number)
		if !ok {
			continue
		}
		if _, exponent, _ := strings.Cut(strings.ToLower(n.String()), "e"); len(exponent) > 3 {
			continue // big.Rat would write all the zeros down
		}
		want, ok := new(big.Rat).SetString(n.String())
		if ok {
			got := new(big.Rat).SetInt64(rec.Column(1).(*array.Int64).Value(row))
			require.Zero(t, want.Cmp(got), "%s became %s", n, got)
		}
	}
}
