package infer

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestColumns(t *testing.T) {
	for _, c := range []struct {
		name, rows string
		mode       Mode
		want       string // name type nullable, per column
		err        string
	}{
		{name: "each type",
			rows: `{"id":"a","i":1,"u":18446744073709551615,"d":1.5,"b":true,"t":"2001-01-01T00:47:00Z","s":"x","n":null}`,
			want: "id string, i int64?, u uint64?, d double?, b bool?, t timestamp:us:UTC?, s string?, n string?"},
		{name: "the whole file decides",
			rows: `{"id":1,"x":1,"t":"2001-01-01T00:47:00Z"}` + "\n\n" + `{"id":2,"x":2e0,"t":"soon","late":null}` + "\n" + `{"id":3,"late":7}`,
			want: "id int64, x double?, t string?, late int64?"},
		{name: "nanoseconds do not fit microseconds", rows: `{"id":"a","t":"2001-01-01T00:47:00.000000001Z"}`, want: "id string, t string?"},
		{name: "an offset is a timestamp", rows: `{"id":"a","t":"2001-01-01T00:47:00.5+02:00"}`, want: "id string, t timestamp:us:UTC?"},
		{name: "a large integer next to a fraction", rows: `{"id":"a","x":18446744073709551615}` + "\n" + `{"id":"b","x":0.5}`,
			err: `line 1: field "x" holds an integer that a double may round, and line 2 needs a double`},
		{name: "an integer that a double would round", rows: `{"id":"a","x":0.5}` + "\n" + `{"id":"b","x":9007199254740993}`,
			err: `line 2: field "x" holds an integer that a double may round, and line 1 needs a double`},
		{name: "an integer that a double holds", rows: `{"id":"a","x":0.5}` + "\n" + `{"id":"b","x":9007199254740992}`, want: "id string, x double?"},
		{name: "a large integer alone", rows: `{"id":"a","x":9007199254740993}`, want: "id string, x int64?"},
		{name: "mixed kinds", rows: `{"id":"a","x":1}` + "\n" + `{"id":"b","x":"1"}`,
			err: `line 2: field "x" is a string here and a number in line 1; declare the column in foldline.yaml`},
		{name: "mixed kinds, the majority", mode: Lenient, rows: `{"id":"a","x":"1"}` + "\n" + `{"id":"b","x":2}` + "\n" + `{"id":"c","x":3}`,
			want: "id string, x int64?"},
		{name: "no type is wide enough", rows: `{"id":"a","x":99999999999999999999}`, err: "fits neither int64 nor uint64"},
		{name: "both signs of 64 bits", rows: `{"id":"a","x":18446744073709551615}` + "\n" + `{"id":"b","x":-1}`, err: "line 2: field \"x\" is negative while line 1 needs uint64"},
		{name: "broken line", rows: `{"id":"a"}` + "\n" + `{"id":`, err: "line 2: "},
		{name: "broken line, lenient", mode: Lenient, rows: `{"id":"a"}` + "\n" + `{"id":`, want: "id string"},
		{name: "nested", rows: `{"id":"a","x":{}}`, err: `field "x": nested values`},
		{name: "not an object", rows: `[]`, err: "a row is a JSON object"},
		{name: "two values", rows: `{"id":"a"} {}`, err: "more than one JSON value"},
		{name: "duplicate member", rows: `{"id":"a","id":"b"}`, err: "duplicate"},
		{name: "no key", rows: `{"x":1}`, err: `no row has a key column`},
		{name: "empty", rows: "\n", err: ErrEmpty.Error()},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Columns(strings.NewReader(c.rows), []string{"id"}, c.mode)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			var text []string
			for _, g := range got {
				s := g.Name + " " + g.Type
				if g.Nullable {
					s += "?"
				}
				text = append(text, s)
			}
			require.Equal(t, c.want, strings.Join(text, ", "))
		})
	}
}

func FuzzColumns(f *testing.F) {
	f.Add(`{"id":"a","x":1}`, true)
	f.Add(`{"id":1e400,"x":[]}`, false)
	f.Fuzz(func(t *testing.T, rows string, lenient bool) {
		mode := Strict
		if lenient {
			mode = Lenient
		}
		columns, err := Columns(strings.NewReader(rows), []string{"id"}, mode)
		require.True(t, err != nil || len(columns) > 0)
	})
}
