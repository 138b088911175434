package rows

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestScanTakesTheCommonForm: what producers write nearly always does not fall back to the slow reader.
func TestScanTakesTheCommonForm(t *testing.T) {
	for _, row := range []string{
		`{}`, `{ }`, `{"a":1}`, `{"a": 1, "b": null}`, `{"a":true,"b":false,"c":-0.5e-7,"d":"x"}`, "{\t\"a\" :\r\n1 , \"b\":\"\"}",
		`{"id":"0123456","name":"01234567","t":"012345678","é":"日本語 😀"}`, `{"a":"a\nb \"q\" \\ \u00e9\ud83d\ude00"}`, `{"a":1,"a":2}`,
	} {
		members, length, ok := scanRow([]byte(row+" {"), scanned(t), nil, 100)
		require.True(t, ok, row)
		require.Equal(t, len(row), length)
		requireScanned(t, []byte(row), members)
	}
}

// TestScanGivesUp: text that is no JSON, or not of the common form, is the library's.
func TestScanGivesUp(t *testing.T) {
	for _, row := range []string{
		`{`, `{"`, `{"a`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `{,}`, `{"a" 1}`, `{"a":1 "b":2}`, `{a:1}`, `{1:1}`, `{"a":01}`, `{"a":1.}`,
		`{"a":.5}`, `{"a":+1}`, `{"a":-}`, `{"a":1e}`, `{"a":1e+}`, `{"a":tru}`, `{"a":nul`, `{"a":NaN}`, `{"a":"x}`, "{\"a\":\"\x01\"}", "{\"a\":\"01234567\n\"}",
		`{"a":"\x"}`, `{"a":"\ud83d"}`, `{"a":"\`, `{"a\u0062":1}`, `{"a":{}}`, `{"a":[]}`, `{"a":1,"b":2,"c":3,"d":4,"e":5}`, `{"a":'x'}`,
	} {
		_, _, ok := scanRow([]byte(row), scanned(t), nil, 4)
		require.False(t, ok, row)
	}
}

// scanned is a table with columns that the rows have, in their order and in another, and one whose name needs an escape.
func scanned(t testing.TB) *Table {
	t.Helper()
	var fields []arrow.Field
	for _, name := range []string{"a", "b", "id", "q\"", "n", "é"} {
		fields = append(fields, arrow.Field{Name: name, Type: arrow.BinaryTypes.String})
	}
	table, err := NewTable(Spec{Table: "node:T", Key: []string{"a"}, Arrow: arrow.NewSchema(fields, nil)})
	require.NoError(t, err)
	return table
}

// requireScanned holds the members against the library's reader.
func requireScanned(t *testing.T, row []byte, members []member) {
	t.Helper()
	table := scanned(t)
	dec := jsontext.NewDecoder(bytes.NewReader(row), jsontext.AllowDuplicateNames(true))
	token, err := dec.ReadToken()
	require.NoError(t, err)
	require.Equal(t, jsontext.BeginObject.Kind(), token.Kind())
	for _, m := range members {
		name, err := dec.ReadValue()
		require.NoError(t, err)
		require.Equal(t, `"`+string(m.name)+`"`, string(name))
		value, err := dec.ReadValue()
		require.NoError(t, err)
		require.Equal(t, string(value), string(m.value))
		require.Equal(t, table.column(m.name), m.column)
		require.Equal(t, !bytes.ContainsRune(value, '\\'), m.plain)
	}
	token, err = dec.ReadToken()
	require.NoError(t, err)
	require.Equal(t, jsontext.EndObject.Kind(), token.Kind())
	require.EqualValues(t, len(row), dec.InputOffset())
}

// FuzzScan: what the scan takes, the library reads as the same members.
func FuzzScan(f *testing.F) {
	for _, seed := range []string{
		`{"id":"a","n":9007199254740993,"f":-1.5e+10,"b":true}`, `{ "a" : "\u00e9\\" , "b":null}`, `{"a":"0123456789abcdef\"","b":0}`,
		`{"a":{"b":1}}`, `{"a":1,"b":2,"id":3,"q\"":4,"n":5,"é":"6"}`, `{"b":1,"a":2,"a" :3,"id":4,"x":0}`, "{\"a\":\"\x7f\"}", `{}`, `{"a":1}}`, strings.Repeat(`{"k":"`, 3),
	} {
		f.Add([]byte(seed))
	}
	table := scanned(f)
	f.Fuzz(func(t *testing.T, row []byte) {
		if len(row) == 0 || row[0] != '{' || !utf8.Valid(row) {
			return
		}
		if members, length, ok := scanRow(row, table, nil, 100); ok {
			requireScanned(t, row[:length], members)
		}
	})
}

// TestShortFloats: the short way to a float gives what the long one gives, to the last bit.
func TestShortFloats(t *testing.T) {
	taken := 0
	check := func(text string) {
		want, err := strconv.ParseFloat(text, 64)
		require.NoError(t, err, text)
		if got, ok := parseShortFloat([]byte(text)); ok {
			taken++
			require.Equal(t, math.Float64bits(want), math.Float64bits(got), text)
		}
	}
	for _, text := range []string{"0", "-0", "-0.0", "0.1", "-0.3", "9007199254740991", "9007199254740993", "0.30000000000000004", "123.456",
		"1e5", "1.5E-3", "0.0000000000000000000001", "0.00000000000000000000001", "900719925474099.3", "99999999999999999999"} {
		check(text)
	}
	require.Equal(t, 7, taken)
	rapid.Check(t, func(t *rapid.T) {
		check(rapid.StringMatching(`-?(0|[1-9][0-9]{0,16})(\.[0-9]{1,24})?`).Draw(t, "text"))
	})
}
