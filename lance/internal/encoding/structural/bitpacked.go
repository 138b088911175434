package structural

import (
	"github.com/foldline/foldline/lance/internal/encoding"
	"github.com/foldline/foldline/lance/internal/encoding/bitpack"
	"github.com/foldline/foldline/lance/internal/pb/pb21"
)

// packable reports whether values of type t can be bit-packed.
func packable(t encoding.Type) bool {
	return t.Kind == encoding.Fixed && t.Dim == 1 && !t.Vector && (t.Bits == 8 || t.Bits == 16 || t.Bits == 32 || t.Bits == 64)
}

// inline packing stands for up to 1,024 values: one word with the width, then one packed block.
type inline struct{ bits int }

func newInline(m *pb21.InlineBitpacking, t encoding.Type) (inline, error) {
	if m.GetValues() != nil {
		return inline{}, encoding.Unsupportedf("bit-packed values with buffer compression")
	}
	if !packable(t) || m.GetUncompressedBitsPerValue() != uint64(t.Bits) {
		return inline{}, encoding.Corruptf("bit-packed values of %d bits in a column of %s", m.GetUncompressedBitsPerValue(), t)
	}
	return inline{bits: t.Bits}, nil
}

func (p inline) buffers() int { return 1 }

func (p inline) decode(bufs [][]byte, n int, out *encoding.Values) error {
	return p.decodeBlock(bufs[0], n, out)
}

func (p inline) decodeBlock(data []byte, n int, out *encoding.Values) error {
	switch p.bits {
	case 8:
		return decodeInline[uint8](data, n, out)
	case 16:
		return decodeInline[uint16](data, n, out)
	case 32:
		return decodeInline[uint32](data, n, out)
	}
	return decodeInline[uint64](data, n, out)
}

func decodeInline[T bitpack.Word](data []byte, n int, out *encoding.Values) error {
	words := encoding.Cast[T](data)
	if n > bitpack.Block || n > 0 && len(words) == 0 {
		return encoding.Corruptf("%d bit-packed values in %d bytes", n, len(data))
	}
	if n == 0 {
		return nil
	}
	width := uint64(words[0])
	if width > uint64(out.Type.Bits) || len(words)-1 < bitpack.Words[T](int(width)) {
		return encoding.Corruptf("values packed to %d bits in %d bytes", width, len(data))
	}
	unpackInto(out, words[1:], int(width), n)
	return nil
}

// unpackInto appends the first n values of a packed block.
func unpackInto[T bitpack.Word](out *encoding.Values, words []T, width, n int) {
	if n == bitpack.Block {
		bitpack.Unpack(encoding.Cast[T](out.ExtendFixed(n)), words, width)
		return
	}
	var block [bitpack.Block]T
	bitpack.Unpack(block[:], words, width)
	copy(encoding.Cast[T](out.ExtendFixed(n)), block[:])
}

// outOfLine packing keeps the width in the page's description: full packed blocks, then the rest either as it
// is or as one more block, told apart by the length.
type outOfLine struct{ bits, width int }

func newOutOfLine(m *pb21.OutOfLineBitpacking, t encoding.Type) (outOfLine, error) {
	inner, ok := m.GetValues().GetCompression().(*pb21.CompressiveEncoding_Flat)
	if !ok || inner.Flat.GetData() != nil {
		return outOfLine{}, encoding.Unsupportedf("out-of-line bit-packing of encoding %s", encodingName(m.GetValues()))
	}
	width := inner.Flat.GetBitsPerValue()
	if !packable(t) || m.GetUncompressedBitsPerValue() != uint64(t.Bits) || width > uint64(t.Bits) {
		return outOfLine{}, encoding.Corruptf("values of %d bits packed to %d in a column of %s", m.GetUncompressedBitsPerValue(), width, t)
	}
	return outOfLine{bits: t.Bits, width: int(width)}, nil
}

func (p outOfLine) decodeBlock(data []byte, n int, out *encoding.Values) error {
	switch p.bits {
	case 8:
		return decodeOutOfLine[uint8](p, data, n, out)
	case 16:
		return decodeOutOfLine[uint16](p, data, n, out)
	case 32:
		return decodeOutOfLine[uint32](p, data, n, out)
	}
	return decodeOutOfLine[uint64](p, data, n, out)
}

func decodeOutOfLine[T bitpack.Word](p outOfLine, data []byte, n int, out *encoding.Values) error {
	words := encoding.Cast[T](data)
	step := bitpack.Words[T](p.width)
	tail := n % bitpack.Block
	rest := len(words) - n/bitpack.Block*step
	if rest < 0 || tail > 0 && rest != tail && rest < step {
		return encoding.Corruptf("%d values packed to %d bits in %d bytes", n, p.width, len(data))
	}
	for ; n >= bitpack.Block; n -= bitpack.Block {
		unpackInto(out, words, p.width, bitpack.Block)
		words = words[step:]
	}
	switch {
	case tail == 0:
	case rest == tail:
		copy(encoding.Cast[T](out.ExtendFixed(tail)), words)
	default:
		unpackInto(out, words, p.width, tail)
	}
	return nil
}
