package ipcstream

import (
	"fmt"

	"github.com/apache/arrow/go/v17/arrow"
)

// Numbers of the Type union of Arrow's Schema.fbs.
const (
	typeNull = iota + 1
	typeInt
	typeFloat
	typeBinary
	typeUtf8
	typeBool
	typeDecimal
	typeDate
	typeTime
	typeTimestamp
	_ // interval
	typeList
	typeStruct
	_ // union
	typeFixedBinary
	typeFixedList
	_ // map
	typeDuration
	typeLargeBinary
	typeLargeUtf8
	typeLargeList
)

// column is a field of the stream's schema: its type as the record shows it, and how it is encoded.
type column struct {
	field    arrow.Field
	children []column
	// dictionary is set for a column of indices into one.
	dictionary *dictionaryRef
}

type dictionaryRef struct {
	id    int64
	index arrow.FixedWidthDataType
}

// schemaReader walks a Schema table. The fields are counted over the whole walk: a small buffer may name the same table
// many times.
type schemaReader struct {
	limits Limits
	fields int
}

func (r *schemaReader) read(t flatTable) ([]column, error) {
	if endian := t.number(0, 2, 0); endian != 0 {
		return nil, unsupported("big-endian data")
	}
	columns, err := r.vector(t, 1, 0)
	if err == nil {
		err = t.f.err
	}
	return columns, err
}

func (r *schemaReader) vector(t flatTable, slot, depth int) ([]column, error) {
	at, n := t.vector(slot, 4)
	if r.fields += n; r.fields > r.limits.Columns {
		return nil, tooLarge(r.limits.Columns, "columns")
	}
	if n > 0 && depth > r.limits.Nesting {
		return nil, fmt.Errorf("%w: nested deeper than %d", ErrTooDeep, r.limits.Nesting)
	}
	columns := make([]column, 0, n)
	for i := range n {
		c, err := r.column(t.f.table(t.f.follow(at+4*i)), depth)
		if err != nil {
			return nil, err
		}
		columns = append(columns, c)
	}
	return columns, t.f.err
}

func (r *schemaReader) column(t flatTable, depth int) (column, error) {
	c := column{field: arrow.Field{Name: t.text(0), Nullable: t.number(1, 1, 0) != 0}}
	var err error
	if c.children, err = r.vector(t, 5, depth+1); err != nil {
		return c, inField(c.field.Name, err)
	}
	of, _ := t.child(3)
	if t.f.err != nil {
		return c, t.f.err
	}
	if c.field.Type, err = dataType(uint8(t.number(2, 1, 0)), of, c.children); err == nil {
		err = t.f.err
	}
	if err != nil {
		return c, fmt.Errorf("column %q: %w", c.field.Name, err)
	}
	if d, ok := t.child(4); ok {
		if c.dictionary, err = dictionaryOf(d, c.field.Type); err != nil {
			return c, fmt.Errorf("column %q: %w", c.field.Name, err)
		}
	}
	return c, t.f.err
}

// dictionaryOf reads a DictionaryEncoding. Its dictionary holds strings or bytes: what is worth one.
func dictionaryOf(t flatTable, values arrow.DataType) (*dictionaryRef, error) {
	if !isBinary(values) {
		return nil, unsupported("a dictionary of %s", values)
	}
	d := &dictionaryRef{id: t.number(0, 8, 0), index: arrow.PrimitiveTypes.Int32.(arrow.FixedWidthDataType)}
	if index, ok := t.child(1); ok {
		of, err := integer(index)
		if err != nil {
			return nil, err
		}
		d.index = of.(arrow.FixedWidthDataType)
	}
	return d, t.f.err
}

