package rows

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
)

// TestScanTakesTheCommonForm: what producers write nearly always does not fall back to the slow reader.
func TestScanTakesTheCommonForm(t *testing.T) {
	for _, row := range []string{
		`{}`, `{ }`, `{"a":1}`, `{"a": 1, "b": null}`, `{"a":true,"b":false,"c":-0.5e-7,"d":"x"}`, "{\t\"a\" :\r\n1 , \"b\":\"\"}",
		`{"id":"0123456","name":"01234567","t":"012345678","é":"日本語 😀"}`, `{"a":"a\nb \"q\" \\ \u00e9\ud83d\ude00"}`, `{"a":1,"a":2}`,
	} {
		members, length, ok := scanRow([]byte(row+" {"), nil, 100)
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
		_, _, ok := scanRow([]byte(row), nil, 4)
		require.False(t, ok, row)
	}
}

// requireScanned holds the members against the library's reader.
func requireScanned(t *testing.T, row []byte, members []member) {
	t.Helper()
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
		`{"a":{"b":1}}`, "{\"a\":\"\x7f\"}", `{}`, `{"a":1}}`, strings.Repeat(`{"k":"`, 3),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, row []byte) {
		if len(row) == 0 || row[0] != '{' || !utf8.Valid(row) {
			return
		}
		if members, length, ok := scanRow(row, nil, 100); ok {
			requireScanned(t, row[:length], members)
		}
	})
}
