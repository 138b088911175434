package rowjson

import (
	"math"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/float16"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/stretchr/testify/require"
)

// TestAppendValue holds the printed form of each type, with the values that
// other writers are known to damage (C88, C91, C93).
func TestAppendValue(t *testing.T) {
	mem := memory.DefaultAllocator
	ts := func(unit arrow.TimeUnit, zone string, v arrow.Timestamp) arrow.Array {
		b := array.NewTimestampBuilder(mem, &arrow.TimestampType{Unit: unit, TimeZone: zone})
		b.Append(v)
		return b.NewArray()
	}
	of := func(b array.Builder, text string) arrow.Array {
		require.NoError(t, b.AppendValueFromString(text))
		return b.NewArray()
	}
	f64 := func(v float64) arrow.Array {
		b := array.NewFloat64Builder(mem)
		b.Append(v)
		return b.NewArray()
	}
	f32 := func(v float32) arrow.Array {
		b := array.NewFloat32Builder(mem)
		b.Append(v)
		return b.NewArray()
	}
	f16 := array.NewFloat16Builder(mem)
	f16.Append(float16.New(0.5))
	bin := array.NewBinaryBuilder(mem, arrow.BinaryTypes.Binary)
	bin.Append([]byte{0, 255})
	d32 := func(v arrow.Date32) arrow.Array {
		b := array.NewDate32Builder(mem)
		b.Append(v)
		return b.NewArray()
	}
	null := array.NewInt64Builder(mem)
	null.AppendNull()
	list := array.NewListBuilder(mem, arrow.PrimitiveTypes.Int64)
	list.Append(true)
	list.ValueBuilder().(*array.Int64Builder).AppendValues([]int64{1, math.MaxInt64}, nil)
	st := array.NewStructBuilder(mem, arrow.StructOf(arrow.Field{Name: "a\"", Type: arrow.BinaryTypes.String, Nullable: true}))
	st.Append(true)
	st.FieldBuilder(0).AppendNull()

	for want, a := range map[string]arrow.Array{
		`-5474557666971701248`:            of(array.NewInt64Builder(mem), "-5474557666971701248"),
		`18446744073709551615`:            of(array.NewUint64Builder(mem), "18446744073709551615"),
		`true`:                            of(array.NewBooleanBuilder(mem), "true"),
		`"NaN"`:                           f64(math.NaN()),
		`"+Inf"`:                          f64(math.Inf(1)),
		`"-Inf"`:                          f64(math.Inf(-1)),
		`-0`:                              f64(math.Copysign(0, -1)),
		`0.1`:                             f32(0.1),
		`0.5`:                             f16.NewArray(),
		`"AP8="`:                          bin.NewArray(),
		`"a\"\u0001é"`:                    of(array.NewStringBuilder(mem), "a\"\x01é"),
		`"2026-03-29T02:30:00.000001Z"`:   ts(arrow.Microsecond, "Europe/Berlin", 1774751400000001),
		`"2026-03-29T02:30:00"`:           ts(arrow.Second, "", 1774751400),
		`"1969-12-31T23:59:59.999"`:       ts(arrow.Millisecond, "", -1),
		`"1970-01-01T00:00:00.000000007"`: ts(arrow.Nanosecond, "", 7),
		`9223372036854775807`:             ts(arrow.Microsecond, "", math.MaxInt64),
		`"1970-01-02"`:                    d32(1),
		`2147483647`:                      d32(math.MaxInt32),
		`null`:                            null.NewArray(),
		`[1,9223372036854775807]`:         list.NewArray(),
		`{"a\"":null}`:                    st.NewArray(),
	} {
		got, err := AppendValue(nil, a, 0)
		require.NoError(t, err)
		require.Equal(t, want, string(got), "%s", a.DataType())
	}
}

func TestAppendRow(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "name", Type: arrow.BinaryTypes.String, Nullable: true},
	}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	b.Field(0).(*array.Int64Builder).AppendValues([]int64{7, 8}, nil)
	b.Field(1).(*array.StringBuilder).AppendValues([]string{"x", ""}, []bool{true, false})
	rec := b.NewRecord()
	got, err := AppendRow(nil, rec, 1)
	require.NoError(t, err)
	require.Equal(t, `{"id":8,"name":null}`, string(got))
	got, err = AppendColumns(nil, rec, []int{1}, 0)
	require.NoError(t, err)
	require.Equal(t, `{"name":"x"}`, string(got))
}
