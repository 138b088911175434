package structural

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/foldline/foldline/lance/internal/encoding"
	"github.com/foldline/foldline/lance/internal/encoding/levels"
	"github.com/foldline/foldline/lance/internal/pb/pb21"
)

// pageBytes are the buffers of a page, one after the other, as a file would hold them.
type pageBytes struct{ data []byte }

func (p pageBytes) Bytes(s encoding.Span) ([]byte, error) {
	if s.Off < 0 || s.Len < 0 || s.End() > int64(len(p.data)) {
		return nil, encoding.Corruptf("span beyond the buffers")
	}
	return p.data[s.Off:s.End()], nil
}

func place(buffers [][]byte) (pageBytes, []encoding.Span) {
	var p pageBytes
	var spans []encoding.Span
	for _, b := range buffers {
		spans = append(spans, encoding.Span{Off: int64(len(p.data)), Len: int64(len(b))})
		p.data = append(p.data, b...)
	}
	return p, spans
}

// readPage opens a page and decodes a range of it.
func readPage(layout *pb21.PageLayout, rows int64, buffers [][]byte, leaf *levels.LeafPath, r encoding.Range) (*encoding.Leaf, error) {
	src, spans := place(buffers)
	page, err := Open(layout, rows, spans, leaf)
	if err != nil {
		return nil, err
	}
	defer page.Release()
	ranges := []encoding.Range{r}
	page.Prepare(ranges)
	if _, err := page.Locate(src, ranges); err != nil {
		return nil, err
	}
	out := encoding.NewLeaf(leaf.Type, memory.DefaultAllocator)
	return out, page.Read(src, r, out)
}

// leafTypes are the types that the tests make pages of.
var leafTypes = []arrow.DataType{
	arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Uint8, arrow.FixedWidthTypes.Boolean,
	arrow.BinaryTypes.String, arrow.BinaryTypes.LargeBinary, &arrow.Decimal128Type{Precision: 20},
	arrow.FixedSizeListOf(3, arrow.PrimitiveTypes.Float32), arrow.FixedSizeListOf(80, arrow.PrimitiveTypes.Float32),
	arrow.ListOf(arrow.PrimitiveTypes.Int32), arrow.ListOf(arrow.BinaryTypes.String), arrow.Null,
	&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int16, ValueType: arrow.BinaryTypes.String},
}

func leafOf(t testing.TB, typ arrow.DataType) *levels.LeafPath {
	t.Helper()
	tree, err := levels.NewTree(arrow.Field{Name: "c", Type: typ, Nullable: true})
	require.NoError(t, err)
	return &tree.Leaves[0]
}

// someLeaf makes rows of a leaf by hand: lists of up to two items, nulls with the given chance in ten, values
// drawn from so many.
func someLeaf(r *rand.Rand, path *levels.LeafPath, rows, nulls, distinct, longest int) *encoding.Leaf {
	leaf := encoding.NewLeaf(path.Type, memory.DefaultAllocator)
	top := path.Path.MaxRep()
	for range rows {
		items := 1
		if top > 0 {
			items = r.IntN(3)
			if items == 0 {
				leaf.AppendEntries(1, []uint16{top}, []uint16{2 + uint16(r.IntN(2))})
			}
		}
		for i := range items {
			def := []uint16{0}
			if r.IntN(10) < nulls || path.Type.Kind == encoding.Null {
				def[0] = 1
			}
			var rep []uint16
			if top > 0 {
				rep = []uint16{top * uint16(1-i)}
			}
			leaf.AppendEntries(1, rep, def)
			someValue(r, leaf.Values, def[0] != 0, distinct, longest)
		}
	}
	return leaf
}

func someValue(r *rand.Rand, v *encoding.Values, null bool, distinct, longest int) {
	pick := r.IntN(distinct)
	switch {
	case null || v.Type.Kind == encoding.Null:
		v.AppendZero(1)
	case v.Type.Kind == encoding.Bytes:
		if err := v.AppendValue([]byte(strings.Repeat(fmt.Sprintf("value %d ", pick), longest/8+1)[:longest])); err != nil {
			panic(err)
		}
	default:
		value := make([]byte, v.Type.Size(1))
		for i := range value {
			value[i] = byte(pick >> (i % 3 * 8))
		}
		v.AppendFixed(value, 0, 1, nil, 0)
	}
}

