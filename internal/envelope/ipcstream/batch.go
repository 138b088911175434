package ipcstream

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/bitutil"
	"github.com/apache/arrow/go/v17/arrow/memory"
)

// batch is a RecordBatch message: nodes and buffers are used up in the pre-order of the columns.
type batch struct {
	r       *reader
	f       *flat
	rows    int
	body    []byte
	codec   codec
	nodes   structs
	buffers structs
	end     int64           // of the buffer taken last
	wrapped []memory.Buffer // made at once, for the buffers that the batch says it has
}

// structs is a vector of structs of two int64: FieldNode{length, null_count} or Buffer{offset, length}.
type structs struct {
	data []byte
	next int
}

func (s *structs) take() (a, b int64, ok bool) {
	at := s.next * 16
	if at+16 > len(s.data) {
		return 0, 0, false
	}
	s.next++
	return int64(binary.LittleEndian.Uint64(s.data[at:])), int64(binary.LittleEndian.Uint64(s.data[at+8:])), true
}

func (s *structs) left() int { return len(s.data)/16 - s.next }

// open reads a RecordBatch table.
func (r *reader) open(t flatTable, body []byte) (*batch, error) {
	b := &batch{r: r, f: t.f}
	rows := t.number(0, 8, 0)
	nodes, n := t.vector(1, 16)
	b.nodes.data = t.f.bytes(nodes, n*16)
	buffers, n := t.vector(2, 16)
	b.buffers.data = t.f.bytes(buffers, n*16)
	var err error
	if c, ok := t.child(3); ok {
		b.codec, err = codecOf(c)
	}
	if _, variadic := t.vector(4, 8); variadic > 0 {
		err = unsupported("view types")
	}
	switch {
	case t.f.err != nil:
		return nil, t.f.err
	case err != nil:
		return nil, err
	case rows < 0 || rows > math.MaxInt32:
		return nil, fmt.Errorf("%d rows", rows)
	}
	b.rows = int(rows)
	if b.codec == nil {
		if err := r.spend(len(body)); err != nil {
			return nil, err
		}
	}
	b.body, b.wrapped = body, make([]memory.Buffer, min(b.buffers.left(), 2*r.limits.Columns))
	return b, nil
}

// spend counts bytes of buffers against the limit.
func (r *reader) spend(n int) error {
	if n > r.budget {
		return tooLarge(r.limits.Bytes, "bytes of data")
	}
	r.budget -= n
	return nil
}

// close checks that nothing is left over.
func (b *batch) close() error {
	if n, m := b.nodes.left(), b.buffers.left(); n > 0 || m > 0 {
		return fmt.Errorf("%d nodes and %d buffers belong to no column", n, m)
	}
	return nil
}

// buffer takes the next buffer and cuts it to the need bytes that its column reads; fewer is an error.
func (b *batch) buffer(need int) ([]byte, error) {
	data, err := b.rawBuffer()
	if err != nil {
		return nil, err
	}
	if len(data) < need {
		return nil, fmt.Errorf("a buffer of %d bytes where %d are needed", len(data), need)
	}
	return data[:need:need], nil
}

func (b *batch) rawBuffer() ([]byte, error) {
	offset, length, ok := b.buffers.take()
	if !ok {
		return nil, errors.New("a buffer is missing")
	}
	if offset < 0 || length < 0 || offset > int64(len(b.body)) || length > int64(len(b.body))-offset || offset%alignment != 0 {
		return nil, fmt.Errorf("a buffer of %d bytes at %d, the body has %d", length, offset, len(b.body))
	}
	if length == 0 {
		return nil, nil
	}
	// Buffers that share bytes would let a small body cost the time of a large one.
	if offset < b.end {
		return nil, fmt.Errorf("a buffer at %d within the one before it, which ends at %d", offset, b.end)
	}
	b.end = offset + length
	data := b.body[offset:b.end:b.end]
	if b.codec == nil {
		return data, nil
	}
	return b.r.decompress(b.codec, data)
}

// column builds the data of one column of length values.
func (b *batch) column(c *column, length int) (arrow.ArrayData, error) {
	n, nulls, ok := b.nodes.take()
	if !ok {
		return nil, errors.New("a node is missing")
	}
	if n != int64(length) || nulls < -1 || nulls > n {
		return nil, fmt.Errorf("a node of %d values and %d nulls where %d values are", n, nulls, length)
	}
	if c.field.Type.ID() == arrow.NULL {
		return array.NewData(arrow.Null, length, []*memory.Buffer{nil}, nil, length, 0), nil
	}
	validity, nullCount, err := b.validity(length)
	if err != nil {
		return nil, err
	}
	v := values{length: length, validity: validity, nulls: nullCount}
	if c.dictionary != nil {
		return b.indices(c, v)
	}
	return b.plain(c, v)
}

