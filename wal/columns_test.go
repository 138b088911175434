package wal

import (
	"fmt"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/decimal128"
	"github.com/apache/arrow/go/v17/arrow/decimal256"
	"github.com/apache/arrow/go/v17/arrow/float16"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// leafTypes are all types without children that the log holds.
var leafTypes = []arrow.DataType{
	arrow.FixedWidthTypes.Boolean,
	arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
	arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Uint64,
	arrow.FixedWidthTypes.Float16, arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64,
	arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.Binary, arrow.BinaryTypes.LargeBinary,
	&arrow.FixedSizeBinaryType{ByteWidth: 5},
	arrow.FixedWidthTypes.Date32, arrow.FixedWidthTypes.Date64,
	arrow.FixedWidthTypes.Time32s, arrow.FixedWidthTypes.Time64ns, arrow.FixedWidthTypes.Duration_ms,
	&arrow.TimestampType{Unit: arrow.Microsecond}, &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "Europe/Zurich"},
	&arrow.Decimal128Type{Precision: 20, Scale: 3}, &arrow.Decimal256Type{Precision: 40, Scale: -2},
}

func drawType(t *rapid.T, depth int) arrow.DataType {
	if depth == 0 {
		return rapid.SampledFrom(leafTypes).Draw(t, "leaf")
	}
	field := func(name string) arrow.Field {
		return arrow.Field{Name: name, Type: drawType(t, depth-1), Nullable: true}
	}
	switch rapid.IntRange(0, 7).Draw(t, "kind") {
	case 0:
		return arrow.ListOfField(field("item"))
	case 1:
		return arrow.LargeListOfField(field("item"))
	case 2:
		return arrow.FixedSizeListOfField(int32(rapid.IntRange(1, 4).Draw(t, "length")), field("item"))
	case 3:
		return arrow.StructOf(field("a"), field("b"))
	default:
		return rapid.SampledFrom(leafTypes).Draw(t, "leaf")
	}
}

func drawSchema(t *rapid.T) *arrow.Schema {
	fields := make([]arrow.Field, rapid.IntRange(1, 4).Draw(t, "columns"))
	for i := range fields {
		fields[i] = arrow.Field{Name: fmt.Sprint("c", i), Type: drawType(t, 2), Nullable: true}
	}
	md := arrow.NewMetadata([]string{"k"}, []string{rapid.String().Draw(t, "metadata")})
	return arrow.NewSchema(fields, &md)
}

// drawRecord builds a random record, or a slice of one, so that offsets inside
// buffers are met too.
func drawRecord(t *rapid.T, s *arrow.Schema) arrow.Record {
	b := array.NewRecordBuilder(memory.DefaultAllocator, s)
	defer b.Release()
	n := rapid.IntRange(1, 20).Draw(t, "rows")
	for _, f := range b.Fields() {
		for range n {
			appendDrawn(t, f)
		}
	}
	rec := b.NewRecord()
	from := rapid.IntRange(0, n-1).Draw(t, "from")
	to := rapid.IntRange(from+1, n).Draw(t, "to")
	slice := rec.NewSlice(int64(from), int64(to))
	rec.Release()
	return slice
}

func appendDrawn(t *rapid.T, b array.Builder) {
	if rapid.IntRange(0, 3).Draw(t, "null") == 0 {
		b.AppendNull()
		return
	}
	n := rapid.Int64().Draw(t, "value")
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.Append(n%2 == 0)
	case *array.Float16Builder:
		b.Append(float16.New(float32(n % 1000)))
	case *array.StringBuilder:
		b.Append(fmt.Sprint("é", n%1000))
	case *array.LargeStringBuilder:
		b.Append(fmt.Sprint("日", n%1000))
	case *array.BinaryBuilder:
		b.Append([]byte(fmt.Sprint(n % 100)))
	case *array.FixedSizeBinaryBuilder:
		b.Append([]byte(fmt.Sprintf("%05d", uint16(n)))[:5])
	case *array.Decimal128Builder:
		b.Append(decimal128.FromI64(n))
	case *array.Decimal256Builder:
		b.Append(decimal256.FromI64(n))
	case array.ListLikeBuilder:
		appendDrawnList(t, b)
	case *array.StructBuilder:
		b.Append(true)
		for i := range b.NumField() {
			appendDrawn(t, b.FieldBuilder(i))
		}
	default:
		appendNumber(t, b, n)
	}
}

