package deletion

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/stretchr/testify/require"
)

// seeker lets the IPC file writer write to memory.
type seeker struct{ bytes.Buffer }

func (s *seeker) Seek(int64, int) (int64, error) { return int64(s.Len()), nil }

func arrowFile(t testing.TB, typ arrow.DataType, values []uint32, options ...ipc.Option) []byte {
	t.Helper()
	s := arrow.NewSchema([]arrow.Field{{Name: "row_id", Type: typ}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, s)
	defer b.Release()
	for _, v := range values {
		switch c := b.Field(0).(type) {
		case *array.Uint32Builder:
			c.Append(v)
		case *array.Int64Builder:
			c.Append(int64(v))
		}
	}
	rec := b.NewRecord()
	defer rec.Release()
	var out seeker
	w, err := ipc.NewFileWriter(&out, append(options, ipc.WithSchema(s))...)
	require.NoError(t, err)
	require.NoError(t, w.Write(rec))
	require.NoError(t, w.Close())
	return out.Bytes()
}

func TestBitmapGolden(t *testing.T) {
	for _, c := range []struct {
		hex  string
		rows []uint32
	}{
		{"3a30000001000000000003001000000001000300050009" + "00", []uint32{1, 3, 5, 9}},
		{"3a300000010000000000010010000000" + "00000100", []uint32{0, 1}},
	} {
		data, err := hex.DecodeString(c.hex)
		require.NoError(t, err)
		rows, err := DecodeBitmap(data, 10)
		require.NoError(t, err)
		require.Equal(t, c.rows, rows.ToArray())
		_, err = DecodeBitmap(data, uint64(c.rows[len(c.rows)-1]))
		require.Error(t, err, "a row beyond the fragment")
		_, err = DecodeBitmap(append(data, 0), 10)
		require.Error(t, err, "trailing bytes")
	}
}

func TestBitmapRoundTrip(t *testing.T) {
	rows := roaring.New()
	rows.AddRange(5, 100_000)
	rows.Add(3_000_000)
	data, err := EncodeBitmap(rows)
	require.NoError(t, err)
	got, err := DecodeBitmap(data, 3_000_001)
	require.NoError(t, err)
	require.True(t, rows.Equals(got))
}

func TestArrowForms(t *testing.T) {
	many := make([]uint32, 4999)
	for i := range many {
		many[i] = uint32(i*7919) % 100_000
	}
	for name, options := range map[string][]ipc.Option{"plain": nil, "zstd": {ipc.WithZstd()}} {
		for _, values := range [][]uint32{{}, {9}, {9, 1, 5, 3}, many} {
			got, err := DecodeArrow(arrowFile(t, arrow.PrimitiveTypes.Uint32, values, options...), 100_000)
			require.NoError(t, err, name)
			require.True(t, roaring.BitmapOf(values...).Equals(got), name)
		}
	}
}

func TestArrowRefuses(t *testing.T) {
	_, err := DecodeArrow(arrowFile(t, arrow.PrimitiveTypes.Uint32, []uint32{100}), 100)
	require.ErrorContains(t, err, "row 100 of 100")
	_, err = DecodeArrow(arrowFile(t, arrow.PrimitiveTypes.Int64, []uint32{1}), 100)
	require.ErrorContains(t, err, "want uint32")
	_, err = DecodeArrow(arrowFile(t, arrow.PrimitiveTypes.Uint32, make([]uint32, 500), ipc.WithLZ4()), 1000)
	require.ErrorIs(t, err, ErrUnsupported)
	_, err = DecodeArrow(nil, 100)
	require.Error(t, err)
}

// FuzzDecode holds that no input panics or yields a row beyond the fragment.
func FuzzDecode(f *testing.F) {
	bitmap, err := EncodeBitmap(roaring.BitmapOf(1, 2, 3, 70_000))
	require.NoError(f, err)
	f.Add(bitmap)
	f.Add(arrowFile(f, arrow.PrimitiveTypes.Uint32, []uint32{9, 1, 5}))
	f.Add(arrowFile(f, arrow.PrimitiveTypes.Uint32, make([]uint32, 300), ipc.WithZstd()))
	f.Fuzz(func(t *testing.T, data []byte) {
		const limit = 100_000
		for _, decode := range []func([]byte, uint64) (*roaring.Bitmap, error){DecodeBitmap, DecodeArrow} {
			rows, err := decode(data, limit)
			if err == nil && !rows.IsEmpty() && rows.Maximum() >= limit {
				t.Fatalf("row %d", rows.Maximum())
			}
		}
	})
}

// TestArrowBitFlips walks every single-bit error of a compressed file: each is refused or gives rows inside the fragment.
func TestArrowBitFlips(t *testing.T) {
	data := arrowFile(t, arrow.PrimitiveTypes.Uint32, []uint32{9, 1, 5, 3, 2}, ipc.WithZstd())
	for i := range data {
		for bit := range 8 {
			flipped := bytes.Clone(data)
			flipped[i] ^= 1 << bit
			if rows, err := DecodeArrow(flipped, 10); err == nil && !rows.IsEmpty() {
				require.Less(t, rows.Maximum(), uint32(10))
			}
		}
	}
}