// equal compares leaves: the same levels, and the same values where nothing is null.
func equal(a, b *encoding.Leaf) bool {
	def := func(l *encoding.Leaf) []uint16 {
		if len(l.Def) == 0 {
			return make([]uint16, l.Entries)
		}
		return l.Def
	}
	if a.Values.Len != b.Values.Len || !slices.Equal(a.Rep, b.Rep) || !slices.Equal(def(a), def(b)) {
		return false
	}
	if a.Values.Type.Kind == encoding.Bytes {
		for i := range a.Values.Len {
			if string(a.Values.Slice(i)) != string(b.Values.Slice(i)) {
				return false
			}
		}
		return true
	}
	bits := a.Values.Len * a.Values.Type.ValueBits()
	return slices.Equal(a.Values.Data.Bytes()[:bits/8], b.Values.Data.Bytes()[:bits/8])
}

// Every encoding that the writer picks reads back, for each type and kind of data.
func TestEncodedPagesRead(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, typ := range leafTypes {
		path := leafOf(t, typ)
		for _, c := range []struct{ rows, nulls, distinct, longest int }{
			{1, 0, 1, 3}, {3000, 0, 1, 8}, {3000, 2, 1 << 20, 20}, {700, 10, 5, 8}, {500, 1, 3, 300}, {6, 3, 4, 40000}, {5000, 5, 3, 0},
		} {
			for _, large := range []bool{false, true} {
				in := someLeaf(r, path, c.rows, c.nulls, c.distinct, c.longest)
				pages, err := Encode(path, in, c.rows, Options{LargeChunks: large})
				require.NoError(t, err)
				out := encoding.NewLeaf(path.Type, memory.DefaultAllocator)
				m := levelMap{path: path.Path}
				for _, p := range pages {
					got, err := readPage(p.Layout, int64(p.Rows), p.Buffers, path, encoding.Range{To: int64(p.Rows)})
					require.NoError(t, err, "%s %+v", typ, c)
					_, err = m.appendEntries(out, got, 0, got.Entries, 0)
					require.NoError(t, err)
				}
				require.True(t, equal(in, out), "%s %+v", typ, c)
			}
		}
	}
}

func FuzzPage(f *testing.F) {
	r := rand.New(rand.NewPCG(7, 8))
	for i, typ := range leafTypes {
		path := leafOf(f, typ)
		for _, c := range []struct{ rows, distinct, longest int }{{5, 9, 3}, {200, 2, 5}, {40, 1 << 16, 300}} {
			pages, err := Encode(path, someLeaf(r, path, c.rows, 2, c.distinct, c.longest), c.rows, Options{LargeChunks: c.rows == 200})
			require.NoError(f, err)
			layout, err := proto.Marshal(pages[0].Layout)
			require.NoError(f, err)
			b := append(pages[0].Buffers, nil, nil, nil)
			f.Add(byte(i), byte(len(pages[0].Buffers)), uint16(c.rows), layout, b[0], b[1], b[2])
		}
	}
	f.Fuzz(func(t *testing.T, kind, count byte, rows uint16, layout, a, b, c []byte) {
		var l pb21.PageLayout
		if proto.Unmarshal(layout, &l) != nil {
			return
		}
		path := leafOf(t, leafTypes[int(kind)%len(leafTypes)])
		buffers := [][]byte{a, b, c}[:count%4]
		last := min(int64(rows), 300)
		for _, part := range []encoding.Range{{To: last}, {From: last / 2, To: last}, {From: last / 3, To: last / 2}} {
			_, err := readPage(&l, int64(rows), buffers, path, part)
			var corrupt *encoding.CorruptError
			if err != nil && !errors.As(err, &corrupt) && !errors.Is(err, encoding.ErrUnsupported) {
				t.Fatalf("%v", err)
			}
		}
	})
}
