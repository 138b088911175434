package structural

import (
	"math"

	"github.com/foldline/foldline/lance/internal/encoding"
	"github.com/foldline/foldline/lance/internal/encoding/fsst"
	"github.com/foldline/foldline/lance/internal/pb/pb21"
)

// variable values are byte strings: in a chunk, n+1 offsets counted from the buffer's start, then the bytes.
type variable struct {
	width int // bits of an offset
	// symbols decodes FSST-compressed values; nil for plain ones.
	symbols *fsst.Decoder
}

func newVariable(m *pb21.Variable, t encoding.Type) (*variable, error) {
	offsets, ok := m.GetOffsets().GetCompression().(*pb21.CompressiveEncoding_Flat)
	if !ok || offsets.Flat.GetData() != nil || m.GetValues() != nil {
		return nil, encoding.Unsupportedf("string offsets of encoding %s", encodingName(m.GetOffsets()))
	}
	width := offsets.Flat.GetBitsPerValue()
	if t.Kind != encoding.Bytes || width != 32 && width != 64 {
		return nil, encoding.Corruptf("strings with offsets of %d bits in a column of %s", width, t)
	}
	return &variable{width: int(width)}, nil
}

func newFSST(m *pb21.Fsst, t encoding.Type) (*variable, error) {
	inner, ok := m.GetValues().GetCompression().(*pb21.CompressiveEncoding_Variable)
	if !ok {
		return nil, encoding.Unsupportedf("FSST over encoding %s", encodingName(m.GetValues()))
	}
	v, err := newVariable(inner.Variable, t)
	if err != nil {
		return nil, err
	}
	v.symbols, err = fsst.NewDecoder(m.GetSymbolTable())
	return v, err
}

func (v *variable) buffers() int { return 1 }

func (v *variable) decode(bufs [][]byte, n int, out *encoding.Values) error {
	if v.width == 32 {
		return decodeChunkStrings[uint32](v, bufs[0], n, out)
	}
	return decodeChunkStrings[uint64](v, bufs[0], n, out)
}

func decodeChunkStrings[S uint32 | uint64](v *variable, data []byte, n int, out *encoding.Values) error {
	offsets := encoding.Cast[S](data)
	if n+1 > len(offsets) || uint64(offsets[0]) < uint64((n+1)*v.width/8) {
		return encoding.Corruptf("%d strings in %d bytes", n, len(data))
	}
	if v.symbols == nil {
		return appendChecked(out, offsets[:n+1], data)
	}
	if out.Type.OffsetBits == 32 {
		return decodeFSST[int32](v.symbols, offsets[:n+1], data, out)
	}
	return decodeFSST[int64](v.symbols, offsets[:n+1], data, out)
}

// decodeFSST appends the values that the offsets delimit, each decoded on its own.
func decodeFSST[T encoding.Offset, S uint32 | uint64](d *fsst.Decoder, offsets []S, data []byte, out *encoding.Values) error {
	n := len(offsets) - 1
	if uint64(offsets[n]) > uint64(len(data)) || offsets[n] < offsets[0] {
		return encoding.Corruptf("string offsets that fall or lie beyond %d bytes", len(data))
	}
	data = data[:offsets[n]]
	base := out.Data.Len()
	if base+(len(data)-int(offsets[0]))*fsst.Expand > math.MaxInt32 && out.Type.OffsetBits == 32 {
		return encoding.Unsupportedf("more than 2 GiB of string bytes in one batch")
	}
	ends := encoding.ExtendSlices[T](out, n)
	for done := 0; done < n; {
		// Text rarely grows to more than twice its size; where it does, the rest gets more room.
		first := int(offsets[done+1]-offsets[done])*fsst.Expand + fsst.Slack
		room := out.Data.Extend(max(first, 2*(len(data)-int(offsets[done]))))
		values, bytes, err := fsst.DecodeValues(d, room, data, offsets[done:], ends[done:], base)
		if err != nil {
			return err
		}
		done, base = done+values, base+bytes
		out.Data.Truncate(base)
	}
	return nil
}
