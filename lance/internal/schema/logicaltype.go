package schema

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/apache/arrow/go/v17/arrow"
)

// plainTypes are the logical types without parameters.
var plainTypes = map[string]arrow.DataType{
	"null": arrow.Null, "bool": arrow.FixedWidthTypes.Boolean,
	"int8": arrow.PrimitiveTypes.Int8, "uint8": arrow.PrimitiveTypes.Uint8,
	"int16": arrow.PrimitiveTypes.Int16, "uint16": arrow.PrimitiveTypes.Uint16,
	"int32": arrow.PrimitiveTypes.Int32, "uint32": arrow.PrimitiveTypes.Uint32,
	"int64": arrow.PrimitiveTypes.Int64, "uint64": arrow.PrimitiveTypes.Uint64,
	"halffloat": arrow.FixedWidthTypes.Float16, "float": arrow.PrimitiveTypes.Float32, "double": arrow.PrimitiveTypes.Float64,
	"string": arrow.BinaryTypes.String, "large_string": arrow.BinaryTypes.LargeString,
	"binary": arrow.BinaryTypes.Binary, "large_binary": arrow.BinaryTypes.LargeBinary,
	"date32:day": arrow.FixedWidthTypes.Date32, "date64:ms": arrow.FixedWidthTypes.Date64,
	"time32:s": arrow.FixedWidthTypes.Time32s, "time32:ms": arrow.FixedWidthTypes.Time32ms,
	"time64:us": arrow.FixedWidthTypes.Time64us, "time64:ns": arrow.FixedWidthTypes.Time64ns,
	"duration:s": arrow.FixedWidthTypes.Duration_s, "duration:ms": arrow.FixedWidthTypes.Duration_ms,
	"duration:us": arrow.FixedWidthTypes.Duration_us, "duration:ns": arrow.FixedWidthTypes.Duration_ns,
}

// plainNames is plainTypes turned round, by the Arrow type's fingerprint.
var plainNames = func() map[string]string {
	names := make(map[string]string, len(plainTypes))
	for name, t := range plainTypes {
		names[t.Fingerprint()] = name
	}
	return names
}()

// ParseLogicalType turns Lance's type string into an Arrow type. Types that have child fields in a Lance
// schema (struct, list) take them from children; the others ignore it. Errors wrap ErrUnsupportedType.
func ParseLogicalType(s string, children []arrow.Field) (arrow.DataType, error) {
	t, err := parse(s, children, 0)
	if err != nil {
		return nil, fmt.Errorf("%w: %q: %v", ErrUnsupportedType, s, err)
	}
	return t, nil
}

func parse(s string, children []arrow.Field, depth int) (arrow.DataType, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nested deeper than %d", maxDepth)
	}
	if t, ok := plainTypes[s]; ok {
		return t, nil
	}
	name, rest, _ := strings.Cut(s, ":")
	switch name {
	case "struct":
		return arrow.StructOf(children...), nil
	case "list", "list.struct":
		if len(children) != 1 {
			return nil, fmt.Errorf("a list has one child, not %d", len(children))
		}
		return arrow.ListOfField(children[0]), nil
	case "large_list", "large_list.struct":
		if len(children) != 1 {
			return nil, fmt.Errorf("a list has one child, not %d", len(children))
		}
		return arrow.LargeListOfField(children[0]), nil
	case "timestamp":
		return parseTimestamp(rest)
	case "decimal":
		return parseDecimal(rest)
	case "fixed_size_binary":
		n, err := parsePositive(rest)
		return &arrow.FixedSizeBinaryType{ByteWidth: n}, err
	case "fixed_size_list":
		return parseFixedSizeList(rest, depth)
	case "dict":
		return parseDictionary(rest, depth)
	}
	return nil, fmt.Errorf("unknown name")
}

func parsePositive(s string) (int, error) {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil || n <= 0 {
		return 0, fmt.Errorf("%q is not a positive 32-bit number", s)
	}
	return int(n), nil
}

func parseUnit(s string) (arrow.TimeUnit, error) {
	switch s {
	case "s":
		return arrow.Second, nil
	case "ms":
		return arrow.Millisecond, nil
	case "us":
		return arrow.Microsecond, nil
	case "ns":
		return arrow.Nanosecond, nil
	}
	return 0, fmt.Errorf("unknown time unit %q", s)
}

// parseTimestamp splits only on the first colon: an offset zone such as "+02:00" contains one too.
func parseTimestamp(rest string) (arrow.DataType, error) {
	u, zone, found := strings.Cut(rest, ":")
	unit, err := parseUnit(u)
	if err != nil {
		return nil, err
	}
	if zone == "-" || !found {
		zone = ""
	}
	return &arrow.TimestampType{Unit: unit, TimeZone: zone}, nil
}

