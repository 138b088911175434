package fsst

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func roundTrip(t *testing.T, values [][]byte) (plain, coded int) {
	t.Helper()
	e := Train(len(values), func(i int) []byte { return values[i] })
	d, err := NewDecoder(e.Table())
	require.NoError(t, err)
	for _, v := range values {
		c := e.Append(nil, v)
		out := make([]byte, len(c)*Expand+8)
		n, err := d.Decode(out, c)
		require.NoError(t, err)
		require.True(t, bytes.Equal(v, out[:n]), "%q became %q", v, out[:n])
		plain, coded = plain+len(v), coded+len(c)
	}
	return plain, coded
}

func TestRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	kinds := map[string]func(i int) []byte{
		"ids":   func(i int) []byte { return fmt.Appendf(nil, "k%08d", i) },
		"hex":   func(int) []byte { return fmt.Appendf(nil, "%016x%016x", r.Uint64(), r.Uint64()) },
		"empty": func(int) []byte { return nil },
		"zeros": func(i int) []byte { return make([]byte, i%20) },
		"random": func(i int) []byte {
			b := make([]byte, i%30)
			for j := range b {
				b[j] = byte(r.Uint32())
			}
			return b
		},
	}
	most := map[string]float64{"ids": 0.5, "hex": 0.75}
	for name, f := range kinds {
		values := make([][]byte, 3000)
		for i := range values {
			values[i] = f(i)
		}
		plain, coded := roundTrip(t, values)
		if limit, ok := most[name]; ok {
			require.Less(t, float64(coded)/float64(plain), limit, name)
		}
	}
}

func TestDecoderRefusesDamage(t *testing.T) {
	e := Train(1, func(int) []byte { return []byte("abcabcabc") })
	table := e.Table()
	_, err := NewDecoder(table[:16])
	require.Error(t, err)
	d, err := NewDecoder(table)
	require.NoError(t, err)
	_, err = d.Decode(make([]byte, 100), []byte{escape})
	require.Error(t, err)
	_, err = d.Decode(make([]byte, 100), []byte{254})
	require.Error(t, err)
	table[4] = 0
	_, err = NewDecoder(table)
	require.Error(t, err)
}

func BenchmarkEncode(b *testing.B) {
	values := make([][]byte, 3000)
	for i := range values {
		values[i] = fmt.Appendf(nil, "https://example.org/%08d", i*7919)
	}
	e := Train(len(values), func(i int) []byte { return values[i] })
	b.SetBytes(int64(len(values[0])))
	var out []byte
	for i := range b.N {
		out = e.Append(out[:0], values[i%len(values)])
	}
}
