package encoding

import (
	"fmt"

	"github.com/apache/arrow/go/v17/arrow"
)

// Kind tells how the values of a leaf are laid out.
type Kind uint8

const (
	// Null values have no bytes at all.
	Null Kind = iota
	// Fixed values take Dim items of Bits bits each.
	Fixed
	// Bytes values have a length of their own.
	Bytes
)

// maxValueBytes bounds the width of a fixed-width value.
const maxValueBytes = 1 << 28

// Type is the physical type of a leaf column.
type Type struct {
	Kind Kind
	// Bits is the width of one item of a Fixed value: 1 or a multiple of 8.
	Bits int
	// Dim is the number of items of a Fixed value; 1 unless it is a vector.
	Dim int
	// Vector tells that items can be null on their own (also when Dim is 1).
	Vector bool
	// OffsetBits is the width of the Arrow offsets of Bytes values: 32 or 64.
	OffsetBits int
	// IndexBits is the width of the indexes of an Arrow dictionary, whose values these are; 0 otherwise.
	IndexBits int
}

// FixedType is the scalar type of the given width.
func FixedType(bits int) Type { return Type{Kind: Fixed, Bits: bits, Dim: 1} }

// BytesType is the variable-width type with Arrow offsets of the given width.
func BytesType(offsetBits int) Type { return Type{Kind: Bytes, OffsetBits: offsetBits} }

// ValueBits is the width of one Fixed value.
func (t Type) ValueBits() int { return t.Bits * t.Dim }

// ValueBytes is the width of one Fixed value that fills whole bytes.
func (t Type) ValueBytes() int { return t.Bits * t.Dim / 8 }

// Size is the number of bytes that n Fixed values take.
func (t Type) Size(n int) int { return (n*t.ValueBits() + 7) / 8 }

// String is for messages.
func (t Type) String() string {
	switch {
	case t.Kind == Null:
		return "null"
	case t.Kind == Bytes:
		return fmt.Sprintf("bytes with %d-bit offsets", t.OffsetBits)
	case t.Vector:
		return fmt.Sprintf("%d items of %d bits", t.Dim, t.Bits)
	}
	return fmt.Sprintf("%d bits", t.Bits)
}

// TypeOf gives the physical type of a leaf; that of a dictionary is its values' type. It refuses nested types
// and types without a layout with an error that wraps ErrUnsupported.
func TypeOf(t arrow.DataType) (Type, error) {
	switch t := t.(type) {
	case *arrow.NullType:
		return Type{Kind: Null}, nil
	case *arrow.StringType, *arrow.BinaryType:
		return BytesType(32), nil
	case *arrow.LargeStringType, *arrow.LargeBinaryType:
		return BytesType(64), nil
	case *arrow.FixedSizeListType:
		item, err := TypeOf(t.Elem())
		if err != nil {
			return Type{}, err
		}
		dim := int64(t.Len())
		if item.Kind != Fixed || dim <= 0 || dim*int64(item.ValueBits()) > maxValueBytes*8 {
			return Type{}, Unsupportedf("type %s", t)
		}
		return Type{Kind: Fixed, Bits: item.Bits, Dim: item.Dim * int(dim), Vector: true}, nil
	case *arrow.DictionaryType:
		return dictionaryType(t)
	case arrow.FixedWidthDataType:
		if bits := t.BitWidth(); bits == 1 || bits > 0 && bits%8 == 0 && bits <= maxValueBytes*8 {
			return FixedType(bits), nil
		}
	}
	return Type{}, Unsupportedf("type %s", t)
}

func dictionaryType(t *arrow.DictionaryType) (Type, error) {
	value, err := TypeOf(t.ValueType)
	if err != nil || value.Kind == Null || value.Vector || value.IndexBits > 0 || value.Bits == 1 {
		return Type{}, Unsupportedf("type %s", t)
	}
	value.IndexBits = t.IndexType.(arrow.FixedWidthDataType).BitWidth()
	return value, nil
}