// values is what every column has: how many, and which of them are null.
type values struct {
	length   int
	validity []byte // nil: none is null
	nulls    int
}

func (v values) null(i int) bool { return v.validity != nil && !bitutil.BitIsSet(v.validity, i) }

// data makes the data of a column of its buffers, the validity bitmap's excepted.
func (b *batch) data(v values, t arrow.DataType, buffers [][]byte, children ...arrow.ArrayData) arrow.ArrayData {
	wrapped := make([]*memory.Buffer, 1, len(buffers)+1)
	if v.validity != nil {
		wrapped[0] = b.wrap(v.validity)
	}
	for _, data := range buffers {
		wrapped = append(wrapped, b.wrap(data))
	}
	return array.NewData(t, v.length, wrapped, children, v.nulls, 0)
}

// wrap makes a buffer, of those that were made at once while there are some.
func (b *batch) wrap(data []byte) *memory.Buffer {
	if len(b.wrapped) == 0 {
		return memory.NewBufferBytes(data)
	}
	buffer := &b.wrapped[0]
	b.wrapped = b.wrapped[1:]
	buffer.Reset(data)
	return buffer
}

// validity reads a bitmap. A column without nulls may leave it empty.
func (b *batch) validity(length int) ([]byte, int, error) {
	data, err := b.rawBuffer()
	if err != nil || len(data) == 0 {
		return nil, 0, err
	}
	if len(data) < bitmapBytes(length) {
		return nil, 0, fmt.Errorf("a validity bitmap of %d bytes for %d values", len(data), length)
	}
	nulls := length - bitutil.CountSetBits(data, 0, length)
	if nulls == 0 {
		return nil, 0, nil
	}
	return data[:bitmapBytes(length)], nulls, nil
}

func bitmapBytes(n int) int { return (n + 7) / 8 }

// plain builds a column that is no dictionary's.
func (b *batch) plain(c *column, v values) (arrow.ArrayData, error) {
	switch t := c.field.Type.(type) {
	case *arrow.BooleanType:
		data, err := b.buffer(bitmapBytes(v.length))
		return b.data(v, t, [][]byte{data}), err
	case *arrow.StructType:
		return b.structs(c, v)
	case *arrow.FixedSizeListType:
		return b.fixedList(c, t, v)
	case *arrow.ListType, *arrow.LargeListType:
		return b.list(c, v)
	case arrow.FixedWidthDataType:
		data, err := b.buffer(v.length * (t.BitWidth() / 8))
		return b.data(v, t, [][]byte{data}), err
	}
	if isBinary(c.field.Type) {
		return b.binary(c.field.Type, v)
	}
	return nil, unsupported("type %s", c.field.Type)
}

func (b *batch) structs(c *column, v values) (arrow.ArrayData, error) {
	children := make([]arrow.ArrayData, len(c.children))
	for i := range c.children {
		var err error
		if children[i], err = b.column(&c.children[i], v.length); err != nil {
			return nil, inField(c.children[i].field.Name, err)
		}
	}
	return b.data(v, c.field.Type, nil, children...), nil
}

func (b *batch) fixedList(c *column, t *arrow.FixedSizeListType, v values) (arrow.ArrayData, error) {
	size := int64(t.Len()) * int64(v.length)
	if size > int64(b.r.limits.Bytes) {
		return nil, tooLarge(b.r.limits.Bytes, "elements")
	}
	child, err := b.column(&c.children[0], int(size))
	if err != nil {
		return nil, inField(c.children[0].field.Name, err)
	}
	return b.data(v, t, nil, child), nil
}

func (b *batch) list(c *column, v values) (arrow.ArrayData, error) {
	o, err := b.offsets(c.field.Type, v.length)
	if err != nil {
		return nil, err
	}
	// Elements before the first offset may be there, so the child is read whole, as long as its own node says.
	length, err := b.peekLength()
	if err != nil {
		return nil, err
	}
	if o.last > int64(length) {
		return nil, fmt.Errorf("an offset of %d, there are %d elements", o.last, length)
	}
	child, err := b.column(&c.children[0], length)
	if err != nil {
		return nil, inField(c.children[0].field.Name, err)
	}
	return b.data(v, c.field.Type, [][]byte{o.raw}, child), nil
}

// peekLength is the length of the node that comes next, bounded by what its values could take.
func (b *batch) peekLength() (int, error) {
	peek := b.nodes
	n, _, ok := peek.take()
	if !ok || n < 0 || n > int64(b.r.limits.Bytes) {
		return 0, fmt.Errorf("a node of %d values", n)
	}
	return int(n), nil
}
