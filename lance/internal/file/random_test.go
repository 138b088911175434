package file_test

import (
	"fmt"
	"math/rand/v2"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/bitutil"
	"github.com/apache/arrow/go/v17/arrow/memory"
)

// style says how random values look.
type style struct {
	nulls    float64 // share of nulls at every nullable place
	distinct int     // values are drawn from so many; 0 is all
	small    bool    // numbers use few bits
	longest  int     // bytes of the longest string
	items    int     // items of the longest list
	// wholeStructs leaves out null structs, which version 2.0 cannot hold.
	wholeStructs bool
}

// scalarTypes are the leaf types, vectors apart.
var scalarTypes = []arrow.DataType{
	arrow.FixedWidthTypes.Boolean,
	arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Uint16,
	arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Uint64,
	arrow.FixedWidthTypes.Float16, arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64,
	arrow.FixedWidthTypes.Date32, arrow.FixedWidthTypes.Date64, arrow.FixedWidthTypes.Time32ms, arrow.FixedWidthTypes.Time64ns,
	&arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, &arrow.TimestampType{Unit: arrow.Second},
	arrow.FixedWidthTypes.Duration_ns, &arrow.Decimal128Type{Precision: 20, Scale: 3}, &arrow.Decimal256Type{Precision: 50, Scale: 3},
	&arrow.FixedSizeBinaryType{ByteWidth: 16}, &arrow.FixedSizeBinaryType{ByteWidth: 3}, &arrow.FixedSizeBinaryType{ByteWidth: 300},
	arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.Binary, arrow.BinaryTypes.LargeBinary,
}

// nullable makes a list item or struct field.
func nullable(name string, t arrow.DataType) arrow.Field {
	return arrow.Field{Name: name, Type: t, Nullable: true}
}

// randomType draws a type of at most the given depth; pick(n) draws a number below n.
func randomType(pick func(n int) int, depth int) arrow.DataType {
	kind := pick(10)
	switch {
	case depth > 0 && kind < 2:
		return arrow.ListOfField(nullable("item", randomType(pick, depth-1)))
	case depth > 0 && kind == 2:
		return arrow.LargeListOfField(nullable("item", randomType(pick, depth-1)))
	case depth > 0 && kind < 5:
		fields := make([]arrow.Field, 1+pick(3))
		for i := range fields {
			fields[i] = nullable(fmt.Sprintf("f%d", i), randomType(pick, depth-1))
		}
		return arrow.StructOf(fields...)
	case kind == 5:
		items := []arrow.DataType{arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Uint8, arrow.FixedWidthTypes.Boolean, arrow.FixedWidthTypes.Float16}
		dims := []int32{1, 3, 8, 70}
		return arrow.FixedSizeListOfField(dims[pick(len(dims))], nullable("item", items[pick(len(items))]))
	}
	return scalarTypes[pick(len(scalarTypes))]
}

// randomArray makes n values of type t.
func randomArray(r *rand.Rand, mem memory.Allocator, t arrow.DataType, n int, s style) arrow.Array {
	data := randomData(r, mem, t, n, s)
	defer data.Release()
	return array.MakeFromData(data)
}

