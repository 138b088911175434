package rowid

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/foldline/foldline/lance/internal/pb"
)

func TestForms(t *testing.T) {
	for _, c := range []struct {
		ids  []uint64
		form any
	}{
		{[]uint64{5, 6, 7}, &pb.U64Segment_Range_{}},
		{[]uint64{5, 6, 8, 9, 10, 11, 12, 13, 14, 15}, &pb.U64Segment_RangeWithBitmap_{}},
		{[]uint64{5, 100_000}, &pb.U64Segment_SortedArray{}},
		{[]uint64{7, 5, 6}, &pb.U64Segment_Array{}},
		{[]uint64{0, math.MaxUint64}, &pb.U64Segment_Array{}},
	} {
		data, err := Encode(c.ids)
		require.NoError(t, err)
		m := &pb.RowIdSequence{}
		require.NoError(t, proto.Unmarshal(data, m))
		require.IsType(t, c.form, m.GetSegments()[0].GetSegment())
		got, err := Decode(data, uint64(len(c.ids)))
		require.NoError(t, err)
		require.Equal(t, c.ids, got)
	}
	var long []uint64
	for v := range uint64(1000) {
		if v != 500 {
			long = append(long, v)
		}
	}
	data, err := Encode(long)
	require.NoError(t, err)
	m := &pb.RowIdSequence{}
	require.NoError(t, proto.Unmarshal(data, m))
	require.IsType(t, &pb.U64Segment_RangeWithHoles_{}, m.GetSegments()[0].GetSegment())
	got, err := Decode(data, 999)
	require.NoError(t, err)
	require.Equal(t, long, got)
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		value := rapid.OneOf(rapid.Uint64Range(0, 50), rapid.Uint64Range(0, 1<<20), rapid.Uint64())
		ids := rapid.SliceOfN(value, 0, 60).Draw(rt, "ids")
		if rapid.Bool().Draw(rt, "sorted") {
			slices.Sort(ids)
			ids = slices.Compact(ids)
		}
		data, err := Encode(ids)
		require.NoError(rt, err)
		got, err := Decode(data, uint64(len(ids)))
		require.NoError(rt, err)
		require.True(rt, slices.Equal(ids, got))
		if len(ids) > 0 {
			_, err = Decode(data, uint64(len(ids))-1)
			require.Error(rt, err, "more ids than rows")
		}
		data, err = EncodeVersions(ids)
		require.NoError(rt, err)
		got, err = DecodeVersions(data, uint64(len(ids)))
		require.NoError(rt, err)
		require.True(rt, slices.Equal(ids, got))
		_, err = DecodeVersions(data, uint64(len(ids))+1)
		require.Error(rt, err)
	})
}

// TestHostileRange: a few bytes that claim 2^64 rows allocate nothing.
func TestHostileRange(t *testing.T) {
	data, err := marshal(&pb.RowIdSequence{Segments: []*pb.U64Segment{rangeSegment(0, math.MaxUint64)}})
	require.NoError(t, err)
	_, err = Decode(data, 10)
	require.ErrorContains(t, err, "room for 10")
}

func FuzzDecode(f *testing.F) {
	for _, ids := range [][]uint64{{1, 2, 3}, {1, 3, 4, 9}, {9, 1}, {0, 1 << 40}} {
		data, err := Encode(ids)
		require.NoError(f, err)
		f.Add(data)
		data, err = EncodeVersions(ids)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if ids, err := Decode(data, 1000); err == nil && len(ids) > 1000 {
			t.Fatal("too many ids")
		}
		if versions, err := DecodeVersions(data, 1000); err == nil && len(versions) != 1000 {
			t.Fatal("wrong count")
		}
	})
}
