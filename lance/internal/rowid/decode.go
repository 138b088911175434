package rowid

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"google.golang.org/protobuf/proto"

	"github.com/foldline/foldline/lance/internal/pb"
)

// Decode returns the ids of a row id sequence, at most rows of them: a transaction may carry fewer than the fragment has rows.
func Decode(data []byte, rows uint64) ([]uint64, error) {
	m := &pb.RowIdSequence{}
	if err := proto.Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("rowid: sequence: %w", err)
	}
	var out []uint64
	for i, s := range m.GetSegments() {
		var err error
		if out, err = appendSegment(out, s, rows); err != nil {
			return nil, fmt.Errorf("rowid: segment %d: %w", i, err)
		}
	}
	return out, nil
}

// DecodeVersions returns the version of each of exactly rows rows. Only the number of values of a run's span counts.
func DecodeVersions(data []byte, rows uint64) ([]uint64, error) {
	m := &pb.RowDatasetVersionSequence{}
	if err := proto.Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("rowid: versions: %w", err)
	}
	var out []uint64
	for i, r := range m.GetRuns() {
		n, err := segmentLength(r.GetSpan())
		if err != nil {
			return nil, fmt.Errorf("rowid: run %d: %w", i, err)
		}
		if n > rows-uint64(len(out)) {
			return nil, fmt.Errorf("rowid: run %d: %d values, %d of %d rows are left", i, n, rows-uint64(len(out)), rows)
		}
		for range n {
			out = append(out, r.GetVersion())
		}
	}
	if uint64(len(out)) != rows {
		return nil, fmt.Errorf("rowid: versions of %d rows, want %d", len(out), rows)
	}
	return out, nil
}

// appendSegment appends the segment's values, never more than limit in all.
func appendSegment(dst []uint64, s *pb.U64Segment, limit uint64) ([]uint64, error) {
	n, err := segmentLength(s)
	if err != nil {
		return nil, err
	}
	if n > limit-uint64(len(dst)) {
		return nil, fmt.Errorf("%d values, room for %d of %d", n, limit-uint64(len(dst)), limit)
	}
	switch seg := s.GetSegment().(type) {
	case *pb.U64Segment_Range_:
		for v := seg.Range.GetStart(); v < seg.Range.GetEnd(); v++ {
			dst = append(dst, v)
		}
		return dst, nil
	case *pb.U64Segment_RangeWithHoles_:
		return appendWithHoles(dst, seg.RangeWithHoles)
	case *pb.U64Segment_RangeWithBitmap_:
		start := seg.RangeWithBitmap.GetStart()
		for i := range seg.RangeWithBitmap.GetEnd() - start {
			if seg.RangeWithBitmap.GetBitmap()[i/8]&(1<<(i%8)) != 0 {
				dst = append(dst, start+i)
			}
		}
		return dst, nil
	case *pb.U64Segment_SortedArray:
		return appendArray(dst, seg.SortedArray)
	case *pb.U64Segment_Array:
		return appendArray(dst, seg.Array)
	}
	return nil, fmt.Errorf("unknown form")
}

// segmentLength counts the segment's values from lengths that are backed by bytes, or from a range.
func segmentLength(s *pb.U64Segment) (uint64, error) {
	switch seg := s.GetSegment().(type) {
	case *pb.U64Segment_Range_:
		return span(seg.Range.GetStart(), seg.Range.GetEnd())
	case *pb.U64Segment_RangeWithHoles_:
		n, err := span(seg.RangeWithHoles.GetStart(), seg.RangeWithHoles.GetEnd())
		if err != nil {
			return 0, err
		}
		holes, err := arrayLength(seg.RangeWithHoles.GetHoles())
		if err != nil {
			return 0, err
		}
		if holes > n {
			return 0, fmt.Errorf("%d holes in a range of %d", holes, n)
		}
		return n - holes, nil
	case *pb.U64Segment_RangeWithBitmap_:
		return bitmapLength(seg.RangeWithBitmap)
	case *pb.U64Segment_SortedArray:
		return arrayLength(seg.SortedArray)
	case *pb.U64Segment_Array:
		return arrayLength(seg.Array)
	}
	return 0, fmt.Errorf("unknown form")
}

// bitmapLength counts the set bits; spare bits of the last byte do not count.
func bitmapLength(m *pb.U64Segment_RangeWithBitmap) (uint64, error) {
	n, err := span(m.GetStart(), m.GetEnd())
	if err != nil {
		return 0, err
	}
	if n/8+min(n%8, 1) != uint64(len(m.GetBitmap())) {
		return 0, fmt.Errorf("bitmap of %d bytes for a range of %d", len(m.GetBitmap()), n)
	}
	var set uint64
	for i, b := range m.GetBitmap() {
		if last := i == len(m.GetBitmap())-1; last && n%8 != 0 {
			b &= 0xff >> (8 - n%8)
		}
		set += uint64(bits.OnesCount8(b))
	}
	return set, nil
}

func span(start, end uint64) (uint64, error) {
	if end < start {
		return 0, fmt.Errorf("range from %d to %d", start, end)
	}
	return end - start, nil
}

// appendWithHoles expects the holes sorted and inside the range; segmentLength has counted them.
func appendWithHoles(dst []uint64, m *pb.U64Segment_RangeWithHoles) ([]uint64, error) {
	holes, err := appendArray(nil, m.GetHoles())
	if err != nil {
		return nil, err
	}
	v := m.GetStart()
	for i, hole := range holes {
		if hole < v || hole >= m.GetEnd() {
			return nil, fmt.Errorf("hole %d is %d, outside of %d to %d or out of order", i, hole, v, m.GetEnd())
		}
		for ; v < hole; v++ {
			dst = append(dst, v)
		}
		v = hole + 1
	}
	for ; v < m.GetEnd(); v++ {
		dst = append(dst, v)
	}
	return dst, nil
}

// arrayForm returns base, bytes and width of an encoded array.
func arrayForm(m *pb.EncodedU64Array) (base uint64, data []byte, width int) {
	switch a := m.GetArray().(type) {
	case *pb.EncodedU64Array_U16Array_:
		return a.U16Array.GetBase(), a.U16Array.GetOffsets(), 2
	case *pb.EncodedU64Array_U32Array_:
		return a.U32Array.GetBase(), a.U32Array.GetOffsets(), 4
	case *pb.EncodedU64Array_U64Array_:
		return 0, a.U64Array.GetValues(), 8
	}
	return 0, nil, 1
}

func arrayLength(m *pb.EncodedU64Array) (uint64, error) {
	_, data, width := arrayForm(m)
	if len(data)%width != 0 {
		return 0, fmt.Errorf("array of %d bytes with values of %d", len(data), width)
	}
	return uint64(len(data) / width), nil
}

func appendArray(dst []uint64, m *pb.EncodedU64Array) ([]uint64, error) {
	if _, err := arrayLength(m); err != nil {
		return nil, err
	}
	base, data, width := arrayForm(m)
	for i := 0; i < len(data); i += width {
		switch width {
		case 2:
			dst = append(dst, base+uint64(binary.LittleEndian.Uint16(data[i:])))
		case 4:
			dst = append(dst, base+uint64(binary.LittleEndian.Uint32(data[i:])))
		case 8:
			dst = append(dst, binary.LittleEndian.Uint64(data[i:]))
		}
	}
	return dst, nil
}
