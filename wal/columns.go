package wal

import (
	"encoding/binary"
	"slices"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/bitutil"
)

// columnsBuilder joins the rows of many records of one schema into the column
// buffers of one stored batch. Its buffers are kept from batch to batch, and
// the cost is one copy of the rows' bytes, whatever the number of records.
type columnsBuilder struct {
	columns []*columnBuilder
	rows    int
}

func newColumnsBuilder(shapes []*shape) *columnsBuilder {
	b := &columnsBuilder{columns: make([]*columnBuilder, len(shapes))}
	for i, s := range shapes {
		b.columns[i] = newColumnBuilder(s)
	}
	return b
}

// append adds n rows of a record that measureRecord accepted.
func (b *columnsBuilder) append(rec arrow.Record, first, n int) {
	for i, c := range b.columns {
		c.append(rec.Column(i).Data(), first, n)
	}
	b.rows += n
}

func (b *columnsBuilder) reset() {
	b.rows = 0
	for _, c := range b.columns {
		c.reset()
	}
}

// columnBuilder is one node of a column tree.
type columnBuilder struct {
	shape    *shape
	length   int
	nulls    int
	valid    []byte // empty while nulls is 0
	offsets  []byte
	last     int64 // last offset
	values   []byte
	children []*columnBuilder
}

func newColumnBuilder(s *shape) *columnBuilder {
	c := &columnBuilder{shape: s}
	for _, child := range s.children {
		c.children = append(c.children, newColumnBuilder(child))
	}
	return c
}

func (c *columnBuilder) reset() {
	c.length, c.nulls, c.last = 0, 0, 0
	c.valid, c.offsets, c.values = c.valid[:0], c.offsets[:0], c.values[:0]
	for _, child := range c.children {
		child.reset()
	}
}

// append adds n values of d from its logical row from.
func (c *columnBuilder) append(d arrow.ArrayData, from, n int) {
	if n == 0 {
		return
	}
	at := d.Offset() + from
	c.appendValidity(bufferBytes(d, 0), at, n)
	s := c.shape
	switch s.layout {
	case layoutBits:
		c.values = appendBits(c.values, c.length, bufferBytes(d, 1), at, n)
	case layoutFixed:
		c.values = append(c.values, bufferBytes(d, 1)[at*s.width:(at+n)*s.width]...)
	case layoutVar32, layoutVar64:
		first, last := c.appendOffsets(bufferBytes(d, 1), at, n)
		c.values = append(c.values, bufferBytes(d, 2)[first:last]...)
	case layoutList32, layoutList64:
		first, last := c.appendOffsets(bufferBytes(d, 1), at, n)
		c.children[0].append(d.Children()[0], int(first), int(last-first))
	case layoutFixedList:
		c.children[0].append(d.Children()[0], at*s.width, n*s.width)
	case layoutStruct:
		for i, child := range c.children {
			child.append(d.Children()[i], at, n)
		}
	}
	c.length += n
}

func (c *columnBuilder) appendValidity(bits []byte, at, n int) {
	nulls := 0
	if bits != nil {
		nulls = n - bitutil.CountSetBits(bits, at, n)
	}
	switch {
	case nulls == 0 && c.nulls == 0:
		return
	case c.nulls == 0:
		c.valid = appendOnes(c.valid, 0, c.length)
	}
	c.nulls += nulls
	if nulls == 0 {
		c.valid = appendOnes(c.valid, c.length, n)
		return
	}
	c.valid = appendBits(c.valid, c.length, bits, at, n)
}

// appendOffsets adds n offsets, rebased to the end of what is there, and gives
// the range of the source they cover.
func (c *columnBuilder) appendOffsets(buf []byte, at, n int) (first, last int64) {
	s := c.shape
	if c.length == 0 {
		c.offsets = append(c.offsets, make([]byte, s.offsetWidth())...)
	}
	first = s.offset(buf, at)
	shift := c.last - first
	for i := at + 1; i <= at+n; i++ {
		last = s.offset(buf, i)
		if s.offsetWidth() == 8 {
			c.offsets = binary.LittleEndian.AppendUint64(c.offsets, uint64(last+shift))
		} else {
			c.offsets = binary.LittleEndian.AppendUint32(c.offsets, uint32(last+shift))
		}
	}
	c.last = last + shift
	return first, last
}

// walk visits the node and its children, parents first.
func (c *columnBuilder) walk(visit func(*columnBuilder)) {
	visit(c)
	for _, child := range c.children {
		child.walk(visit)
	}
}

// buffers calls visit with each buffer of the node in stored order.
func (c *columnBuilder) buffers(visit func([]byte)) {
	if c.nulls > 0 {
		visit(c.valid)
	}
	switch c.shape.layout {
	case layoutBits, layoutFixed:
		visit(c.values)
	case layoutVar32, layoutVar64:
		visit(c.offsets)
		visit(c.values)
	case layoutList32, layoutList64:
		visit(c.offsets)
	}
}

// appendBits adds n bits of src from bit at behind the length bits of dst.
// Bits of dst behind its length are zero before and after.
func appendBits(dst []byte, length int, src []byte, at, n int) []byte {
	dst = extendBits(dst, length+n)
	if n > 64 {
		bitutil.CopyBitmap(src, at, n, dst, length)
		return dst
	}
	for i := range n {
		if bitutil.BitIsSet(src, at+i) {
			bitutil.SetBit(dst, length+i)
		}
	}
	return dst
}

// appendOnes adds n set bits behind the length bits of dst.
func appendOnes(dst []byte, length, n int) []byte {
	dst = extendBits(dst, length+n)
	bitutil.SetBitsTo(dst, int64(length), int64(n), true)
	return dst
}

// extendBits makes dst long enough for the given bits; new bytes are zero.
func extendBits(dst []byte, bits int) []byte {
	grow := int(bitutil.BytesForBits(int64(bits))) - len(dst)
	if grow <= 0 {
		return dst
	}
	dst = slices.Grow(dst, grow)
	tail := dst[len(dst) : len(dst)+grow]
	clear(tail)
	return dst[:len(dst)+grow]
}
