package wal

import (
	"fmt"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/cespare/xxhash/v2"
)

// Limits of a stored schema. They bound what a hostile record can make a
// reader allocate.
const (
	maxSchemaBytes = 1 << 20
	maxSchemaDepth = 16
	maxNameBytes   = 4096
	maxFixedWidth  = 1 << 20
)

// typeCode is the stored number of an Arrow type; FORMAT.md lists them.
type typeCode uint8

const (
	codeBool typeCode = iota + 1
	codeInt8
	codeInt16
	codeInt32
	codeInt64
	codeUint8
	codeUint16
	codeUint32
	codeUint64
	codeFloat16
	codeFloat32
	codeFloat64
	codeString
	codeLargeString
	codeBinary
	codeLargeBinary
	codeFixedBinary // + width
	codeDate32
	codeDate64
	codeTime32    // + unit
	codeTime64    // + unit
	codeTimestamp // + unit, zone
	codeDuration  // + unit
	codeDecimal128
	codeDecimal256 // both + precision, scale
	codeList       // + one field
	codeLargeList
	codeFixedList // + length, one field
	codeStruct    // + fields
)

// plainTypes are the types without parameters.
var plainTypes = map[typeCode]arrow.DataType{
	codeBool:  arrow.FixedWidthTypes.Boolean,
	codeInt8:  arrow.PrimitiveTypes.Int8,
	codeInt16: arrow.PrimitiveTypes.Int16,
	codeInt32: arrow.PrimitiveTypes.Int32, codeInt64: arrow.PrimitiveTypes.Int64,
	codeUint8: arrow.PrimitiveTypes.Uint8, codeUint16: arrow.PrimitiveTypes.Uint16,
	codeUint32: arrow.PrimitiveTypes.Uint32, codeUint64: arrow.PrimitiveTypes.Uint64,
	codeFloat16: arrow.FixedWidthTypes.Float16,
	codeFloat32: arrow.PrimitiveTypes.Float32, codeFloat64: arrow.PrimitiveTypes.Float64,
	codeString: arrow.BinaryTypes.String, codeLargeString: arrow.BinaryTypes.LargeString,
	codeBinary: arrow.BinaryTypes.Binary, codeLargeBinary: arrow.BinaryTypes.LargeBinary,
	codeDate32: arrow.FixedWidthTypes.Date32, codeDate64: arrow.FixedWidthTypes.Date64,
}

// SchemaIDOf gives the id under which the log stores a schema: XXH64 of its
// encoding. Schemas with equal fields, types, nullability and metadata have
// equal ids. A type the log cannot hold is [ErrUnsupported].
func SchemaIDOf(s *arrow.Schema) (SchemaID, error) {
	data, err := encodeSchema(s)
	if err != nil {
		return 0, err
	}
	return SchemaID(xxhash.Sum64(data)), nil
}

// encodeSchema gives the canonical bytes of a schema (FORMAT.md, "schema").
func encodeSchema(s *arrow.Schema) ([]byte, error) {
	e := schemaEncoder{}
	e.metadata(s.Metadata())
	if s.NumFields() == 0 {
		e.err = fmt.Errorf("wal: schema without columns: %w", ErrInvalid)
	}
	e.fields(s.Fields(), 0)
	if e.err == nil && len(e.out) > maxSchemaBytes {
		e.err = fmt.Errorf("wal: schema of %d bytes: %w", len(e.out), ErrTooLarge)
	}
	return e.out, e.err
}

type schemaEncoder struct {
	out []byte
	err error
}

func (e *schemaEncoder) text(s string, limit int) {
	if len(s) > limit && e.err == nil {
		e.err = fmt.Errorf("wal: schema text of %d bytes: %w", len(s), ErrTooLarge)
	}
	e.uvarint(uint64(len(s)))
	e.out = append(e.out, s...)
}

func (e *schemaEncoder) metadata(md arrow.Metadata) {
	sorted := md.ToMap()
	e.uvarint(uint64(len(sorted)))
	for _, k := range sortedKeys(sorted) {
		e.text(k, maxNameBytes)
		e.text(sorted[k], maxSchemaBytes)
	}
}

func (e *schemaEncoder) fields(fields []arrow.Field, depth int) {
	if depth > maxSchemaDepth {
		e.err = fmt.Errorf("wal: schema nested deeper than %d: %w", maxSchemaDepth, ErrUnsupported)
	}
	e.uvarint(uint64(len(fields)))
	for i := range fields {
		if e.err != nil {
			return
		}
		e.field(&fields[i], depth)
	}
}

func (e *schemaEncoder) field(f *arrow.Field, depth int) {
	e.text(f.Name, maxNameBytes)
	nullable := byte(0)
	if f.Nullable {
		nullable = 1
	}
	e.out = append(e.out, nullable)
	e.metadata(f.Metadata)
	e.dataType(f.Type, depth)
}

func (e *schemaEncoder) dataType(dt arrow.DataType, depth int) {
	switch t := dt.(type) {
	case *arrow.FixedSizeBinaryType:
		if t.ByteWidth < 1 || t.ByteWidth > maxFixedWidth {
			e.unsupported(dt)
		}
		e.code(codeFixedBinary)
		e.uvarint(uint64(t.ByteWidth))
	case *arrow.Time32Type:
		e.code(codeTime32, byte(t.Unit))
	case *arrow.Time64Type:
		e.code(codeTime64, byte(t.Unit))
	case *arrow.TimestampType:
		e.code(codeTimestamp, byte(t.Unit))
		e.text(t.TimeZone, maxNameBytes)
	case *arrow.DurationType:
		e.code(codeDuration, byte(t.Unit))
	case *arrow.Decimal128Type:
		e.code(codeDecimal128, byte(t.Precision), byte(t.Scale))
	case *arrow.Decimal256Type:
		e.code(codeDecimal256, byte(t.Precision), byte(t.Scale))
	case *arrow.ListType:
		e.code(codeList)
		e.fields([]arrow.Field{t.ElemField()}, depth+1)
	case *arrow.LargeListType:
		e.code(codeLargeList)
		e.fields([]arrow.Field{t.ElemField()}, depth+1)
	case *arrow.FixedSizeListType:
		if t.Len() > maxFixedWidth {
			e.unsupported(dt)
		}
		e.code(codeFixedList)
		e.uvarint(uint64(t.Len()))
		e.fields([]arrow.Field{t.ElemField()}, depth+1)
	case *arrow.StructType:
		e.code(codeStruct)
		e.fields(t.Fields(), depth+1)
	default:
		e.plain(dt)
	}
}

func (e *schemaEncoder) plain(dt arrow.DataType) {
	for code, t := range plainTypes {
		if t.ID() == dt.ID() {
			e.code(code)
			return
		}
	}
	e.unsupported(dt)
}

func (e *schemaEncoder) unsupported(dt arrow.DataType) {
	if e.err == nil {
		e.err = fmt.Errorf("wal: type %s: %w", dt, ErrUnsupported)
	}
}

func (e *schemaEncoder) code(c typeCode, params ...byte) {
	e.out = append(append(e.out, byte(c)), params...)
}
