package lance

import (
	"fmt"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestGather compares with the concatenation of slices, for every path, sliced inputs, repeats and any order.
func TestGather(t *testing.T) {
	types := []arrow.DataType{
		arrow.BinaryTypes.String, arrow.BinaryTypes.Binary, arrow.BinaryTypes.LargeString, arrow.FixedWidthTypes.Boolean,
		arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Uint8, &arrow.FixedSizeBinaryType{ByteWidth: 3},
		&arrow.Decimal128Type{Precision: 10, Scale: 2}, arrow.FixedWidthTypes.Timestamp_us, arrow.Null,
		arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float32), arrow.ListOf(arrow.PrimitiveTypes.Int32),
		arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int8, Nullable: true}),
	}
	rapid.Check(t, func(rt *rapid.T) {
		mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
		typ := rapid.SampledFrom(types).Draw(rt, "type")
		rows := rapid.IntRange(1, 40).Draw(rt, "rows")
		b := array.NewBuilder(mem, typ)
		for i := range rows {
			if i%5 == 3 {
				b.AppendNull()
			} else {
				appendSample(b, i)
			}
		}
		whole := b.NewArray()
		b.Release()
		from := rapid.IntRange(0, rows-1).Draw(rt, "from")
		a := array.NewSlice(whole, int64(from), int64(rows))
		whole.Release()
		var runs []run
		for range rapid.IntRange(1, 6).Draw(rt, "runs") {
			at := rapid.IntRange(0, a.Len()-1).Draw(rt, "at")
			runs = append(runs, run{at, rapid.IntRange(at+1, a.Len()).Draw(rt, "to")})
		}
		got, err := gather(a, runs, mem)
		require.NoError(rt, err)
		var slices []arrow.Array
		for _, r := range runs {
			slices = append(slices, array.NewSlice(a, int64(r.from), int64(r.to)))
		}
		want, err := array.Concatenate(slices, mem)
		require.NoError(rt, err)
		require.True(rt, array.Equal(want, got), "want %v, got %v", want, got)
		require.Equal(rt, want.NullN(), got.NullN())
		releaseAll(append(slices, a, got, want))
		mem.AssertSize(t, 0)
	})
}

func appendSample(b array.Builder, i int) {
	switch b := b.(type) {
	case *array.FixedSizeListBuilder:
		b.Append(true)
		b.ValueBuilder().(*array.Float32Builder).AppendValues([]float32{float32(i), float32(-i)}, nil)
	case *array.ListBuilder:
		b.Append(true)
		for v := range i % 3 {
			b.ValueBuilder().(*array.Int32Builder).Append(int32(v))
		}
	case *array.StructBuilder:
		b.Append(true)
		b.FieldBuilder(0).(*array.Int8Builder).Append(int8(i))
	case *array.FixedSizeBinaryBuilder:
		b.Append([]byte(fmt.Sprintf("%03d", i)))
	case *array.BinaryBuilder:
		b.Append([]byte(fmt.Sprint("value ", i*i)))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(i))
	case *array.NullBuilder:
		b.AppendNull()
	case *array.BooleanBuilder:
		b.Append(i%2 == 0)
	default:
		if err := b.AppendValueFromString(fmt.Sprint(i)); err != nil {
			panic(err)
		}
	}
}
