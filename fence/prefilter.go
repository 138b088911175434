package fence

import (
	"encoding/binary"
	"math/bits"

	"github.com/foldline/foldline/internal/keys"
	"github.com/foldline/foldline/lance"
)

// prefilter is a bit for each key's hash: most rows of a scan are dismissed by one look into a few KiB, not into a map of strings.
type prefilter struct {
	bits  []uint64
	shift int // what a hash is shifted by to be the number of a bit
}

// bitsPerKey makes at most one row in 16 a false suspect.
const bitsPerKey = 16

func newPrefilter(set KeySet) prefilter {
	width := max(bits.Len(uint(len(set)*bitsPerKey-1)), 6)
	f := prefilter{bits: make([]uint64, 1<<(width-6)), shift: 64 - width}
	for k := range set {
		h := quickHash([]byte(k)) >> f.shift
		f.bits[h/64] |= 1 << (h % 64)
	}
	return f
}

func (f prefilter) mayHave(key []byte) bool {
	h := quickHash(key) >> f.shift
	return f.bits[h/64]&(1<<(h%64)) != 0
}

// rows appends the numbers of the rows of the record that reader is bound to whose whole key may be in the set.
func (f prefilter) rows(dst []int, reader *lance.KeyReader, rows int) []int {
	if offsets, values, ok := reader.Values(); ok {
		for row := range rows {
			if f.mayHave(values[offsets[row]:offsets[row+1]]) {
				dst = append(dst, row)
			}
		}
		return dst
	}
	for row := range rows {
		if !reader.Null(row) && f.mayHave(reader.ExactBytes(row)) {
			dst = append(dst, row)
		}
	}
	return dst
}

// quickHash mixes the two ends of a short key, whose upper bits are then good enough for a filter; a longer one is hashed whole.
func quickHash(key []byte) uint64 {
	const odd, other = 0x9e3779b97f4a7c15, 0xc2b2ae3d27d4eb4f
	n := len(key)
	switch {
	case n > 16:
		return keys.Hash(key)
	case n >= 8:
		h := binary.LittleEndian.Uint64(key)*odd ^ bits.RotateLeft64(binary.LittleEndian.Uint64(key[n-8:])*other, 32)
		return (h ^ uint64(n)) * odd
	}
	h := uint64(n)
	for _, b := range key {
		h = h<<8 | uint64(b)
	}
	return h * odd
}