func randomData(r *rand.Rand, mem memory.Allocator, t arrow.DataType, n int, s style) *array.Data {
	share := s.nulls
	if t.ID() == arrow.STRUCT && s.wholeStructs {
		share = 0
	}
	valid, nulls := randomValidity(r, mem, n, share)
	if valid != nil {
		defer valid.Release()
	}
	switch t := t.(type) {
	case *arrow.StructType:
		var children []arrow.ArrayData
		for _, f := range t.Fields() {
			child := randomData(r, mem, f.Type, n, s)
			defer child.Release()
			children = append(children, child)
		}
		return array.NewData(t, n, []*memory.Buffer{valid}, children, nulls, 0)
	case *arrow.FixedSizeListType:
		items := s
		items.nulls = float64(r.IntN(2)) * s.nulls
		child := randomData(r, mem, t.Elem(), n*int(t.Len()), items)
		defer child.Release()
		return array.NewData(t, n, []*memory.Buffer{valid}, []arrow.ArrayData{child}, nulls, 0)
	case *arrow.ListType:
		offsets, total := randomOffsets[int32](r, mem, n, s.items, valid)
		defer offsets.Release()
		child := randomData(r, mem, t.Elem(), total, s)
		defer child.Release()
		return array.NewData(t, n, []*memory.Buffer{valid, offsets}, []arrow.ArrayData{child}, nulls, 0)
	case *arrow.LargeListType:
		offsets, total := randomOffsets[int64](r, mem, n, s.items, valid)
		defer offsets.Release()
		child := randomData(r, mem, t.Elem(), total, s)
		defer child.Release()
		return array.NewData(t, n, []*memory.Buffer{valid, offsets}, []arrow.ArrayData{child}, nulls, 0)
	case *arrow.StringType, *arrow.BinaryType:
		offsets, total := randomOffsets[int32](r, mem, n, s.longest, valid)
		defer offsets.Release()
		text := randomText(r, mem, total, s)
		defer text.Release()
		return array.NewData(t, n, []*memory.Buffer{valid, offsets, text}, nil, nulls, 0)
	case *arrow.LargeStringType, *arrow.LargeBinaryType:
		offsets, total := randomOffsets[int64](r, mem, n, s.longest, valid)
		defer offsets.Release()
		text := randomText(r, mem, total, s)
		defer text.Release()
		return array.NewData(t, n, []*memory.Buffer{valid, offsets, text}, nil, nulls, 0)
	}
	values := randomFixed(r, mem, t.(arrow.FixedWidthDataType).BitWidth(), n, s)
	defer values.Release()
	return array.NewData(t, n, []*memory.Buffer{valid, values}, nil, nulls, 0)
}

func newBuffer(mem memory.Allocator, n int) *memory.Buffer {
	b := memory.NewResizableBuffer(mem)
	b.Resize(n)
	clear(b.Bytes())
	return b
}

func randomValidity(r *rand.Rand, mem memory.Allocator, n int, share float64) (*memory.Buffer, int) {
	if share == 0 {
		return nil, 0
	}
	b := newBuffer(mem, (n+7)/8)
	nulls := 0
	for i := range n {
		if r.Float64() < share {
			nulls++
		} else {
			bitutil.SetBit(b.Bytes(), i)
		}
	}
	return b, nulls
}

// randomOffsets leaves content under some nulls, as Arrow allows.
func randomOffsets[T int32 | int64](r *rand.Rand, mem memory.Allocator, n, longest int, valid *memory.Buffer) (*memory.Buffer, int) {
	width := 4
	if _, ok := any(T(0)).(int64); ok {
		width = 8
	}
	b := newBuffer(mem, (n+1)*width)
	at := 0
	for i := range n + 1 {
		if width == 4 {
			arrow.Int32Traits.CastFromBytes(b.Bytes())[i] = int32(at)
		} else {
			arrow.Int64Traits.CastFromBytes(b.Bytes())[i] = int64(at)
		}
		if i < n && (valid == nil || bitutil.BitIsSet(valid.Bytes(), i) || r.IntN(4) == 0) {
			at += r.IntN(longest + 1)
		}
	}
	return b, at
}

func randomText(r *rand.Rand, mem memory.Allocator, n int, s style) *memory.Buffer {
	b := newBuffer(mem, n)
	letters := 26
	if s.distinct > 0 {
		letters = min(s.distinct, 26)
	}
	for i := range b.Bytes() {
		b.Bytes()[i] = byte('a' + r.IntN(letters))
	}
	return b
}

func randomFixed(r *rand.Rand, mem memory.Allocator, bits, n int, s style) *memory.Buffer {
	b := newBuffer(mem, (n*bits+7)/8)
	out := b.Bytes()
	for i := range out {
		out[i] = byte(r.Uint32())
	}
	w := bits / 8
	if w == 0 {
		return b
	}
	for i := range n {
		value := out[i*w : (i+1)*w]
		if s.small {
			clear(value[(w+1)/2:])
		}
		if s.distinct > 0 && i >= s.distinct {
			pick := r.IntN(s.distinct)
			copy(value, out[pick*w:(pick+1)*w])
		}
	}
	return b
}
