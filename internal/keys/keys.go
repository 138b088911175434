package keys

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// AppendString appends the Lance key bytes of a utf8 or large_utf8 value: the bytes themselves, with
// neither length nor terminator.
func AppendString(dst []byte, v string) []byte { return append(dst, v...) }

// AppendBytes appends the Lance key bytes of a binary or large_binary value: the bytes themselves.
func AppendBytes(dst, v []byte) []byte { return append(dst, v...) }

// AppendInt appends the Lance key bytes of a signed integer: eight bytes, little-endian, two's
// complement. An int32 is widened by the caller's conversion.
func AppendInt(dst []byte, v int64) []byte {
	return binary.LittleEndian.AppendUint64(dst, uint64(v))
}

// AppendUint appends the Lance key bytes of an unsigned integer: eight bytes, little-endian. A uint32
// is widened by the caller's conversion.
func AppendUint(dst []byte, v uint64) []byte {
	return binary.LittleEndian.AppendUint64(dst, v)
}

// AppendSeparator appends the zero byte that follows each column of a key of two or more columns, also
// the last one. A key of one column has none.
func AppendSeparator(dst []byte) []byte { return append(dst, 0) }

// Hash is the engine's hash of a key: XXH64 with seed 0 over its Lance key bytes.
func Hash(key []byte) uint64 { return xxhash.Sum64(key) }

// Lane is the lane in which a key lives, given the Lance key bytes of the graph's lane columns and the
// graph's lane count. A count of 0 is taken as 1, the default of a graph.
func Lane(key []byte, lanes uint32) uint32 {
	if lanes <= 1 {
		return 0
	}
	return uint32(Hash(key) % uint64(lanes))
}