// dataType is the type of a Type union. A type may lack its table: then all of its defaults hold.
func dataType(kind uint8, t flatTable, children []column) (arrow.DataType, error) {
	if t.vtable == nil {
		t.vtable = make([]byte, 4)
	}
	if nested := kind == typeList || kind == typeLargeList || kind == typeFixedList; nested && len(children) != 1 {
		return nil, fmt.Errorf("a list with %d element types", len(children))
	} else if !nested && kind != typeStruct && len(children) != 0 {
		return nil, fmt.Errorf("a plain type with %d children", len(children))
	}
	switch kind {
	case typeNull:
		return arrow.Null, nil
	case typeInt:
		return integer(t)
	case typeFloat:
		return pick(t.number(0, 2, 0), nil, arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64)
	case typeBinary:
		return arrow.BinaryTypes.Binary, nil
	case typeUtf8:
		return arrow.BinaryTypes.String, nil
	case typeLargeBinary:
		return arrow.BinaryTypes.LargeBinary, nil
	case typeLargeUtf8:
		return arrow.BinaryTypes.LargeString, nil
	case typeBool:
		return arrow.FixedWidthTypes.Boolean, nil
	case typeDecimal:
		return decimalType(t)
	case typeDate:
		return pick(t.number(0, 2, 1), arrow.FixedWidthTypes.Date32, arrow.FixedWidthTypes.Date64)
	case typeTime, typeTimestamp, typeDuration:
		return timeType(kind, t)
	case typeFixedBinary:
		width := t.number(0, 4, 0)
		if width <= 0 {
			return nil, fmt.Errorf("a width of %d bytes", width)
		}
		return &arrow.FixedSizeBinaryType{ByteWidth: int(width)}, nil
	}
	return nestedType(kind, t, children)
}

func nestedType(kind uint8, t flatTable, children []column) (arrow.DataType, error) {
	switch kind {
	case typeList:
		return arrow.ListOfField(children[0].field), nil
	case typeLargeList:
		return arrow.LargeListOfField(children[0].field), nil
	case typeFixedList:
		size := t.number(0, 4, 0)
		if size <= 0 {
			return nil, fmt.Errorf("a list of %d elements", size)
		}
		return arrow.FixedSizeListOfField(int32(size), children[0].field), nil
	case typeStruct:
		fields := make([]arrow.Field, len(children))
		seen := map[string]bool{}
		for i, c := range children {
			if seen[c.field.Name] {
				return nil, fmt.Errorf("field %q stands twice", c.field.Name)
			}
			fields[i], seen[c.field.Name] = c.field, true
		}
		return arrow.StructOf(fields...), nil
	}
	return nil, unsupported("type number %d", kind)
}

// pick is the type at a number of an enumeration; nil is a type that is not accepted.
func pick(at int64, types ...arrow.DataType) (arrow.DataType, error) {
	if at < 0 || at >= int64(len(types)) || types[at] == nil {
		return nil, unsupported("unit or precision number %d", at)
	}
	return types[at], nil
}

func integer(t flatTable) (arrow.DataType, error) {
	types := [2][4]arrow.DataType{
		{arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Uint64},
		{arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64},
	}
	signed := types[min(max(t.number(1, 1, 0), 0), 1)]
	switch width := t.number(0, 4, 0); width {
	case 8:
		return signed[0], nil
	case 16:
		return signed[1], nil
	case 32:
		return signed[2], nil
	case 64:
		return signed[3], nil
	default:
		return nil, fmt.Errorf("an integer of %d bits", width)
	}
}

func decimalType(t flatTable) (arrow.DataType, error) {
	precision, scale, bits := t.number(0, 4, 0), t.number(1, 4, 0), t.number(2, 4, 128)
	if bits != 128 {
		return nil, unsupported("a decimal of %d bits", bits)
	}
	if precision < 1 || precision > 38 || scale < -38 || scale > 38 {
		return nil, fmt.Errorf("a decimal of precision %d and scale %d", precision, scale)
	}
	return &arrow.Decimal128Type{Precision: int32(precision), Scale: int32(scale)}, nil
}

func timeType(kind uint8, t flatTable) (arrow.DataType, error) {
	fallback := int64(1) // of Time and Duration: milliseconds
	if kind == typeTimestamp {
		fallback = 0
	}
	number := t.number(0, 2, fallback)
	if number < 0 || number > 3 {
		return nil, fmt.Errorf("time unit number %d", number)
	}
	unit := arrow.TimeUnit(number)
	switch kind {
	case typeTimestamp:
		return &arrow.TimestampType{Unit: unit, TimeZone: t.text(1)}, nil
	case typeDuration:
		return &arrow.DurationType{Unit: unit}, nil
	}
	switch bits := t.number(1, 4, 32); {
	case bits == 32 && number <= 1:
		return &arrow.Time32Type{Unit: unit}, nil
	case bits == 64 && number >= 2:
		return &arrow.Time64Type{Unit: unit}, nil
	default:
		return nil, fmt.Errorf("a time of %d bits in %s", bits, unit)
	}
}

// isBinary tells whether a type is one of strings or bytes with offsets.
func isBinary(t arrow.DataType) bool {
	switch t.ID() {
	case arrow.STRING, arrow.LARGE_STRING, arrow.BINARY, arrow.LARGE_BINARY:
		return true
	}
	return false
}
