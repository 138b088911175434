package fold

import (
	"fmt"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// gatherTypes holds one type of every layout that gatherer tells apart.
var gatherTypes = []arrow.DataType{
	arrow.FixedWidthTypes.Boolean, arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
	arrow.PrimitiveTypes.Uint64, arrow.PrimitiveTypes.Float64, arrow.FixedWidthTypes.Timestamp_us, arrow.FixedWidthTypes.Date32,
	arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.Binary, arrow.BinaryTypes.LargeBinary,
	&arrow.Decimal128Type{Precision: 20, Scale: 3}, &arrow.FixedSizeBinaryType{ByteWidth: 5},
	arrow.ListOf(arrow.PrimitiveTypes.Int16), arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float32),
	arrow.StructOf(arrow.Field{Name: "a", Type: arrow.BinaryTypes.String, Nullable: true}),
}

// TestGather compares the kernels with a slice of every single row, over random
// chunks (sliced, absent, with and without nulls) and random picks.
func TestGather(t *testing.T) {
	for _, dt := range gatherTypes {
		t.Run(dt.String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { checkGather(t, dt) })
		})
	}
}

func checkGather(t *rapid.T, dt arrow.DataType) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	sources := make([]arrow.Array, rapid.IntRange(1, 4).Draw(t, "chunks"))
	rows := rapid.IntRange(1, 20).Draw(t, "rows")
	for i := range sources {
		if rapid.IntRange(0, 4).Draw(t, "absent") > 0 {
			sources[i] = drawArray(t, mem, dt, rows)
		}
	}
	picks := make([]rowRef, rapid.IntRange(0, 40).Draw(t, "picks"))
	for i := range picks {
		picks[i] = rowRef{
			chunk: uint32(rapid.IntRange(0, len(sources)-1).Draw(t, "chunk")),
			row:   uint32(rapid.IntRange(0, rows-1).Draw(t, "row")),
		}
		if i > 0 && rapid.Bool().Draw(t, "next") && int(picks[i-1].row)+1 < rows {
			picks[i] = rowRef{picks[i-1].chunk, picks[i-1].row + 1}
		}
	}
	got, err := newGatherer(mem, picks).column(dt, sources)
	require.NoError(t, err)
	require.True(t, arrow.TypeEqual(dt, got.DataType()), "%s", got.DataType())
	require.Equal(t, len(picks), got.Len())
	for i, p := range picks {
		src := sources[p.chunk]
		if src == nil {
			require.True(t, got.IsNull(i))
			continue
		}
		require.True(t, array.SliceEqual(src, int64(p.row), int64(p.row)+1, got, int64(i), int64(i)+1),
			"row %d: %s in place of %s", i, got.ValueStr(i), src.ValueStr(int(p.row)))
	}
	got.Release()
	for _, s := range sources {
		if s != nil {
			s.Release()
		}
	}
	mem.AssertSize(fataler{t}, 0)
}

// fataler gives the checked allocator the two methods that it wants.
type fataler struct{ *rapid.T }

func (fataler) Helper() {}

// drawArray builds an array of n rows, a slice of a larger one.
func drawArray(t *rapid.T, mem memory.Allocator, dt arrow.DataType, n int) arrow.Array {
	b := array.NewBuilder(mem, dt)
	defer b.Release()
	skip := rapid.IntRange(0, 9).Draw(t, "skip")
	nulls := rapid.Bool().Draw(t, "nulls")
	for i := range skip + n {
		if nulls && rapid.Bool().Draw(t, "null") {
			b.AppendNull()
			continue
		}
		appendValue(t, b, i)
	}
	whole := b.NewArray()
	defer whole.Release()
	return array.NewSlice(whole, int64(skip), int64(skip+n))
}

func appendValue(t *rapid.T, b array.Builder, i int) {
	switch b := b.(type) {
	case *array.ListBuilder:
		b.Append(true)
		for k := range i % 3 {
			appendValue(t, b.ValueBuilder(), i+k)
		}
	case *array.FixedSizeListBuilder:
		b.Append(true)
		for k := range 2 {
			appendValue(t, b.ValueBuilder(), i+k)
		}
	case *array.StructBuilder:
		b.Append(true)
		appendValue(t, b.FieldBuilder(0), i)
	case *array.FixedSizeBinaryBuilder:
		b.Append(fmt.Appendf(nil, "%05d", i))
	case *array.BinaryBuilder:
		b.Append(fmt.Appendf(nil, "v%d", i*i))
	case *array.BooleanBuilder:
		b.Append(i%2 == 0)
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(i * 1_000_003))
	case *array.Date32Builder:
		b.Append(arrow.Date32(i))
	default:
		require.NoError(t, b.AppendValueFromString(fmt.Sprint(i)))
	}
}
