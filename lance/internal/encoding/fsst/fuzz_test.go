package fsst

import (
	"bytes"
	"testing"
)

// Any table is refused or decodes without harm.
func FuzzDecode(f *testing.F) {
	e := Train(3, func(i int) []byte { return []byte("some value, some more") })
	f.Add(e.Table(), e.Append(nil, []byte("some value")))
	f.Fuzz(func(t *testing.T, table, coded []byte) {
		d, err := NewDecoder(table)
		if err != nil {
			return
		}
		_, _ = d.Decode(make([]byte, len(coded)*Expand+Slack), coded)
	})
}

// Whatever table is trained, values come back.
func FuzzRoundTrip(f *testing.F) {
	f.Add([]byte("https://example.org/a https://example.org/b"), []byte("https://"))
	f.Fuzz(func(t *testing.T, sample, value []byte) {
		e := Train(2, func(i int) []byte { return sample[len(sample)/2*i:] })
		d, err := NewDecoder(e.Table())
		if err != nil {
			t.Fatal(err)
		}
		coded := e.Append(nil, value)
		out := make([]byte, len(coded)*Expand+Slack)
		n, err := d.Decode(out, coded)
		if err != nil || !bytes.Equal(out[:n], value) {
			t.Fatalf("%q became %q: %v", value, out[:n], err)
		}
	})
}
