package wal

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/cespare/xxhash/v2"
)

func (e *schemaEncoder) uvarint(n uint64) { e.out = binary.AppendUvarint(e.out, n) }

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

// decodeSchema reads what encodeSchema wrote and checks it against its id.
func decodeSchema(id SchemaID, data []byte) (*arrow.Schema, error) {
	c := &cursor{data: data}
	if len(data) > maxSchemaBytes {
		c.fail("schema of %d bytes is above %d", len(data), maxSchemaBytes)
	} else if got := SchemaID(xxhash.Sum64(data)); got != id {
		c.fail("schema hashes to %s", got)
	}
	md := decodeMetadata(c)
	fields := decodeFields(c, 0)
	if len(fields) == 0 {
		c.fail("no columns")
	}
	c.end("schema")
	if c.err != nil {
		return nil, &CorruptError{Key: "schema " + id.String(), Offset: c.off, Err: c.err}
	}
	return arrow.NewSchema(fields, &md), nil
}

func decodeMetadata(c *cursor) arrow.Metadata {
	n := c.count("metadata", 2)
	keys, values := make([]string, 0, n), make([]string, 0, n)
	for range n {
		keys = append(keys, c.text("metadata key", maxNameBytes))
		values = append(values, c.text("metadata value", maxSchemaBytes))
	}
	return arrow.NewMetadata(keys, values)
}

// minFieldBytes is what the smallest field takes: name length, nullability,
// metadata count, type code.
const minFieldBytes = 4

func decodeFields(c *cursor, depth int) []arrow.Field {
	if depth > maxSchemaDepth {
		c.fail("nested deeper than %d", maxSchemaDepth)
	}
	n := c.count("fields", minFieldBytes)
	fields := make([]arrow.Field, 0, n)
	for range n {
		f := arrow.Field{Name: c.text("field name", maxNameBytes)}
		nullable := c.u8("nullable")
		if nullable > 1 {
			c.fail("nullable is %d", nullable)
		}
		f.Nullable = nullable == 1
		f.Metadata = decodeMetadata(c)
		f.Type = decodeType(c, depth)
		if c.err != nil {
			return nil
		}
		fields = append(fields, f)
	}
	return fields
}

func decodeType(c *cursor, depth int) arrow.DataType {
	code := typeCode(c.u8("type"))
	if t, ok := plainTypes[code]; ok {
		return t
	}
	switch code {
	case codeFixedBinary:
		width := c.bounded("width", maxFixedWidth)
		if width == 0 {
			c.fail("width 0")
		}
		return &arrow.FixedSizeBinaryType{ByteWidth: width}
	case codeTime32:
		return &arrow.Time32Type{Unit: decodeUnit(c, arrow.Second, arrow.Millisecond)}
	case codeTime64:
		return &arrow.Time64Type{Unit: decodeUnit(c, arrow.Microsecond, arrow.Nanosecond)}
	case codeTimestamp:
		unit := decodeUnit(c, arrow.Second, arrow.Nanosecond)
		return &arrow.TimestampType{Unit: unit, TimeZone: c.text("zone", maxNameBytes)}
	case codeDuration:
		return &arrow.DurationType{Unit: decodeUnit(c, arrow.Second, arrow.Nanosecond)}
	case codeDecimal128, codeDecimal256:
		return decodeDecimal(c, code)
	case codeList, codeLargeList, codeFixedList, codeStruct:
		return decodeNested(c, code, depth)
	}
	c.fail("unknown type code %d", code)
	return arrow.Null
}

func decodeUnit(c *cursor, low, high arrow.TimeUnit) arrow.TimeUnit {
	unit := arrow.TimeUnit(c.u8("unit"))
	if unit < low || unit > high {
		c.fail("unit %d", unit)
	}
	return unit
}

func decodeDecimal(c *cursor, code typeCode) arrow.DataType {
	precision, scale := int32(c.u8("precision")), int32(int8(c.u8("scale")))
	if code == codeDecimal128 {
		return &arrow.Decimal128Type{Precision: precision, Scale: scale}
	}
	return &arrow.Decimal256Type{Precision: precision, Scale: scale}
}

func decodeNested(c *cursor, code typeCode, depth int) arrow.DataType {
	length := 0
	if code == codeFixedList {
		length = c.bounded("list length", maxFixedWidth)
		if length == 0 {
			c.fail("list length 0")
		}
	}
	fields := decodeFields(c, depth+1)
	if c.err == nil && code != codeStruct && len(fields) != 1 {
		c.fail("list with %d fields", len(fields))
	}
	if c.err != nil {
		return arrow.Null
	}
	switch code {
	case codeList:
		return arrow.ListOfField(fields[0])
	case codeLargeList:
		return arrow.LargeListOfField(fields[0])
	case codeFixedList:
		return arrow.FixedSizeListOfField(int32(length), fields[0])
	default:
		return arrow.StructOf(fields...)
	}
}
