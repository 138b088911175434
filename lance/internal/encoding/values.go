package encoding

import (
	"math"
	"unsafe"

	"github.com/apache/arrow/go/v17/arrow/bitutil"
	"github.com/apache/arrow/go/v17/arrow/memory"
)

// Values is a growing column of leaf values in Arrow's layout. Null slots are values like others; which slots
// are null is told by definition levels.
type Values struct {
	Type Type
	// Len is the number of values.
	Len int
	// Data holds Fixed values back to back (bitmap order when Bits is 1), or the bytes of Bytes values.
	Data *Buffer
	// Offsets holds Len+1 offsets of Type.OffsetBits for Bytes values, nothing when Len is 0.
	Offsets *Buffer
	// ItemValid is the validity bitmap of the Len×Dim items of vectors; nothing while all items are valid.
	ItemValid *Buffer
}

// NewValues makes an empty column.
func NewValues(t Type, mem memory.Allocator) *Values {
	return &Values{Type: t, Data: NewBuffer(mem), Offsets: NewBuffer(mem), ItemValid: NewBuffer(mem)}
}

// Reset empties the column and keeps its memory.
func (v *Values) Reset() {
	v.Len = 0
	v.Data.Truncate(0)
	v.Offsets.Truncate(0)
	v.ItemValid.Truncate(0)
}

// Release frees the memory.
func (v *Values) Release() {
	v.Len = 0
	v.Data.Release()
	v.Offsets.Release()
	v.ItemValid.Release()
}

// Bytes is the memory that the values fill.
func (v *Values) Bytes() int { return v.Data.Len() + v.Offsets.Len() + v.ItemValid.Len() }

// HasItemNulls reports whether item validity is kept.
func (v *Values) HasItemNulls() bool { return v.ItemValid.Len() > 0 }

// Reserve makes room for n further values (of unknown length, for Bytes values).
func (v *Values) Reserve(n int) {
	switch v.Type.Kind {
	case Fixed:
		v.Data.Reserve(v.Type.Size(n))
	case Bytes:
		v.Offsets.Reserve((n + 1) * v.Type.OffsetBits / 8)
	}
}

// ExtendFixed adds n Fixed values of whole bytes and returns their place. Item validity of vectors is extended
// as valid.
func (v *Values) ExtendFixed(n int) []byte {
	v.extendItems(n, nil, 0)
	v.Len += n
	return v.Data.Extend(n * v.Type.ValueBytes())
}

// AppendFixed adds n Fixed values that begin at bit srcBit of src, and their item validity that begins at bit
// validBit of valid (nil: all valid).
func (v *Values) AppendFixed(src []byte, srcBit, n int, valid []byte, validBit int) {
	v.extendItems(n, valid, validBit)
	bits := v.Type.ValueBits()
	if bits%8 == 0 && srcBit%8 == 0 && v.Len*bits%8 == 0 {
		v.Data.Append(src[srcBit/8:][:n*bits/8])
	} else {
		v.Data.Extend(v.Type.Size(v.Len+n) - v.Data.Len())
		bitutil.CopyBitmap(src, srcBit, n*bits, v.Data.Bytes(), v.Len*bits)
	}
	v.Len += n
}

// AppendZero adds n values of zeros, or empty ones.
func (v *Values) AppendZero(n int) {
	switch v.Type.Kind {
	case Null:
		v.Len += n
	case Bytes:
		if v.Type.OffsetBits == 32 {
			appendEmpty[int32](v, n)
		} else {
			appendEmpty[int64](v, n)
		}
	case Fixed:
		v.extendItems(n, nil, 0)
		if bits := v.Type.ValueBits(); bits%8 == 0 {
			clear(v.Data.Extend(n * bits / 8))
		} else {
			v.Data.Extend(v.Type.Size(v.Len+n) - v.Data.Len())
			bitutil.SetBitsTo(v.Data.Bytes(), int64(v.Len*bits), int64(n*bits), false)
		}
		v.Len += n
	}
}

// ZeroAt clears one Fixed value.
func (v *Values) ZeroAt(i int) {
	if bits := v.Type.ValueBits(); bits%8 == 0 {
		clear(v.Data.Bytes()[i*bits/8 : (i+1)*bits/8])
	} else {
		bitutil.SetBitsTo(v.Data.Bytes(), int64(i*bits), int64(bits), false)
	}
}

// extendItems keeps ItemValid in step with n further vectors.
func (v *Values) extendItems(n int, valid []byte, from int) {
	if !v.Type.Vector || (valid == nil && v.ItemValid.Len() == 0) {
		return
	}
	have, add := v.Len*v.Type.Dim, n*v.Type.Dim
	fresh := v.ItemValid.Len() == 0
	v.ItemValid.Extend((have+add+7)/8 - v.ItemValid.Len())
	if fresh {
		bitutil.SetBitsTo(v.ItemValid.Bytes(), 0, int64(have), true)
	}
	if valid == nil {
		bitutil.SetBitsTo(v.ItemValid.Bytes(), int64(have), int64(add), true)
		return
	}
	bitutil.CopyBitmap(valid, from, add, v.ItemValid.Bytes(), have)
}

