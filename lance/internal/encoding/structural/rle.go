package structural

import (
	"encoding/binary"

	"github.com/foldline/foldline/lance/internal/encoding"
	"github.com/foldline/foldline/lance/internal/pb/pb21"
)

// rle values are runs: the run values flat, and the lengths of 1 to 255 as bytes.
type rle struct{ width int }

func newRLE(m *pb21.Rle, t encoding.Type) (rle, error) {
	values, ok := m.GetValues().GetCompression().(*pb21.CompressiveEncoding_Flat)
	lengths, ok2 := m.GetRunLengths().GetCompression().(*pb21.CompressiveEncoding_Flat)
	if !ok || !ok2 || values.Flat.GetData() != nil || lengths.Flat.GetData() != nil || lengths.Flat.GetBitsPerValue() != 8 {
		return rle{}, encoding.Unsupportedf("run lengths of encoding %s", encodingName(m.GetRunLengths()))
	}
	if t.Kind != encoding.Fixed || t.Vector || t.Bits%8 != 0 || values.Flat.GetBitsPerValue() != uint64(t.Bits) {
		return rle{}, encoding.Corruptf("runs of %d bits in a column of %s", values.Flat.GetBitsPerValue(), t)
	}
	return rle{width: t.Bits / 8}, nil
}

func (r rle) buffers() int { return 2 }

func (r rle) decode(bufs [][]byte, n int, out *encoding.Values) error {
	return r.expand(bufs[0], bufs[1], n, out)
}

// decodeBlock finds the values' length in front of them.
func (r rle) decodeBlock(data []byte, n int, out *encoding.Values) error {
	if len(data) < 8 {
		return encoding.Corruptf("runs in %d bytes", len(data))
	}
	size := binary.LittleEndian.Uint64(data)
	if size > uint64(len(data)-8) {
		return encoding.Corruptf("runs of %d bytes in %d", size, len(data))
	}
	return r.expand(data[8:8+size], data[8+size:], n, out)
}

func (r rle) expand(values, lengths []byte, n int, out *encoding.Values) error {
	if len(values)/r.width < len(lengths) {
		return encoding.Corruptf("%d run lengths for %d bytes of values", len(lengths), len(values))
	}
	total := 0
	for _, l := range lengths {
		total += int(l)
	}
	if total != n {
		return encoding.Corruptf("runs of %d values instead of %d", total, n)
	}
	dst := out.ExtendFixed(n)
	switch r.width {
	case 1:
		expandRuns(dst, encoding.Cast[uint8](values), lengths)
	case 2:
		expandRuns(encoding.Cast[uint16](dst), encoding.Cast[uint16](values), lengths)
	case 4:
		expandRuns(encoding.Cast[uint32](dst), encoding.Cast[uint32](values), lengths)
	case 8:
		expandRuns(encoding.Cast[uint64](dst), encoding.Cast[uint64](values), lengths)
	default:
		for i, l := range lengths {
			for range l {
				dst = dst[copy(dst, values[i*r.width:(i+1)*r.width]):]
			}
		}
	}
	return nil
}

func expandRuns[T any](dst, values []T, lengths []byte) {
	for i, l := range lengths {
		v := values[i]
		run := dst[:l]
		for j := range run {
			run[j] = v
		}
		dst = dst[l:]
	}
}
