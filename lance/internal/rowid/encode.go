package rowid

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/foldline/foldline/lance/internal/pb"
)

// segmentOverhead is the engine's estimate of what a ranged segment costs beside its holes or bits.
const segmentOverhead = 24

// Encode returns a sequence of the ids in the smallest form the engine would pick.
func Encode(ids []uint64) ([]byte, error) {
	m := &pb.RowIdSequence{}
	if len(ids) > 0 {
		m.Segments = []*pb.U64Segment{segmentOf(ids)}
	}
	return marshal(m)
}

// EncodeVersions returns a version sequence: one run per stretch of equal versions.
func EncodeVersions(versions []uint64) ([]byte, error) {
	m := &pb.RowDatasetVersionSequence{}
	for from := 0; from < len(versions); {
		to := from
		for to < len(versions) && versions[to] == versions[from] {
			to++
		}
		m.Runs = append(m.Runs, &pb.RowDatasetVersionSequence_Run{
			Span: rangeSegment(uint64(from), uint64(to)), Version: versions[from],
		})
		from = to
	}
	return marshal(m)
}

func marshal(m proto.Message) ([]byte, error) {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("rowid: encode: %w", err)
	}
	return data, nil
}

func rangeSegment(start, end uint64) *pb.U64Segment {
	return &pb.U64Segment{Segment: &pb.U64Segment_Range_{Range: &pb.U64Segment_Range{Start: start, End: end}}}
}

// segmentOf picks the form of at least one id.
func segmentOf(ids []uint64) *pb.U64Segment {
	rising := true
	for i := 1; i < len(ids) && rising; i++ {
		rising = ids[i] > ids[i-1]
	}
	if !rising || ids[len(ids)-1] == math.MaxUint64 {
		return &pb.U64Segment{Segment: &pb.U64Segment_Array{Array: arrayOf(ids)}}
	}
	start, end := ids[0], ids[len(ids)-1]+1
	n := uint64(len(ids))
	holes := end - start - n
	if holes == 0 {
		return rangeSegment(start, end)
	}
	asHoles, asBitmap, asArray := segmentOverhead+4*holes, segmentOverhead+(end-start+7)/8, segmentOverhead+2*n
	switch min(asHoles, asBitmap, asArray) {
	case asHoles:
		return &pb.U64Segment{Segment: &pb.U64Segment_RangeWithHoles_{RangeWithHoles: &pb.U64Segment_RangeWithHoles{
			Start: start, End: end, Holes: arrayOf(holesOf(ids)),
		}}}
	case asBitmap:
		bitmap := make([]byte, (end-start+7)/8)
		for _, id := range ids {
			bitmap[(id-start)/8] |= 1 << ((id - start) % 8)
		}
		return &pb.U64Segment{Segment: &pb.U64Segment_RangeWithBitmap_{RangeWithBitmap: &pb.U64Segment_RangeWithBitmap{
			Start: start, End: end, Bitmap: bitmap,
		}}}
	}
	return &pb.U64Segment{Segment: &pb.U64Segment_SortedArray{SortedArray: arrayOf(ids)}}
}

// holesOf lists the values that are missing between rising ids.
func holesOf(ids []uint64) []uint64 {
	var out []uint64
	for i := 1; i < len(ids); i++ {
		for v := ids[i-1] + 1; v < ids[i]; v++ {
			out = append(out, v)
		}
	}
	return out
}

// arrayOf picks the narrowest offsets.
func arrayOf(values []uint64) *pb.EncodedU64Array {
	base := slices.Min(values)
	var data []byte
	switch width := slices.Max(values) - base; {
	case width <= math.MaxUint16:
		for _, v := range values {
			data = binary.LittleEndian.AppendUint16(data, uint16(v-base))
		}
		return &pb.EncodedU64Array{Array: &pb.EncodedU64Array_U16Array_{U16Array: &pb.EncodedU64Array_U16Array{Base: base, Offsets: data}}}
	case width <= math.MaxUint32:
		for _, v := range values {
			data = binary.LittleEndian.AppendUint32(data, uint32(v-base))
		}
		return &pb.EncodedU64Array{Array: &pb.EncodedU64Array_U32Array_{U32Array: &pb.EncodedU64Array_U32Array{Base: base, Offsets: data}}}
	}
	for _, v := range values {
		data = binary.LittleEndian.AppendUint64(data, v)
	}
	return &pb.EncodedU64Array{Array: &pb.EncodedU64Array_U64Array_{U64Array: &pb.EncodedU64Array_U64Array{Values: data}}}
}