// AppendRange adds the values [from, to) of src, which has the same type.
func (v *Values) AppendRange(src *Values, from, to int) error {
	n := to - from
	switch v.Type.Kind {
	case Null:
		v.Len += n
	case Fixed:
		var valid []byte
		if src.HasItemNulls() {
			valid = src.ItemValid.Bytes()
		}
		v.AppendFixed(src.Data.Bytes(), from*v.Type.ValueBits(), n, valid, from*v.Type.Dim)
	case Bytes:
		if n == 0 {
			return nil
		}
		if v.Type.OffsetBits == 32 {
			return AppendSlices[int32](v, Cast[int32](src.Offsets.Bytes())[from:to+1], src.Data.Bytes())
		}
		return AppendSlices[int64](v, Cast[int64](src.Offsets.Bytes())[from:to+1], src.Data.Bytes())
	}
	return nil
}

// Slice returns the bytes of value i of a Bytes column; they are valid until the column grows.
func (v *Values) Slice(i int) []byte {
	if v.Type.OffsetBits == 32 {
		o := Cast[int32](v.Offsets.Bytes())
		return v.Data.Bytes()[o[i]:o[i+1]]
	}
	o := Cast[int64](v.Offsets.Bytes())
	return v.Data.Bytes()[o[i]:o[i+1]]
}

// Offset is an Arrow offset.
type Offset interface{ ~int32 | ~int64 }

// DiskOffset is an offset as it stands in a file.
type DiskOffset interface {
	~int32 | ~int64 | ~uint32 | ~uint64
}

// AppendSlices adds the len(offsets)-1 byte strings of data that consecutive offsets delimit. The offsets must
// not fall and must lie within data; T is the width of v's offsets. It refuses what a 32-bit Arrow column
// cannot hold with an error that wraps ErrUnsupported.
func AppendSlices[T Offset, S DiskOffset](v *Values, offsets []S, data []byte) error {
	n := len(offsets) - 1
	out, base, err := ExtendStrings[T](v, n, int(offsets[n]-offsets[0]))
	if err != nil {
		return err
	}
	first := offsets[0]
	for i, o := range offsets[1:] {
		out[i] = base + T(o-first)
	}
	v.Data.Append(data[first:offsets[n]])
	return nil
}

// ExtendStrings adds n byte strings that take bytes bytes in all: it returns the place of their end offsets and
// the offset at which they begin. The caller fills the ends and extends Data.
func ExtendStrings[T Offset](v *Values, n, bytes int) (ends []T, base T, err error) {
	if unsafe.Sizeof(base) == 4 && v.Data.Len()+bytes > math.MaxInt32 {
		return nil, 0, Unsupportedf("more than 2 GiB of string bytes in one batch")
	}
	w := int(unsafe.Sizeof(base))
	if v.Offsets.Len() == 0 {
		clear(v.Offsets.Extend(w))
	}
	base = T(v.Data.Len())
	v.Len += n
	return Cast[T](v.Offsets.Extend(n * w)), base, nil
}

func appendEmpty[T Offset](v *Values, n int) {
	ends, base, _ := ExtendStrings[T](v, n, 0)
	for i := range ends {
		ends[i] = base
	}
}

// AppendValue adds one byte string.
func (v *Values) AppendValue(p []byte) error {
	if v.Type.OffsetBits == 32 {
		return appendValue[int32](v, p)
	}
	return appendValue[int64](v, p)
}

func appendValue[T Offset](v *Values, p []byte) error {
	ends, base, err := ExtendStrings[T](v, 1, len(p))
	if err != nil {
		return err
	}
	ends[0] = base + T(len(p))
	v.Data.Append(p)
	return nil
}

// ExtendSlices adds n byte strings of unknown length: the caller appends their bytes to Data and writes the
// ends. ends[i] is Data's length after value i.
func ExtendSlices[T Offset](v *Values, n int) (ends []T) {
	ends, _, _ = ExtendStrings[T](v, n, 0)
	return ends
}

// Cast views bytes as little-endian numbers; a remainder is left out. b must be aligned to T, as Arrow memory
// and the starts of a file's buffers are.
func Cast[T any](b []byte) []T {
	var zero T
	n := len(b) / int(unsafe.Sizeof(zero))
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

// CastBytes views numbers as little-endian bytes.
func CastBytes[T any](v []T) []byte {
	if len(v) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(v[0])))
}

// SetLastEnd makes the last byte string end where Data ends.
func (v *Values) SetLastEnd() error {
	if v.Type.OffsetBits == 64 {
		Cast[int64](v.Offsets.Bytes())[v.Len] = int64(v.Data.Len())
		return nil
	}
	if v.Data.Len() > math.MaxInt32 {
		return Unsupportedf("more than 2 GiB of string bytes in one batch")
	}
	Cast[int32](v.Offsets.Bytes())[v.Len] = int32(v.Data.Len())
	return nil
}

// Allocator is where the column's memory comes from.
func (v *Values) Allocator() memory.Allocator { return v.Data.mem }