func parseDecimal(rest string) (arrow.DataType, error) {
	parts := strings.Split(rest, ":")
	if len(parts) != 3 {
		return nil, fmt.Errorf("a decimal is decimal:bits:precision:scale")
	}
	precision, err := parsePositive(parts[1])
	if err != nil {
		return nil, err
	}
	scale, err := strconv.ParseInt(parts[2], 10, 8)
	if err != nil {
		return nil, fmt.Errorf("scale %q", parts[2])
	}
	switch {
	case parts[0] == "128" && precision <= 38:
		return &arrow.Decimal128Type{Precision: int32(precision), Scale: int32(scale)}, nil
	case parts[0] == "256" && precision <= 76:
		return &arrow.Decimal256Type{Precision: int32(precision), Scale: int32(scale)}, nil
	}
	return nil, fmt.Errorf("no such decimal")
}

// parseFixedSizeList takes "item:dimension"; the item itself may hold colons.
func parseFixedSizeList(rest string, depth int) (arrow.DataType, error) {
	i := strings.LastIndexByte(rest, ':')
	if i < 0 {
		return nil, fmt.Errorf("a fixed-size list is fixed_size_list:item:dimension")
	}
	n, err := parsePositive(rest[i+1:])
	if err != nil {
		return nil, err
	}
	if rest[:i] == "struct" {
		return nil, fmt.Errorf("fixed-size lists of structs are not supported")
	}
	item, err := parse(rest[:i], nil, depth+1)
	if err != nil {
		return nil, err
	}
	if !vectorItem(item) {
		return nil, fmt.Errorf("a fixed-size list of %s is not supported", item)
	}
	return arrow.FixedSizeListOfField(int32(n), arrow.Field{Name: "item", Type: item, Nullable: true}), nil
}

// vectorItem reports whether a fixed-size list of t is a leaf: its items have a fixed width.
func vectorItem(t arrow.DataType) bool {
	switch t := t.(type) {
	case *arrow.FixedSizeListType:
		return vectorItem(t.Elem())
	case arrow.FixedWidthDataType:
		return t.ID() != arrow.DICTIONARY && t.ID() != arrow.NULL
	}
	return false
}

func isFixedSizeListOfStruct(s string) bool {
	return strings.HasPrefix(s, "fixed_size_list:struct:")
}

// parseDictionary takes "value:index:ordered"; the value itself may hold colons.
func parseDictionary(rest string, depth int) (arrow.DataType, error) {
	parts := strings.Split(rest, ":")
	if len(parts) < 3 {
		return nil, fmt.Errorf("a dictionary is dict:value:index:ordered")
	}
	n := len(parts)
	value, err := parse(strings.Join(parts[:n-2], ":"), nil, depth+1)
	if err != nil {
		return nil, err
	}
	index, err := parse(parts[n-2], nil, depth+1)
	if err != nil {
		return nil, err
	}
	if !arrow.IsInteger(index.ID()) || value.ID() == arrow.DICTIONARY {
		return nil, fmt.Errorf("no such dictionary")
	}
	return &arrow.DictionaryType{IndexType: index, ValueType: value, Ordered: parts[n-1] == "true"}, nil
}

// FormatLogicalType turns an Arrow type into Lance's type string; the children of a struct or list are not
// part of it. Errors wrap ErrUnsupportedType and name the type.
func FormatLogicalType(t arrow.DataType) (string, error) {
	if name, ok := plainNames[t.Fingerprint()]; ok && t.ID() != arrow.EXTENSION {
		return name, nil
	}
	switch t := t.(type) {
	case *arrow.TimestampType:
		zone := t.TimeZone
		if zone == "" {
			zone = "-"
		}
		return "timestamp:" + t.Unit.String() + ":" + zone, nil
	case *arrow.Decimal128Type:
		return fmt.Sprintf("decimal:128:%d:%d", t.Precision, t.Scale), nil
	case *arrow.Decimal256Type:
		return fmt.Sprintf("decimal:256:%d:%d", t.Precision, t.Scale), nil
	case *arrow.FixedSizeBinaryType:
		return fmt.Sprintf("fixed_size_binary:%d", t.ByteWidth), nil
	case *arrow.StructType:
		return "struct", nil
	case *arrow.ListType:
		return listName("list", t.Elem()), nil
	case *arrow.LargeListType:
		return listName("large_list", t.Elem()), nil
	case *arrow.FixedSizeListType:
		if item, err := FormatLogicalType(t.Elem()); err == nil && vectorItem(t.Elem()) {
			return fmt.Sprintf("fixed_size_list:%s:%d", item, t.Len()), nil
		}
	case *arrow.DictionaryType:
		if value, err := FormatLogicalType(t.ValueType); err == nil {
			return fmt.Sprintf("dict:%s:%s:%t", value, plainNames[t.IndexType.Fingerprint()], t.Ordered), nil
		}
	}
	return "", fmt.Errorf("%w: %s", ErrUnsupportedType, t)
}

func listName(name string, elem arrow.DataType) string {
	if elem.ID() == arrow.STRUCT {
		return name + ".struct"
	}
	return name
}
