package testkit

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/stretchr/testify/require"
)

// AllTypes is a schema of all types that an Arrow stream may have, each nullable.
func AllTypes() *arrow.Schema {
	var fields []arrow.Field
	for i, t := range []arrow.DataType{
		arrow.FixedWidthTypes.Boolean, arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
		arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Uint64,
		arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64, arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.Binary,
		arrow.BinaryTypes.LargeBinary, &arrow.FixedSizeBinaryType{ByteWidth: 3}, &arrow.Decimal128Type{Precision: 10, Scale: 2},
		arrow.FixedWidthTypes.Date32, arrow.FixedWidthTypes.Date64, arrow.FixedWidthTypes.Time32s, arrow.FixedWidthTypes.Time64ns,
		arrow.FixedWidthTypes.Timestamp_us, &arrow.TimestampType{Unit: arrow.Second}, arrow.FixedWidthTypes.Duration_ms, arrow.Null,
		arrow.ListOf(arrow.BinaryTypes.String), arrow.LargeListOf(arrow.PrimitiveTypes.Int64), arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float32),
		arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, arrow.Field{Name: "b", Type: arrow.ListOf(arrow.FixedWidthTypes.Boolean), Nullable: true}),
	} {
		fields = append(fields, arrow.Field{Name: fmt.Sprintf("c%d", i), Type: t, Nullable: true})
	}
	return arrow.NewSchema(fields, nil)
}

// SampleRecord is a record of the schema with nulls in it, none of them in the first three rows of the first column; rows differ. It lives on the Go heap.
func SampleRecord(s *arrow.Schema, rows int) arrow.Record {
	b := array.NewRecordBuilder(memory.NewGoAllocator(), s)
	for row := range rows {
		for i := range s.NumFields() {
			appendSample(b.Field(i), row+i)
		}
	}
	return b.NewRecord()
}

func appendSample(b array.Builder, n int) {
	if n%4 == 3 {
		b.AppendNull()
		return
	}
	switch b := b.(type) {
	case *array.StructBuilder:
		b.Append(true)
		for i := range b.NumField() {
			appendSample(b.FieldBuilder(i), n+i)
		}
	case *array.FixedSizeListBuilder:
		b.Append(true)
		appendSample(b.ValueBuilder(), n)
		appendSample(b.ValueBuilder(), n+1)
	case array.VarLenListLikeBuilder:
		b.Append(true)
		for j := range n % 3 {
			appendSample(b.ValueBuilder(), n+j)
		}
	case *array.StringBuilder:
		b.Append(strings.Repeat("é", n%5))
	case *array.LargeStringBuilder:
		b.Append(fmt.Sprint(n))
	case *array.BinaryBuilder:
		b.Append([]byte{0xff, byte(n)})
	case *array.BinaryDictionaryBuilder:
		if err := b.AppendString(fmt.Sprint("v", n%7)); err != nil {
			panic(err)
		}
	case *array.FixedSizeBinaryBuilder:
		b.Append([]byte{1, 2, byte(n)})
	case *array.NullBuilder:
		b.AppendNull()
	default:
		text := map[arrow.Type]string{arrow.BOOL: "true", arrow.DATE32: "2026-03-29", arrow.DATE64: "2026-03-29", arrow.TIME32: "01:02:03", arrow.TIME64: "01:02:03",
			arrow.TIMESTAMP: "2026-03-29T02:30:00", arrow.DECIMAL128: "1.25"}[b.Type().ID()]
		if text == "" {
			text = fmt.Sprint(n % 100)
		}
		if b.Type().ID() == arrow.DURATION {
			text = fmt.Sprint(n, "ms")
		}
		if err := b.AppendValueFromString(text); err != nil {
			panic(fmt.Sprint(b.Type(), ": ", err))
		}
	}
}

// ArrowStream is what Arrow's own writer makes of records, at least one.
func ArrowStream(t testing.TB, records []arrow.Record, options ...ipc.Option) []byte {
	t.Helper()
	var out bytes.Buffer
	w := ipc.NewWriter(&out, append([]ipc.Option{ipc.WithSchema(records[0].Schema())}, options...)...)
	for _, r := range records {
		require.NoError(t, w.Write(r))
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}
