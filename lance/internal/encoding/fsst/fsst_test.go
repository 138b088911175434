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
	var all []byte
	offsets := []uint32{0}
	for _, v := range values {
		c := e.Append(nil, v)
		out := make([]byte, len(c)*Expand+Slack)
		n, err := d.Decode(out, c)
		require.NoError(t, err)
		require.True(t, bytes.Equal(v, out[:n]), "%q became %q", v, out[:n])
		plain, coded = plain+len(v), coded+len(c)
		all = append(all, c...)
		offsets = append(offsets, uint32(len(all)))
	}
	require.True(t, bytes.Equal(bytes.Join(values, nil), decodeInParts(t, d, all, offsets)))
	return plain, coded
}

// decodeInParts decodes values with room for few of them at a time.
func decodeInParts(t *testing.T, d *Decoder, coded []byte, offsets []uint32) (out []byte) {
	t.Helper()
	ends := make([]int32, len(offsets)-1)
	for done := 0; done < len(ends); {
		room := make([]byte, int(offsets[done+1]-offsets[done])*Expand+Slack+done%50)
		values, n, err := DecodeValues(d, room, coded, offsets[done:], ends[done:], len(out))
		require.NoError(t, err)
		require.Positive(t, values)
		done, out = done+values, append(out, room[:n]...)
		require.EqualValues(t, len(out), ends[done-1])
	}
	return out
}

func TestRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	kinds := map[string]func(i int) []byte{
		"ids":   func(i int) []byte { return fmt.Appendf(nil, "k%08d", i) },
		"hex":   func(int) []byte { return fmt.Appendf(nil, "%016x%016x", r.Uint64(), r.Uint64()) },
		"same":  func(int) []byte { return bytes.Repeat([]byte("Foldline"), 9) }, // grows to more than twice its size
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
	for _, offsets := range [][]uint32{{0, 2}, {1, 0}, {2, 2}} {
		_, _, err = DecodeValues(d, make([]byte, 100), []byte{0}, offsets, make([]int32, 1), 0)
		require.Error(t, err, offsets)
	}
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
