package structural

import (
	"math/bits"

	"github.com/foldline/foldline/lance/internal/encoding"
	"github.com/foldline/foldline/lance/internal/encoding/bitpack"
	"github.com/foldline/foldline/lance/internal/pb/pb21"
)

// fewLevels is the number of levels of a page below which they are not packed.
const fewLevels = 64

// levelEncoder writes the levels of chunks: bit-packed out of line, or flat when there are few.
type levelEncoder struct {
	levels []uint16
	width  int // bits of a packed level; 16 means flat
}

func newLevelEncoder(levels []uint16, highest int) *levelEncoder {
	l := &levelEncoder{levels: levels, width: bits.Len(uint(highest))}
	if len(levels) < fewLevels {
		l.width = 16
	}
	return l
}

func (l *levelEncoder) message() *pb21.CompressiveEncoding {
	if l.width == 16 {
		return flatBits(16)
	}
	return outOfLineMessage(16, l.width)
}

// append writes the levels of the entries [from, to).
func (l *levelEncoder) append(dst []byte, from, to int) []byte {
	levels := l.levels[from:to]
	if l.width == 16 {
		return append(dst, encoding.CastBytes(levels)...)
	}
	var packed [bitpack.Block]uint16
	words := bitpack.Words[uint16](l.width)
	for len(levels) >= bitpack.Block {
		bitpack.Pack(packed[:words], levels[:bitpack.Block], l.width)
		dst = append(dst, encoding.CastBytes(packed[:words])...)
		levels = levels[bitpack.Block:]
	}
	switch tail := len(levels); {
	case tail == 0:
	case tail <= words:
		// As long as the raw tail is no longer than a packed block it is told apart by its length.
		dst = append(dst, encoding.CastBytes(levels)...)
	default:
		var block [bitpack.Block]uint16
		copy(block[:], levels)
		bitpack.Pack(packed[:words], block[:], l.width)
		dst = append(dst, encoding.CastBytes(packed[:words])...)
	}
	return dst
}
