package file

import (
	"encoding/binary"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/foldline/foldline/lance/internal/encoding"
	"github.com/foldline/foldline/lance/internal/encoding/levels"
	"github.com/foldline/foldline/lance/internal/encoding/structural"
	"github.com/foldline/foldline/lance/internal/pb"
)

// minStepBytes is the least that is shredded at a time, lest a nearly full page cost a step per row.
const minStepBytes = 64 << 10

// fieldWriter writes the columns of a top-level field.
type fieldWriter interface {
	// write takes all values of an array in, page by page.
	write(w *Writer, arr arrow.Array) error
	// finish writes what is still held.
	finish(w *Writer) error
	// columns are those of the field, in their order.
	columns() []*pb.ColumnMetadata
	release()
}

func newFieldWriter(f arrow.Field, v Version) (fieldWriter, error) {
	if v.structural() {
		return newLeavesWriter(f)
	}
	return newTreeWriter(f)
}

// leavesWriter holds the leaves of a top-level field until their pages are full.
type leavesWriter struct {
	tree   *levels.Tree
	leaves []*leafWriter
	data   []*encoding.Leaf
}

// leafWriter is one column of the file.
type leafWriter struct {
	path     *levels.LeafPath
	data     *encoding.Leaf
	pending  int   // rows in data
	written  int64 // rows in pages
	metadata *pb.ColumnMetadata
}

func newLeavesWriter(f arrow.Field) (*leavesWriter, error) {
	tree, err := levels.NewTree(f)
	if err != nil {
		return nil, err
	}
	c := &leavesWriter{tree: tree}
	for i := range tree.Leaves {
		enc, err := columnEncoding()
		if err != nil {
			return nil, err
		}
		leaf := &leafWriter{
			path: &tree.Leaves[i], data: encoding.NewLeaf(tree.Leaves[i].Type, memory.DefaultAllocator),
			metadata: &pb.ColumnMetadata{Encoding: enc},
		}
		c.leaves = append(c.leaves, leaf)
		c.data = append(c.data, leaf.data)
	}
	return c, nil
}

func (c *leavesWriter) write(w *Writer, arr arrow.Array) error {
	for from := 0; from < arr.Len(); {
		budget := max(w.opts.PageBytes-c.largest(), minStepBytes)
		to := rowsWithin(arr, from, budget)
		if err := c.tree.Shred(arr, from, to, c.data); err != nil {
			return err
		}
		for _, l := range c.leaves {
			l.pending += to - from
		}
		from = to
		if err := c.flush(w, w.opts.PageBytes); err != nil {
			return err
		}
	}
	return nil
}

// largest is what the fullest leaf holds.
func (c *leavesWriter) largest() int64 {
	n := int64(0)
	for _, l := range c.leaves {
		n = max(n, l.bytes())
	}
	return n
}

func (l *leafWriter) bytes() int64 {
	return int64(l.data.Values.Bytes() + 2*len(l.data.Rep) + 2*len(l.data.Def))
}

// flush writes the leaves that hold at least so many bytes.
func (c *leavesWriter) flush(w *Writer, least int64) error {
	for _, l := range c.leaves {
		if l.pending == 0 || l.bytes() < least {
			continue
		}
		pages, err := structural.Encode(l.path, l.data, l.pending, structural.Options{LargeChunks: w.opts.Version == V22})
		if err != nil {
			return err
		}
		for _, p := range pages {
			if err := l.writePage(w, p); err != nil {
				return err
			}
		}
		l.data.Reset()
		l.pending = 0
	}
	return nil
}

func (c *leavesWriter) finish(w *Writer) error { return c.flush(w, 0) }

func (c *leavesWriter) columns() []*pb.ColumnMetadata {
	out := make([]*pb.ColumnMetadata, len(c.leaves))
	for i, l := range c.leaves {
		out[i] = l.metadata
	}
	return out
}

func (c *leavesWriter) release() {
	for _, l := range c.leaves {
		l.data.Release()
	}
}

func (l *leafWriter) writePage(w *Writer, p structural.Encoded) error {
	enc, err := directEncoding(urlStructure, p.Layout)
	if err != nil {
		return err
	}
	page := &pb.ColumnMetadata_Page{Length: uint64(p.Rows), Encoding: enc, Priority: uint64(l.written)}
	l.written += int64(p.Rows)
	return w.writePage(l.metadata, page, p.Buffers)
}

// rowsWithin is the end of the longest run of rows from `from` on that takes about budget bytes, but at least
// one row.
func rowsWithin(arr arrow.Array, from int, budget int64) int {
	low, high := from+1, arr.Len()
	for low < high {
		mid := (low + high + 1) / 2
		if sliceBytes(arr, from, mid) <= budget {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return low
}

// sliceBytes estimates what the largest leaf of the rows [from, to) takes.
func sliceBytes(arr arrow.Array, from, to int) int64 {
	if from == to {
		return 0
	}
	n := int64(to - from)
	switch a := arr.(type) {
	case *array.Struct:
		most := n * 2
		for i := range a.NumField() {
			most = max(most, sliceBytes(a.Field(i), from, to))
		}
		return most
	case *array.FixedSizeList:
		t, err := encoding.TypeOf(a.DataType())
		if err != nil {
			return n
		}
		return n * int64(t.ValueBits()+7) / 8
	case array.ListLike:
		start, _ := a.ValueOffsets(from)
		_, end := a.ValueOffsets(to - 1)
		return n*4 + (end-start)*2 + sliceBytes(a.ListValues(), int(start), int(end))
	case valueOffsets:
		return n*10 + a.ValueOffset64(to-1) + int64(a.ValueLen(to-1)) - a.ValueOffset64(from)
	}
	if w, ok := arr.DataType().(arrow.FixedWidthDataType); ok {
		return n*2 + n*int64(w.BitWidth())/8
	}
	return n
}

// valueOffsets is what all arrays of strings and binaries have in common.
type valueOffsets interface {
	ValueOffset64(i int) int64
	ValueLen(i int) int
}

// position is where a message or buffer stands.
type position struct{ off, size int64 }

func (p position) append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, uint64(p.off))
	return binary.LittleEndian.AppendUint64(dst, uint64(p.size))
}
