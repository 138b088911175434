package structural

import (
	"encoding/binary"

	"github.com/apache/arrow/go/v17/arrow/bitutil"

	"github.com/foldline/foldline/lance/internal/encoding"
	"github.com/foldline/foldline/lance/internal/encoding/bitpack"
	"github.com/foldline/foldline/lance/internal/pb/pb21"
)

// flatEncoder writes fixed-width values as they are, vectors with their item validity in front.
type flatEncoder struct {
	values *encoding.Values
	items  []byte // item validity; nil when all items are valid
	step   int    // slots of a chunk
}

func newFlatEncoder(v *encoding.Values) *flatEncoder {
	e := &flatEncoder{values: v, items: itemNulls(v)}
	perSlot := v.Type.ValueBits()
	if e.items != nil {
		perSlot += v.Type.Dim
	}
	e.step = powerOfTwo(min(chunkTarget*8/max(perSlot, 1), maxChunkSlots))
	return e
}

func (e *flatEncoder) message() *pb21.CompressiveEncoding {
	return flatMessage(e.values.Type, e.items != nil)
}

func (e *flatEncoder) buffers() int {
	if e.items != nil {
		return 2
	}
	return 1
}

func (e *flatEncoder) slots(_, left int) int { return min(e.step, left) }

func (e *flatEncoder) appendPart(dst []byte, part, from, n int) []byte {
	if e.items != nil && part == 0 {
		dim := e.values.Type.Dim
		return appendBits(dst, e.items, from*dim, n*dim)
	}
	w := e.values.Type.ValueBits()
	return appendBits(dst, e.values.Data.Bytes(), from*w, n*w)
}

// appendBits copies n bits from bit `from` of src to a new byte of dst.
func appendBits(dst, src []byte, from, n int) []byte {
	if from%8 == 0 && n%8 == 0 {
		return append(dst, src[from/8:(from+n)/8]...)
	}
	at := len(dst)
	dst = append(dst, make([]byte, (n+7)/8)...)
	bitutil.CopyBitmap(src, from, n, dst[at:], 0)
	return dst
}

// inlineEncoder bit-packs integers, each chunk to its own width.
type inlineEncoder struct{ values *encoding.Values }

// inlineBytes is the size of the packed values.
func inlineBytes(v *encoding.Values) int {
	switch v.Type.Bits {
	case 8:
		return inlineSize[uint8](v)
	case 16:
		return inlineSize[uint16](v)
	case 32:
		return inlineSize[uint32](v)
	}
	return inlineSize[uint64](v)
}

func inlineSize[T bitpack.Word](v *encoding.Values) int {
	size := 0
	values := encoding.Cast[T](v.Data.Bytes())
	for len(values) > 0 {
		n := min(len(values), bitpack.Block)
		size += v.Type.Bits/8 + bitpack.Block/8*bitpack.Width(values[:n])
		values = values[n:]
	}
	return size
}

func (e *inlineEncoder) message() *pb21.CompressiveEncoding { return inlineMessage(e.values.Type.Bits) }

func (e *inlineEncoder) buffers() int { return 1 }

func (e *inlineEncoder) slots(_, left int) int { return min(bitpack.Block, left) }

func (e *inlineEncoder) appendPart(dst []byte, _, from, n int) []byte {
	switch e.values.Type.Bits {
	case 8:
		return appendInline[uint8](dst, e.values, from, n)
	case 16:
		return appendInline[uint16](dst, e.values, from, n)
	case 32:
		return appendInline[uint32](dst, e.values, from, n)
	}
	return appendInline[uint64](dst, e.values, from, n)
}

func appendInline[T bitpack.Word](dst []byte, v *encoding.Values, from, n int) []byte {
	values := encoding.Cast[T](v.Data.Bytes())[from : from+n]
	var block [bitpack.Block]T
	if n < bitpack.Block {
		copy(block[:], values)
		values = block[:]
	}
	width := bitpack.Width(values)
	var packed [bitpack.Block]T
	words := packed[:bitpack.Words[T](width)]
	bitpack.Pack(words, values, width)
	head := [1]T{T(width)}
	dst = append(dst, encoding.CastBytes(head[:])...)
	return append(dst, encoding.CastBytes(words)...)
}

// variableEncoder writes byte strings with their offsets from the start of the buffer.
type variableEncoder struct{ values *encoding.Values }

func newVariableEncoder(v *encoding.Values) *variableEncoder { return &variableEncoder{values: v} }

func (e *variableEncoder) message() *pb21.CompressiveEncoding {
	return variableMessage(e.values.Type.OffsetBits)
}

func (e *variableEncoder) buffers() int { return 1 }

func (e *variableEncoder) slots(from, left int) int {
	if e.values.Type.OffsetBits == 32 {
		return stringSlots(encoding.Cast[int32](e.values.Offsets.Bytes())[from:], left, 4)
	}
	return stringSlots(encoding.Cast[int64](e.values.Offsets.Bytes())[from:], left, 8)
}

// stringSlots doubles from 2 while offsets and bytes stay within the target.
func stringSlots[T encoding.Offset](offsets []T, left, width int) int {
	fits := func(n int) bool {
		return n <= maxChunkSlots && (n+1)*width+int(offsets[n]-offsets[0]) <= chunkTarget
	}
	n := 2
	for n < left {
		if 2*n >= left && fits(left) {
			return left
		}
		if 2*n >= left || !fits(2*n) {
			break
		}
		n *= 2
	}
	return min(n, left)
}

func (e *variableEncoder) appendPart(dst []byte, _, from, n int) []byte {
	data := e.values.Data.Bytes()
	start := len(dst)
	if e.values.Type.OffsetBits == 32 {
		offsets := encoding.Cast[int32](e.values.Offsets.Bytes())[from : from+n+1]
		head := int32(n+1) * 4
		for _, o := range offsets {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(head+o-offsets[0]))
		}
		dst = append(dst, data[offsets[0]:offsets[n]]...)
	} else {
		offsets := encoding.Cast[int64](e.values.Offsets.Bytes())[from : from+n+1]
		head := int64(n+1) * 8
		for _, o := range offsets {
			dst = binary.LittleEndian.AppendUint64(dst, uint64(head+o-offsets[0]))
		}
		dst = append(dst, data[offsets[0]:offsets[n]]...)
	}
	// The buffer's length must be a multiple of the offset width; the padding counts.
	for (len(dst)-start)%(e.values.Type.OffsetBits/8) != 0 {
		dst = append(dst, 0)
	}
	return dst
}
