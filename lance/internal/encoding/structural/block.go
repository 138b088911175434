package structural

import (
	"encoding/binary"

	"github.com/foldline/foldline/lance/internal/encoding"
	"github.com/foldline/foldline/lance/internal/encoding/compress"
	"github.com/foldline/foldline/lance/internal/pb/pb21"
)

// blockDecoder decodes a buffer that stands alone: a dictionary or the levels of a chunk.
type blockDecoder interface {
	// decodeBlock appends the n values of data to out.
	decodeBlock(data []byte, n int, out *encoding.Values) error
}

// newBlockDecoder makes the decoder of an encoding in block context for values of type t.
func newBlockDecoder(enc *pb21.CompressiveEncoding, t encoding.Type) (blockDecoder, error) {
	switch c := enc.GetCompression().(type) {
	case *pb21.CompressiveEncoding_Flat:
		return newFlat(c.Flat, t)
	case *pb21.CompressiveEncoding_InlineBitpacking:
		return newInline(c.InlineBitpacking, t)
	case *pb21.CompressiveEncoding_OutOfLineBitpacking:
		return newOutOfLine(c.OutOfLineBitpacking, t)
	case *pb21.CompressiveEncoding_Variable:
		if t.Kind != encoding.Bytes {
			return nil, encoding.Corruptf("variable values in a column of %s", t)
		}
		return variableBlock{}, nil
	case *pb21.CompressiveEncoding_Rle:
		return newRLE(c.Rle, t)
	case *pb21.CompressiveEncoding_General:
		inner, err := newBlockDecoder(c.General.GetValues(), t)
		return &generalBlock{scheme: c.General.GetCompression().GetScheme(), inner: inner}, err
	}
	return nil, encoding.Unsupportedf("block encoding %s", encodingName(enc))
}

// encodingName names an encoding in messages.
func encodingName(enc *pb21.CompressiveEncoding) string {
	m := enc.ProtoReflect()
	d := m.WhichOneof(m.Descriptor().Oneofs().ByName("compression"))
	if d == nil {
		return "that is not known"
	}
	return string(d.Name())
}

// generalBlock is a compressed block.
type generalBlock struct {
	scheme pb21.CompressionScheme
	inner  blockDecoder
}

func (g *generalBlock) decodeBlock(data []byte, n int, out *encoding.Values) error {
	plain, err := compress.Decompress(nil, g.scheme, data)
	if err != nil {
		return err
	}
	return g.inner.decodeBlock(plain, n, out)
}

// variableBlock is a block of byte strings: u32 offset width, start of the data, n+1 offsets, data; with
// 64-bit offsets the head is of two u64.
type variableBlock struct{}

func (variableBlock) decodeBlock(data []byte, n int, out *encoding.Values) error {
	if len(data) < 8 {
		return encoding.Corruptf("block of strings of %d bytes", len(data))
	}
	switch width := binary.LittleEndian.Uint32(data); width {
	case 32:
		start := uint64(binary.LittleEndian.Uint32(data[4:]))
		return decodeStrings[uint32](data, 8, start, n, out)
	case 64:
		if len(data) < 16 {
			return encoding.Corruptf("block of strings of %d bytes", len(data))
		}
		return decodeStrings[uint64](data, 16, binary.LittleEndian.Uint64(data[8:]), n, out)
	default:
		return encoding.Unsupportedf("block of strings with header %#x", width)
	}
}

// decodeStrings reads n+1 offsets at head; they count from the start of the bytes.
func decodeStrings[S uint32 | uint64](data []byte, head int, start uint64, n int, out *encoding.Values) error {
	width := 4
	if _, ok := any(S(0)).(uint64); ok {
		width = 8
	}
	if n < 0 || n > (len(data)-head)/width-1 || start > uint64(len(data)) || start < uint64(head+(n+1)*width) {
		return encoding.Corruptf("block of %d strings in %d bytes", n, len(data))
	}
	offsets := encoding.Cast[S](data[head : head+(n+1)*width])
	return appendChecked(out, offsets, data[start:])
}

// appendChecked adds byte strings after a look at their offsets.
func appendChecked[S uint32 | uint64](out *encoding.Values, offsets []S, bytes []byte) error {
	last := offsets[0]
	falling := false
	for _, o := range offsets[1:] {
		falling = falling || o < last
		last = o
	}
	if falling || uint64(last) > uint64(len(bytes)) {
		return encoding.Corruptf("string offsets that fall or lie beyond %d bytes", len(bytes))
	}
	if out.Type.OffsetBits == 32 {
		return encoding.AppendSlices[int32](out, offsets, bytes)
	}
	return encoding.AppendSlices[int64](out, offsets, bytes)
}
