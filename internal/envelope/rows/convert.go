package rows

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/decimal128"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/foldline/foldline/internal/envelope"
)

// columnFault is the fault of a column with the row it was met in, NoRow for the whole column.
type columnFault struct {
	*fault
	row int
}

func columnRefusal(row int, code envelope.Code, format string, args ...any) *columnFault {
	return &columnFault{fault: refuse(code, fmt.Sprintf(format, args...)), row: row}
}

// convert holds data that the stream reader has checked against a column of the table: types are the same, except that
// strings and bytes may have offsets of the other width; columns that take no null have none, at any level; and values
// are in the range that the type's name promises.
func convert(data arrow.ArrayData, want arrow.Field, limits Limits) (arrow.ArrayData, *columnFault) {
	if !want.Nullable && data.NullN() > 0 {
		return nil, columnRefusal(firstNull(array.MakeFromData(data)), envelope.CodeNullInRequired, "null in a column that takes none")
	}
	if data.DataType().ID() == arrow.NULL {
		return array.MakeArrayOfNull(heap(), want.Type, data.Len()).Data(), nil
	}
	switch t := want.Type.(type) {
	case *arrow.StructType:
		got, ok := data.DataType().(*arrow.StructType)
		if !ok || !sameNames(t, got) {
			return nil, mismatch(data, want)
		}
		return convertChildren(data, t, t.Fields(), limits)
	case arrow.ListLikeType:
		if data.DataType().ID() != t.ID() || !sameSize(t, data.DataType()) {
			return nil, mismatch(data, want)
		}
		return convertChildren(data, t, []arrow.Field{t.ElemField()}, limits)
	}
	if isBinary(want.Type) && isBinary(data.DataType()) {
		return convertBinary(data, want, limits)
	}
	if !arrow.TypeEqual(want.Type, data.DataType()) {
		return nil, mismatch(data, want)
	}
	return data, checkRange(data)
}

func mismatch(data arrow.ArrayData, want arrow.Field) *columnFault {
	return columnRefusal(envelope.NoRow, envelope.CodeSchemaMismatch, "the stream has %s, the table %s", data.DataType(), want.Type)
}

func sameNames(a, b *arrow.StructType) bool {
	if a.NumFields() != b.NumFields() {
		return false
	}
	for i := range a.NumFields() {
		if a.Field(i).Name != b.Field(i).Name {
			return false
		}
	}
	return true
}

func sameSize(want, got arrow.DataType) bool {
	a, ok := want.(*arrow.FixedSizeListType)
	if !ok {
		return true
	}
	b, ok := got.(*arrow.FixedSizeListType)
	return ok && a.Len() == b.Len()
}

// convertChildren converts nested data under the table's own type. Children of a null parent may be null whatever their
// field says; a child field that takes no null is checked under parents that are there.
func convertChildren(data arrow.ArrayData, t arrow.DataType, fields []arrow.Field, limits Limits) (arrow.ArrayData, *columnFault) {
	children := make([]arrow.ArrayData, len(fields))
	for i, f := range fields {
		child := data.Children()[i]
		if !f.Nullable && child.NullN() > 0 && data.NullN() == 0 {
			return nil, &columnFault{fault: refuse(envelope.CodeNullInRequired, "null in a column that takes none").under(f.Name), row: envelope.NoRow}
		}
		if !f.Nullable && child.NullN() > 0 && nullUnderValid(data, child) {
			return nil, &columnFault{fault: refuse(envelope.CodeNullInRequired, "null in a column that takes none").under(f.Name), row: envelope.NoRow}
		}
		relaxed := f
		relaxed.Nullable = true
		converted, fault := convert(child, relaxed, limits)
		if fault != nil {
			fault.under(f.Name)
			fault.row = envelope.NoRow
			return nil, fault
		}
		children[i] = converted
	}
	return array.NewData(t, data.Len(), data.Buffers(), children, data.NullN(), data.Offset()), nil
}

// nullUnderValid tells whether a child is null where its parent is not.
func nullUnderValid(parent, child arrow.ArrayData) bool {
	p, c := array.MakeFromData(parent), array.MakeFromData(child)
	for i := range p.Len() {
		if p.IsNull(i) {
			continue
		}
		from, to := int64(i), int64(i+1)
		if l, ok := p.(array.ListLike); ok {
			from, to = l.ValueOffsets(i)
		}
		for j := from; j < to; j++ {
			if c.IsNull(int(j)) {
				return true
			}
		}
	}
	return false
}

