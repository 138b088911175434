package structural

import (
	"github.com/foldline/foldline/lance/internal/encoding"
	"github.com/foldline/foldline/lance/internal/pb/pb21"
)

// maxRun is the longest run that a length byte expresses.
const maxRun = 255

// rleEncoder writes runs of equal values: the values in one buffer, their lengths in the other.
type rleEncoder struct{ values *encoding.Values }

func (e *rleEncoder) message() *pb21.CompressiveEncoding {
	return &pb21.CompressiveEncoding{Compression: &pb21.CompressiveEncoding_Rle{
		Rle: &pb21.Rle{Values: flatBits(e.values.Type.Bits), RunLengths: flatBits(8)},
	}}
}

func (e *rleEncoder) buffers() int { return 2 }

// slots halves from the most slots until the runs fit the target.
func (e *rleEncoder) slots(from, left int) int {
	n := min(maxRLESlots, left)
	for n > minRLESlots && rleSize(e.values, from, n) > chunkTarget {
		n = powerOfTwo(n - 1)
	}
	return n
}

const (
	// maxRLESlots is what the engine puts into a chunk of runs at most; minRLESlots fit a chunk whatever they are.
	maxRLESlots = 2048
	minRLESlots = 512
)

// rleSize is the size of the runs of n values.
func rleSize(v *encoding.Values, from, n int) int {
	runs := 0
	switch v.Type.Bits {
	case 8:
		runs = countRuns(encoding.Cast[uint8](v.Data.Bytes())[from : from+n])
	case 16:
		runs = countRuns(encoding.Cast[uint16](v.Data.Bytes())[from : from+n])
	case 32:
		runs = countRuns(encoding.Cast[uint32](v.Data.Bytes())[from : from+n])
	case 64:
		runs = countRuns(encoding.Cast[uint64](v.Data.Bytes())[from : from+n])
	}
	return runs * (v.Type.Bits/8 + 1)
}

// countRuns counts runs, the long ones as often as they must be split.
func countRuns[T comparable](values []T) int {
	runs, length := 0, 0
	for i, v := range values {
		if i > 0 && v == values[i-1] && length < maxRun {
			length++
			continue
		}
		runs, length = runs+1, 1
	}
	return runs
}

func (e *rleEncoder) appendPart(dst []byte, part, from, n int) []byte {
	switch e.values.Type.Bits {
	case 8:
		return appendRuns[uint8](dst, e.values, part, from, n)
	case 16:
		return appendRuns[uint16](dst, e.values, part, from, n)
	case 32:
		return appendRuns[uint32](dst, e.values, part, from, n)
	}
	return appendRuns[uint64](dst, e.values, part, from, n)
}

// appendRuns writes the run values (part 0) or the lengths (part 1).
func appendRuns[T comparable](dst []byte, v *encoding.Values, part, from, n int) []byte {
	values := encoding.Cast[T](v.Data.Bytes())[from : from+n]
	for i := 0; i < n; {
		j := i + 1
		for j < n && j-i < maxRun && values[j] == values[i] {
			j++
		}
		if part == 0 {
			dst = append(dst, encoding.CastBytes(values[i:i+1])...)
		} else {
			dst = append(dst, byte(j-i))
		}
		i = j
	}
	return dst
}
