package wal

import (
	"fmt"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/bitutil"
)

// layout is how a column node keeps its values.
type layout uint8

const (
	layoutBits      layout = iota // one bit a value
	layoutFixed                   // width bytes a value
	layoutVar32                   // int32 offsets into bytes
	layoutVar64                   // int64 offsets into bytes
	layoutList32                  // int32 offsets into one child
	layoutList64                  // int64 offsets into one child
	layoutFixedList               // width child values a value
	layoutStruct                  // children only
)

// shape is a column node reduced to what copying needs: the layout and, for
// nested types, the children.
type shape struct {
	layout   layout
	width    int
	utf8     bool
	children []*shape
}

// shapesOf gives the shape of each column of a schema.
func shapesOf(s *arrow.Schema) ([]*shape, error) {
	shapes := make([]*shape, s.NumFields())
	for i := range shapes {
		sh, err := shapeOf(s.Field(i).Type)
		if err != nil {
			return nil, fmt.Errorf("wal: column %q: %w", s.Field(i).Name, err)
		}
		shapes[i] = sh
	}
	return shapes, nil
}

func shapeOf(dt arrow.DataType) (*shape, error) {
	switch t := dt.(type) {
	case *arrow.BooleanType:
		return &shape{layout: layoutBits}, nil
	case *arrow.StringType:
		return &shape{layout: layoutVar32, utf8: true}, nil
	case *arrow.BinaryType:
		return &shape{layout: layoutVar32}, nil
	case *arrow.LargeStringType:
		return &shape{layout: layoutVar64, utf8: true}, nil
	case *arrow.LargeBinaryType:
		return &shape{layout: layoutVar64}, nil
	case *arrow.ListType:
		return nestedShape(layoutList32, 0, t.Elem())
	case *arrow.LargeListType:
		return nestedShape(layoutList64, 0, t.Elem())
	case *arrow.FixedSizeListType:
		return nestedShape(layoutFixedList, int(t.Len()), t.Elem())
	case *arrow.StructType:
		types := make([]arrow.DataType, t.NumFields())
		for i := range types {
			types[i] = t.Field(i).Type
		}
		return nestedShape(layoutStruct, 0, types...)
	case *arrow.DictionaryType, arrow.ExtensionType:
		return nil, fmt.Errorf("type %s: %w", dt, ErrUnsupported)
	case arrow.FixedWidthDataType:
		return &shape{layout: layoutFixed, width: t.BitWidth() / 8}, nil
	}
	return nil, fmt.Errorf("type %s: %w", dt, ErrUnsupported)
}

func nestedShape(l layout, width int, types ...arrow.DataType) (*shape, error) {
	s := &shape{layout: l, width: width}
	for _, t := range types {
		child, err := shapeOf(t)
		if err != nil {
			return nil, err
		}
		s.children = append(s.children, child)
	}
	return s, nil
}

// measureRecord gives the bytes that n rows of a record take in a stored value, and
// checks that every buffer is as long as the lengths and offsets claim, so that
// the committer can copy without looking again.
func measureRecord(shapes []*shape, rec arrow.Record, first, n int) (int64, error) {
	if int(rec.NumCols()) != len(shapes) {
		return 0, fmt.Errorf("wal: record has %d columns, its schema %d: %w", rec.NumCols(), len(shapes), ErrInvalid)
	}
	var total int64
	for i, s := range shapes {
		col := rec.Column(i)
		size, err := s.measure(col.Data(), first, n)
		if err != nil {
			return 0, fmt.Errorf("wal: column %q: %w", rec.ColumnName(i), err)
		}
		total += size
	}
	return total, nil
}

