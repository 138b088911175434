package wal

import (
	"fmt"
	"unicode/utf8"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/bitutil"
	"github.com/apache/arrow/go/v17/arrow/memory"
)

// columnsReader rebuilds a record from its stored nodes and buffers. The
// record's buffers are slices of body, packed ones excepted, and everything an
// Arrow accessor will trust later is checked here.
type columnsReader struct {
	header *cursor // nulls of each node, size of each buffer
	body   *cursor
	packed *unpacked // nil in a value that has no packed buffers
}

// unpacked counts what the packed buffers of a value hold.
type unpacked struct{ bytes int }

func (u *unpacked) size() int64 {
	if u == nil {
		return 0
	}
	return int64(u.bytes)
}

// record reads the columns of one table.
func (r *columnsReader) record(s *arrow.Schema, rows int) (arrow.Record, error) {
	shapes, err := shapesOf(s)
	if err != nil {
		return nil, err
	}
	cols := make([]arrow.Array, 0, len(shapes))
	defer func() {
		for _, col := range cols {
			col.Release()
		}
	}()
	for i, sh := range shapes {
		data, err := r.node(sh, s.Field(i).Type, rows)
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", s.Field(i).Name, err)
		}
		cols = append(cols, array.MakeFromData(data))
		data.Release()
	}
	return array.NewRecord(s, cols, int64(rows)), nil
}

// node reads one node of n values and its children.
func (r *columnsReader) node(s *shape, dt arrow.DataType, n int) (arrow.ArrayData, error) {
	nulls := r.header.bounded("nulls", n)
	if r.header.err != nil {
		return nil, r.header.err
	}
	validity, err := r.validity(n, nulls)
	if err != nil {
		return nil, err
	}
	buffers := []*memory.Buffer{validity}
	children, last := []arrow.ArrayData(nil), 0
	switch s.layout {
	case layoutBits:
		buffers = append(buffers, r.buffer("bits", int(bitutil.BytesForBits(int64(n)))))
	case layoutFixed:
		buffers = append(buffers, r.buffer("values", n*s.width))
	case layoutVar32, layoutVar64, layoutList32, layoutList64:
		buffers, last, err = r.offsets(s, buffers, n)
	}
	if err == nil {
		err = r.fault()
	}
	if err == nil && len(s.children) > 0 {
		children, err = r.children(s, dt, n, last)
	}
	if err != nil {
		return nil, err
	}
	data := array.NewData(dt, n, buffers, children, nulls, 0)
	releaseAll(children)
	return data, nil
}

func (r *columnsReader) fault() error {
	if r.header.err != nil {
		return r.header.err
	}
	return r.body.err
}

// left bounds the buffers that the rest of the body can hold.
func (r *columnsReader) left() int {
	if r.packed == nil {
		return r.body.left()
	}
	return min(MaxEntryBytes, (r.body.left()/minCopy+1)*maxUnpack)
}

// buffer reads a buffer that must have exactly want bytes.
func (r *columnsReader) buffer(what string, want int) *memory.Buffer {
	size, block := r.header.bounded(what+" size", r.left()), 0
	if r.packed != nil {
		block = r.header.bounded(what+" packed size", r.body.left())
	}
	if r.header.err == nil && size != want {
		r.header.fail("%s: %d bytes, want %d", what, size, want)
	}
	if r.header.err != nil {
		return nil
	}
	if block == 0 {
		return memory.NewBufferBytes(r.take(what, size))
	}
	data := r.take(what, block)
	if r.body.err != nil {
		return nil
	}
	if r.packed.bytes += size; r.packed.bytes > MaxEntryBytes {
		r.header.fail("%s: more than %d bytes in packed buffers", what, MaxEntryBytes)
		return nil
	}
	out, err := unpack(data, size)
	if err != nil {
		r.header.fail("%s: %w", what, err)
		return nil
	}
	return memory.NewBufferBytes(out)
}