func appendDrawnList(t *rapid.T, b array.ListLikeBuilder) {
	n := rapid.IntRange(0, 5).Draw(t, "items")
	if fixed, ok := b.Type().(*arrow.FixedSizeListType); ok {
		n = int(fixed.Len())
	}
	b.Append(true)
	for range n {
		appendDrawn(t, b.ValueBuilder())
	}
}

func appendNumber(t *rapid.T, b array.Builder, n int64) {
	switch b := b.(type) {
	case *array.Int8Builder:
		b.Append(int8(n))
	case *array.Int16Builder:
		b.Append(int16(n))
	case *array.Int32Builder:
		b.Append(int32(n))
	case *array.Int64Builder:
		b.Append(n)
	case *array.Uint8Builder:
		b.Append(uint8(n))
	case *array.Uint16Builder:
		b.Append(uint16(n))
	case *array.Uint32Builder:
		b.Append(uint32(n))
	case *array.Uint64Builder:
		b.Append(uint64(n))
	case *array.Float32Builder:
		b.Append(float32(n))
	case *array.Float64Builder:
		b.Append(float64(n))
	case *array.Date32Builder:
		b.Append(arrow.Date32(n))
	case *array.Date64Builder:
		b.Append(arrow.Date64(n))
	case *array.Time32Builder:
		b.Append(arrow.Time32(n))
	case *array.Time64Builder:
		b.Append(arrow.Time64(n))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(n))
	case *array.DurationBuilder:
		b.Append(arrow.Duration(n))
	default:
		t.Fatalf("no value for %T", b)
	}
}

// concatenate is the reference for joining records.
func concatenate(t require.TestingT, s *arrow.Schema, recs []arrow.Record) arrow.Record {
	cols := make([]arrow.Array, s.NumFields())
	rows := int64(0)
	for i := range cols {
		parts := make([]arrow.Array, len(recs))
		for j, rec := range recs {
			parts[j] = rec.Column(i)
		}
		col, err := array.Concatenate(parts, memory.DefaultAllocator)
		require.NoError(t, err)
		cols[i] = col
	}
	for _, rec := range recs {
		rows += rec.NumRows()
	}
	return array.NewRecord(s, cols, rows)
}

// TestColumnsRoundTrip joins random records of random schemas into values, one
// value after the other through the same builder, and reads them back.
func TestColumnsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSchema(t)
		state, err := newSchemaState(s)
		require.NoError(t, err)
		back, err := decodeSchema(state.id, state.bytes)
		require.NoError(t, err)
		require.True(t, s.Equal(back), "%v\n%v", s, back)
		lookup := func(SchemaID) (*arrow.Schema, error) { return back, nil }
		b := newValueBuilder()
		for range 2 {
			recs := addDrawn(t, b, state)
			h := valueHeader{First: NewSeq(1, 1), Last: NewSeq(1, uint64(len(recs)))}
			size, write := b.encode(&h)
			data := make([]byte, size)
			write(data)
			got, err := decodeValue(h.Last, data, lookup)
			require.NoError(t, err)
			want := concatenate(t, s, recs)
			require.True(t, array.RecordEqual(want, got.Tables[0].Record), "%v\n%v", want, got.Tables[0].Record)
			for i, col := range want.Columns() {
				require.Equal(t, col.NullN(), got.Tables[0].Record.Column(i).NullN())
			}
			got.Release()
			b.reset()
		}
	})
}

