package v20

import (
	"errors"
	"testing"

	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/foldline/foldline/lance/internal/encoding"
	"github.com/foldline/foldline/lance/internal/pb/pb20"
)

type pageBytes struct{ data []byte }

func (p pageBytes) Bytes(s encoding.Span) ([]byte, error) {
	if s.Off < 0 || s.Len < 0 || s.End() > int64(len(p.data)) {
		return nil, encoding.Corruptf("span beyond the buffers")
	}
	return p.data[s.Off:s.End()], nil
}

func read(enc *pb20.ArrayEncoding, rows int64, buffers [][]byte, t encoding.Type, r encoding.Range) (*encoding.Leaf, error) {
	var src pageBytes
	var spans []encoding.Span
	for _, b := range buffers {
		spans = append(spans, encoding.Span{Off: int64(len(src.data)), Len: int64(len(b))})
		src.data = append(src.data, b...)
	}
	p, err := Open(enc, rows, spans, t)
	if err != nil {
		return nil, err
	}
	defer p.Release()
	ranges := []encoding.Range{r}
	p.Prepare(ranges)
	if _, err := p.Locate(src, ranges); err != nil {
		return nil, err
	}
	out := encoding.NewLeaf(t, memory.DefaultAllocator)
	return out, p.Read(src, r, out)
}

func flatOf(bits uint64, buffer uint32) *pb20.ArrayEncoding {
	return &pb20.ArrayEncoding{ArrayEncoding: &pb20.ArrayEncoding_Flat{Flat: &pb20.Flat{BitsPerValue: bits, Buffer: &pb20.Buffer{BufferIndex: buffer}}}}
}

func noNulls(values *pb20.ArrayEncoding) *pb20.ArrayEncoding {
	return &pb20.ArrayEncoding{ArrayEncoding: &pb20.ArrayEncoding_Nullable{Nullable: &pb20.Nullable{
		Nullability: &pb20.Nullable_NoNulls{NoNulls: &pb20.Nullable_NoNull{Values: values}},
	}}}
}

func someNulls(validity, values *pb20.ArrayEncoding) *pb20.ArrayEncoding {
	return &pb20.ArrayEncoding{ArrayEncoding: &pb20.ArrayEncoding_Nullable{Nullable: &pb20.Nullable{
		Nullability: &pb20.Nullable_SomeNulls{SomeNulls: &pb20.Nullable_SomeNull{Validity: validity, Values: values}},
	}}}
}

func stringsOf(ends, bytes uint32, adjustment uint64) *pb20.ArrayEncoding {
	return &pb20.ArrayEncoding{ArrayEncoding: &pb20.ArrayEncoding_Binary{Binary: &pb20.Binary{
		Indices: noNulls(flatOf(64, ends)), Bytes: flatOf(8, bytes), NullAdjustment: adjustment,
	}}}
}

// sample is a page of a few rows in each encoding.
type sample struct {
	name    string
	enc     *pb20.ArrayEncoding
	typ     encoding.Type
	rows    int64
	buffers [][]byte
	def     []uint16
	values  []string
}

func samples() []sample {
	words := func(v ...uint64) []byte { return encoding.CastBytes(v) }
	return []sample{
		{"flat", noNulls(flatOf(8, 0)), encoding.FixedType(8), 3, [][]byte{{'a', 'b', 'c'}}, nil, []string{"a", "b", "c"}},
		{"nulls", someNulls(flatOf(1, 0), flatOf(8, 1)), encoding.FixedType(8), 3, [][]byte{{5}, {'a', 0, 'c'}}, []uint16{0, 1, 0}, nil},
		{
			"strings", stringsOf(0, 1, 5), encoding.BytesType(32), 4, [][]byte{words(1, 4, 9, 4), []byte("abcd")},
			[]uint16{0, 0, 1, 0}, []string{"a", "bcd", "", ""},
		},
		{
			"dictionary", &pb20.ArrayEncoding{ArrayEncoding: &pb20.ArrayEncoding_Dictionary{Dictionary: &pb20.Dictionary{
				Indices: noNulls(flatOf(8, 0)), Items: stringsOf(1, 2, 5), NumDictionaryItems: 2,
			}}},
			encoding.BytesType(32), 3, [][]byte{{2, 0, 1}, words(1, 4), []byte("abcd")}, []uint16{0, 1, 0}, []string{"bcd", "", "a"},
		},
	}
}

func TestPagesRead(t *testing.T) {
	for _, s := range samples() {
		for from := range s.rows {
			out, err := read(s.enc, s.rows, s.buffers, s.typ, encoding.Range{From: from, To: s.rows})
			require.NoError(t, err, s.name)
			require.EqualValues(t, s.rows-from, out.Values.Len)
			for i, d := range out.Def {
				require.Equal(t, s.def[int(from)+i], d, "%s row %d", s.name, int(from)+i)
			}
			for i := range out.Values.Len {
				if s.typ.Kind == encoding.Bytes {
					require.Equal(t, s.values[int(from)+i], string(out.Values.Slice(i)), s.name)
				} else if s.values != nil {
					require.Equal(t, s.values[int(from)+i], string(out.Values.Data.Bytes()[i]), s.name)
				}
			}
		}
	}
}

func FuzzPage(f *testing.F) {
	types := []encoding.Type{
		encoding.FixedType(8), encoding.FixedType(1), encoding.FixedType(64), encoding.BytesType(32), encoding.BytesType(64),
		{Kind: encoding.Fixed, Bits: 32, Dim: 3, Vector: true}, {Kind: encoding.Bytes, OffsetBits: 32, IndexBits: 16},
	}
	for i, s := range samples() {
		enc, err := proto.Marshal(s.enc)
		require.NoError(f, err)
		b := append(s.buffers, nil, nil, nil)
		f.Add(byte(i), byte(len(s.buffers)), uint16(s.rows), enc, b[0], b[1], b[2])
	}
	f.Fuzz(func(t *testing.T, kind, count byte, rows uint16, enc, a, b, c []byte) {
		var e pb20.ArrayEncoding
		if proto.Unmarshal(enc, &e) != nil {
			return
		}
		last := min(int64(rows), 300)
		for _, part := range []encoding.Range{{To: last}, {From: last / 2, To: last}} {
			_, err := read(&e, int64(rows), [][]byte{a, b, c}[:count%4], types[int(kind)%len(types)], part)
			var corrupt *encoding.CorruptError
			if err != nil && !errors.As(err, &corrupt) && !errors.Is(err, encoding.ErrUnsupported) {
				t.Fatalf("%v", err)
			}
		}
		if l, err := OpenLists(&e, int64(rows), []encoding.Span{{Len: int64(len(a))}}); err == nil && rows > 0 {
			_ = l.Read(pageBytes{a}, encoding.Range{From: 0, To: int64(rows)}, func(encoding.Range, bool) {})
		}
	})
}