// take reads size bytes and the padding behind them, which must be zero.
func (r *columnsReader) take(what string, size int) []byte {
	data := r.body.bytes(what, size)
	for _, b := range r.body.bytes(what+" padding", padded(size)-size) {
		if b != 0 {
			r.body.fail("%s: padding is not zero", what)
		}
	}
	return data
}

func (r *columnsReader) validity(n, nulls int) (*memory.Buffer, error) {
	if nulls == 0 {
		return nil, nil
	}
	bits := r.buffer("validity", int(bitutil.BytesForBits(int64(n))))
	if err := r.fault(); err != nil {
		return nil, err
	}
	if got := n - bitutil.CountSetBits(bits.Bytes(), 0, n); got != nulls {
		return nil, fmt.Errorf("%d nulls, bitmap has %d", nulls, got)
	}
	return bits, nil
}

// offsets reads the offsets of n values and, of a variable-width node, its
// bytes. It gives the last offset.
func (r *columnsReader) offsets(s *shape, buffers []*memory.Buffer, n int) ([]*memory.Buffer, int, error) {
	want := (n + 1) * s.offsetWidth()
	if n == 0 {
		want = 0
	}
	buf := r.buffer("offsets", want)
	if err := r.fault(); err != nil {
		return nil, 0, err
	}
	last, err := s.checkOffsets(buf.Bytes(), n)
	if err != nil {
		return nil, 0, err
	}
	buffers = append(buffers, buf)
	if s.layout == layoutList32 || s.layout == layoutList64 {
		return buffers, last, nil
	}
	values := r.buffer("bytes", last)
	if err := r.fault(); err != nil {
		return nil, 0, err
	}
	if s.utf8 && !s.validText(buf.Bytes(), values.Bytes(), n) {
		return nil, 0, fmt.Errorf("text is not UTF-8")
	}
	return append(buffers, values), last, nil
}

func (r *columnsReader) children(s *shape, dt arrow.DataType, n, last int) ([]arrow.ArrayData, error) {
	count := n
	switch s.layout {
	case layoutList32, layoutList64:
		count = last
	case layoutFixedList:
		count = n * s.width
	}
	if s.layout != layoutStruct && count > maxListValues(r.left(), s.children[0]) {
		return nil, fmt.Errorf("%d list values in %d bytes", count, r.left())
	}
	var out []arrow.ArrayData
	for i, child := range s.children {
		data, err := r.node(child, childType(dt, i), count)
		if err != nil {
			releaseAll(out)
			return nil, err
		}
		out = append(out, data)
	}
	return out, nil
}

// maxListValues bounds how many values of a child left bytes can hold. A struct
// without columns takes no bytes, so it is bounded as if it took one bit.
func maxListValues(left int, child *shape) int {
	if child.layout == layoutFixed && child.width > 0 {
		return left / child.width
	}
	return (left + 1) * 8
}

func childType(dt arrow.DataType, i int) arrow.DataType {
	switch t := dt.(type) {
	case *arrow.StructType:
		return t.Field(i).Type
	case arrow.ListLikeType:
		return t.Elem()
	}
	return arrow.Null
}

// checkOffsets checks n+1 offsets (none for n = 0): from 0, never decreasing.
// It gives the last.
func (s *shape) checkOffsets(buf []byte, n int) (int, error) {
	if n == 0 {
		return 0, nil
	}
	last := s.offset(buf, 0)
	if last != 0 {
		return 0, fmt.Errorf("first offset is %d", last)
	}
	for i := 1; i <= n; i++ {
		next := s.offset(buf, i)
		if next < last {
			return 0, fmt.Errorf("offset %d decreases to %d", i, next)
		}
		last = next
	}
	return int(last), nil
}

// validText tells whether the bytes are UTF-8 and no offset splits a rune.
func (s *shape) validText(offsets, text []byte, n int) bool {
	if !utf8.Valid(text) {
		return false
	}
	for i := range n {
		at := s.offset(offsets, i)
		if at < int64(len(text)) && !utf8.RuneStart(text[at]) {
			return false
		}
	}
	return true
}

func releaseAll(data []arrow.ArrayData) {
	for _, d := range data {
		d.Release()
	}
}