// firstNull is the first null of an array, NoRow when it has none.
func firstNull(a arrow.Array) int {
	for i := range a.Len() {
		if a.IsNull(i) {
			return i
		}
	}
	return envelope.NoRow
}

func isBinary(t arrow.DataType) bool {
	switch t.ID() {
	case arrow.STRING, arrow.LARGE_STRING, arrow.BINARY, arrow.LARGE_BINARY:
		return true
	}
	return false
}

func isText(t arrow.DataType) bool { return t.ID() == arrow.STRING || t.ID() == arrow.LARGE_STRING }

func isWide(t arrow.DataType) bool {
	return t.ID() == arrow.LARGE_STRING || t.ID() == arrow.LARGE_BINARY
}

// convertBinary gives strings or bytes the offsets of the table's type, beginning at zero, and bounds each value.
func convertBinary(data arrow.ArrayData, want arrow.Field, limits Limits) (arrow.ArrayData, *columnFault) {
	got := data.DataType()
	if isText(got) != isText(want.Type) {
		return nil, mismatch(data, want)
	}
	raw, n := data.Buffers()[1].Bytes(), data.Len()
	at := func(i int) int64 {
		if isWide(got) {
			return int64(binary.LittleEndian.Uint64(raw[8*i:]))
		}
		return int64(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	first := at(0)
	for i := 0; i < n && at(n)-first > int64(limits.StringBytes); i++ {
		if size := at(i+1) - at(i); size > int64(limits.StringBytes) {
			return nil, columnRefusal(i, envelope.CodeTooLarge, "a value of %d bytes, the limit is %d", size, limits.StringBytes)
		}
	}
	if at(n)-first > math.MaxInt32 && !isWide(want.Type) {
		return nil, columnRefusal(envelope.NoRow, envelope.CodeTooLarge, "%d bytes in one column", at(n)-first)
	}
	if got.ID() == want.Type.ID() && first == 0 {
		return data, nil
	}
	if isWide(got) == isWide(want.Type) && first == 0 {
		return array.NewData(want.Type, n, data.Buffers(), nil, data.NullN(), 0), nil
	}
	offsets := make([]byte, 0, 8*(n+1))
	for i := range n + 1 {
		if isWide(want.Type) {
			offsets = binary.LittleEndian.AppendUint64(offsets, uint64(at(i)-first))
		} else {
			offsets = binary.LittleEndian.AppendUint32(offsets, uint32(at(i)-first))
		}
	}
	text := data.Buffers()[2].Bytes()[first:]
	return array.NewData(want.Type, n, []*memory.Buffer{data.Buffers()[0], memory.NewBufferBytes(offsets), memory.NewBufferBytes(text)}, nil, data.NullN(), 0), nil
}

// checkRange refuses bit patterns that are no value of the type: they would be written down as something else.
func checkRange(data arrow.ArrayData) *columnFault {
	switch a := array.MakeFromData(data).(type) {
	case *array.Date64:
		return inRange(a, a.Value, func(v arrow.Date64) bool { return v%(secondsPerDay*1000) == 0 })
	case *array.Time32:
		last := secondsPerDay * unitsPerSecond(a.DataType().(*arrow.Time32Type).Unit)
		return inRange(a, a.Value, func(v arrow.Time32) bool { return v >= 0 && int64(v) < last })
	case *array.Time64:
		last := secondsPerDay * unitsPerSecond(a.DataType().(*arrow.Time64Type).Unit)
		return inRange(a, a.Value, func(v arrow.Time64) bool { return v >= 0 && int64(v) < last })
	case *array.Decimal128:
		precision := a.DataType().(*arrow.Decimal128Type).Precision
		return inRange(a, a.Value, func(v decimal128.Num) bool { return v.FitsInPrecision(precision) })
	}
	return nil
}

func inRange[T any](a arrow.Array, value func(int) T, ok func(T) bool) *columnFault {
	for i := range a.Len() {
		if !a.IsNull(i) && !ok(value(i)) {
			return columnRefusal(i, envelope.CodeOutOfRange, "%v is no value of %s", value(i), a.DataType())
		}
	}
	return nil
}