// addDrawn adds entries that share records, with rows between them that are nobody's,
// and gives the rows that each took.
func addDrawn(t *rapid.T, b *valueBuilder, state *schemaState) (taken []arrow.Record) {
	for range rapid.IntRange(1, 4).Draw(t, "records") {
		rec := drawRecord(t, state.schema)
		all := int(rec.NumRows())
		for first := 0; first < all; {
			n := rapid.IntRange(1, all-first).Draw(t, "rows")
			size, err := measureRecord(state.shapes, rec, first, n)
			require.NoError(t, err)
			require.Positive(t, size)
			b.add(&pending{
				entry:   Entry{Rows: []Rows{{Table: 1, Record: rec, First: first, Count: n, Ops: []Op{OpUpsert}}}},
				schemas: []*schemaState{state}, rows: n, bytes: size,
			})
			taken = append(taken, rec.NewSlice(int64(first), int64(first+n)))
			first += n + rapid.SampledFrom([]int{0, 0, 1}).Draw(t, "gap")
		}
	}
	return taken
}

// TestMeasureRefusesBrokenRecords: a record whose buffers are shorter than its
// lengths claim never reaches the committer.
func TestMeasureRefusesBrokenRecords(t *testing.T) {
	buf := func(n int) *memory.Buffer { return memory.NewBufferBytes(make([]byte, n)) }
	for name, data := range map[string]arrow.ArrayData{
		"values":    array.NewData(arrow.PrimitiveTypes.Int64, 4, []*memory.Buffer{nil, buf(31)}, nil, 0, 0),
		"offset":    array.NewData(arrow.PrimitiveTypes.Int64, 2, []*memory.Buffer{nil, buf(16)}, nil, 0, 1),
		"validity":  array.NewData(arrow.PrimitiveTypes.Int8, 9, []*memory.Buffer{buf(1), buf(9)}, nil, 1, 0),
		"bits":      array.NewData(arrow.FixedWidthTypes.Boolean, 9, []*memory.Buffer{nil, buf(1)}, nil, 0, 0),
		"text":      array.NewData(arrow.BinaryTypes.String, 1, []*memory.Buffer{nil, memory.NewBufferBytes([]byte{0, 0, 0, 0, 9, 0, 0, 0}), buf(3)}, nil, 0, 0),
		"decrease":  array.NewData(arrow.BinaryTypes.String, 1, []*memory.Buffer{nil, memory.NewBufferBytes([]byte{2, 0, 0, 0, 1, 0, 0, 0}), buf(3)}, nil, 0, 0),
		"negative":  array.NewData(arrow.BinaryTypes.String, 1, []*memory.Buffer{nil, memory.NewBufferBytes([]byte{255, 255, 255, 255, 1, 0, 0, 0}), buf(3)}, nil, 0, 0),
		"childless": array.NewData(arrow.ListOf(arrow.PrimitiveTypes.Int8), 1, []*memory.Buffer{nil, buf(8)}, nil, 0, 0),
	} {
		s, err := shapeOf(data.DataType())
		require.NoError(t, err)
		_, err = s.measure(data, 0, data.Len())
		require.ErrorIs(t, err, ErrInvalid, name)
	}
}

func TestUnsupportedTypes(t *testing.T) {
	for _, dt := range []arrow.DataType{
		arrow.Null, &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String},
		arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int8), arrow.FixedWidthTypes.MonthInterval,
		&arrow.FixedSizeBinaryType{}, arrow.BinaryTypes.StringView,
	} {
		_, err := SchemaIDOf(arrow.NewSchema([]arrow.Field{{Name: "x", Type: dt}}, nil))
		require.ErrorIs(t, err, ErrUnsupported, "%v", dt)
	}
	_, err := SchemaIDOf(arrow.NewSchema(nil, nil))
	require.ErrorIs(t, err, ErrInvalid)
}