// measure is measureRecord for n values of one node, from its logical row from.
func (s *shape) measure(d arrow.ArrayData, from, n int) (int64, error) {
	if from < 0 || n < 0 || from+n > d.Len() {
		return 0, fmt.Errorf("%d values from %d of %d: %w", n, from, d.Len(), ErrInvalid)
	}
	at := d.Offset() + from
	total := int64(0)
	if bits := bufferBytes(d, 0); bits != nil {
		if len(bits) < int(bitutil.BytesForBits(int64(at+n))) {
			return 0, fmt.Errorf("short validity bitmap: %w", ErrInvalid)
		}
		total += bitutil.BytesForBits(int64(n))
	}
	switch s.layout {
	case layoutBits:
		return total + bitutil.BytesForBits(int64(n)), s.need(d, bitutil.BytesForBits(int64(at+n)), n)
	case layoutFixed:
		return total + int64(n*s.width), s.need(d, int64((at+n)*s.width), n)
	case layoutVar32, layoutVar64:
		first, last, err := s.offsetRange(d, at, n)
		if err != nil || last > int64(len(bufferBytes(d, 2))) {
			return 0, fmt.Errorf("offsets do not fit the values: %w", ErrInvalid)
		}
		return total + last - first + int64((n+1)*s.offsetWidth()), nil
	default:
		nested, err := s.measureChildren(d, at, n)
		return total + nested, err
	}
}

func (s *shape) measureChildren(d arrow.ArrayData, at, n int) (int64, error) {
	total := int64(0)
	if len(d.Children()) != len(s.children) {
		return 0, fmt.Errorf("%d children, want %d: %w", len(d.Children()), len(s.children), ErrInvalid)
	}
	from, count := at, n
	switch s.layout {
	case layoutFixedList:
		from, count = at*s.width, n*s.width
	case layoutList32, layoutList64:
		first, last, err := s.offsetRange(d, at, n)
		if err != nil {
			return 0, err
		}
		from, count = int(first), int(last-first)
		total += int64((n + 1) * s.offsetWidth())
	}
	for i, child := range s.children {
		b, err := child.measure(d.Children()[i], from, count)
		if err != nil {
			return 0, err
		}
		total += b
	}
	return total, nil
}

// need checks that the values buffer has bytes for n values.
func (s *shape) need(d arrow.ArrayData, bytes int64, n int) error {
	if n > 0 && int64(len(bufferBytes(d, 1))) < bytes {
		return fmt.Errorf("short values buffer: %w", ErrInvalid)
	}
	return nil
}

func (s *shape) offsetWidth() int {
	if s.layout == layoutVar64 || s.layout == layoutList64 {
		return 8
	}
	return 4
}

// offset reads the i-th offset of an offsets buffer.
func (s *shape) offset(buf []byte, i int) int64 {
	if s.offsetWidth() == 8 {
		return int64(le.Uint64(buf[i*8:]))
	}
	return int64(int32(le.Uint32(buf[i*4:])))
}

// offsetRange gives the first and last of n+1 offsets from at, and checks that
// none decreases.
func (s *shape) offsetRange(d arrow.ArrayData, at, n int) (first, last int64, err error) {
	if n == 0 {
		return 0, 0, nil
	}
	buf := bufferBytes(d, 1)
	if len(buf) < (at+n+1)*s.offsetWidth() {
		return 0, 0, fmt.Errorf("short offsets buffer: %w", ErrInvalid)
	}
	first = s.offset(buf, at)
	last = first
	for i := at + 1; i <= at+n; i++ {
		next := s.offset(buf, i)
		if next < last {
			return 0, 0, fmt.Errorf("offsets decrease: %w", ErrInvalid)
		}
		last = next
	}
	if first < 0 {
		return 0, 0, fmt.Errorf("negative offset: %w", ErrInvalid)
	}
	return first, last, nil
}

// bufferBytes gives the i-th buffer of a node, nil when it has none.
func bufferBytes(d arrow.ArrayData, i int) []byte {
	bufs := d.Buffers()
	if i >= len(bufs) || bufs[i] == nil {
		return nil
	}
	return bufs[i].Bytes()
}
