package file

import (
	"fmt"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/foldline/foldline/lance/internal/encoding"
	"github.com/foldline/foldline/lance/internal/encoding/levels"
	"github.com/foldline/foldline/lance/internal/encoding/v20"
	"github.com/foldline/foldline/lance/internal/pb"
)

// treeWriter writes a top-level field of a file of version 2.0, where every field is a column: a struct's is empty, a list's holds
// the ends of its lists, whose items are the rows of the columns below.
type treeWriter struct {
	root *node20
	// nodes are the fields in pre-order, which is the order of their columns.
	nodes []*node20
}

// node20 is one field and its column.
type node20 struct {
	name     string
	metadata *pb.ColumnMetadata
	children []*node20

	// leaf is what a field without children has: itself, as a tree of its own, and the values of the page to come.
	leaf *levels.Tree
	data []*encoding.Leaf

	// list tells lists from structs.
	list bool
	// ends and nulls are the lists of the page to come; items counts their items.
	ends  []uint64
	nulls []bool
	items uint64
	// rows of a struct, over the whole file: it has one page.
	rows int
}

func newTreeWriter(f arrow.Field) (*treeWriter, error) {
	// The tree of later versions refuses the same types.
	if _, err := levels.NewTree(f); err != nil {
		return nil, err
	}
	t := &treeWriter{}
	var err error
	t.root, err = t.add(f, f.Name)
	return t, err
}

func (t *treeWriter) add(f arrow.Field, name string) (*node20, error) {
	enc, err := columnEncoding()
	if err != nil {
		return nil, err
	}
	n := &node20{name: name, metadata: &pb.ColumnMetadata{Encoding: enc}}
	t.nodes = append(t.nodes, n)
	var children []arrow.Field
	switch typ := f.Type.(type) {
	case *arrow.StructType:
		children = typ.Fields()
	case *arrow.ListType:
		n.list, children = true, []arrow.Field{typ.ElemField()}
	case *arrow.LargeListType:
		n.list, children = true, []arrow.Field{typ.ElemField()}
	default:
		if n.leaf, err = levels.NewTree(f); err != nil {
			return nil, err
		}
		if err := writable20(f.Type, n.leaf.Leaves[0].Type); err != nil {
			return nil, fmt.Errorf("field %q: %w", name, err)
		}
		n.data = []*encoding.Leaf{encoding.NewLeaf(n.leaf.Leaves[0].Type, memory.DefaultAllocator)}
		return n, nil
	}
	for _, c := range children {
		child, err := t.add(c, name+"."+c.Name)
		if err != nil {
			return nil, err
		}
		n.children = append(n.children, child)
	}
	return n, nil
}

// writable20 refuses the leaves that this package does not lay out in version 2.0, before anything is written.
func writable20(t arrow.DataType, physical encoding.Type) error {
	if list, ok := t.(*arrow.FixedSizeListType); ok && list.Elem().ID() == arrow.FIXED_SIZE_LIST {
		return encoding.Unsupportedf("type %s in a file of version 2.0", t)
	}
	if physical.IndexBits > 0 && physical.Kind != encoding.Bytes {
		return encoding.Unsupportedf("type %s in a file of version 2.0", t)
	}
	return nil
}

func (t *treeWriter) write(w *Writer, arr arrow.Array) error {
	for from := 0; from < arr.Len(); {
		to := rowsWithin(arr, from, max(w.opts.PageBytes-t.root.largest(), minStepBytes))
		if err := t.root.append(arr, from, to); err != nil {
			return err
		}
		from = to
		if err := t.flush(w, w.opts.PageBytes); err != nil {
			return err
		}
	}
	return nil
}

func (t *treeWriter) flush(w *Writer, least int64) error { return t.root.flush(w, least) }

// finish writes the page of each struct.
func (t *treeWriter) finish(w *Writer) error {
	if err := t.flush(w, 0); err != nil {
		return err
	}
	for _, n := range t.nodes {
		if n.leaf == nil && !n.list && n.rows > 0 {
			if err := n.writePage(w, v20.EncodeStructs(n.rows)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *treeWriter) columns() []*pb.ColumnMetadata {
	out := make([]*pb.ColumnMetadata, len(t.nodes))
	for i, n := range t.nodes {
		out[i] = n.metadata
	}
	return out
}

func (t *treeWriter) release() {
	for _, n := range t.nodes {
		for _, d := range n.data {
			d.Release()
		}
	}
}

// append takes the values [from, to) of arr in.
func (n *node20) append(arr arrow.Array, from, to int) error {
	switch {
	case n.leaf != nil:
		return n.leaf.Shred(arr, from, to, n.data)
	case n.list:
		return n.appendLists(arr.(array.ListLike), from, to)
	}
	s := arr.(*array.Struct)
	if s.NullN() > 0 {
		for i := from; i < to; i++ {
			if s.IsNull(i) {
				return encoding.Unsupportedf("field %q, value %d: a null struct, which files of version 2.0 cannot hold", n.name, i)
			}
		}
	}
	n.rows += to - from
	for i, c := range n.children {
		if err := c.append(s.Field(i), from, to); err != nil {
			return err
		}
	}
	return nil
}

// appendLists takes the items of neighbouring lists in together. What stands under a null list is left out.
func (n *node20) appendLists(lists array.ListLike, from, to int) error {
	items, start, end := lists.ListValues(), int64(0), int64(0)
	for i := from; i < to; i++ {
		isNull := lists.IsNull(i)
		if isNull && n.nulls == nil {
			n.nulls = make([]bool, len(n.ends), cap(n.ends))
		}
		if !isNull {
			first, last := lists.ValueOffsets(i)
			if first != end {
				if err := n.appendItems(items, start, end); err != nil {
					return err
				}
				start = first
			}
			end = last
			n.items += uint64(last - first)
		}
		n.ends = append(n.ends, n.items)
		if n.nulls != nil {
			n.nulls = append(n.nulls, isNull)
		}
	}
	return n.appendItems(items, start, end)
}

func (n *node20) appendItems(items arrow.Array, from, to int64) error {
	if from == to {
		return nil
	}
	return n.children[0].append(items, int(from), int(to))
}

// largest is what the fullest column at or below the node holds for its next page, in bytes.
func (n *node20) largest() int64 {
	bytes := int64(len(n.ends)*8 + len(n.nulls))
	for _, d := range n.data {
		bytes += int64(d.Values.Bytes() + 2*len(d.Def))
	}
	for _, c := range n.children {
		bytes = max(bytes, c.largest())
	}
	return bytes
}

// flush writes the columns that hold at least so many bytes. The pages of lists and of their items are cut at the same place, as
// the format wants it.
func (n *node20) flush(w *Writer, least int64) error {
	if n.list {
		if n.largest() < least {
			return nil
		}
		least = 0
	}
	if err := n.flushOwn(w, least); err != nil {
		return err
	}
	for _, c := range n.children {
		if err := c.flush(w, least); err != nil {
			return err
		}
	}
	return nil
}

// flushOwn writes the node's own page.
func (n *node20) flushOwn(w *Writer, least int64) error {
	if len(n.ends) > 0 {
		page := v20.EncodeLists(n.ends, n.nulls)
		if err := n.writePage(w, page); err != nil {
			return err
		}
		n.ends, n.nulls, n.items = n.ends[:0], nil, 0
	}
	if n.leaf == nil || n.data[0].Entries == 0 || n.largest() < least {
		return nil
	}
	pages, err := v20.EncodeLeaf(n.data[0])
	if err != nil {
		return fmt.Errorf("field %q: %w", n.name, err)
	}
	for _, p := range pages {
		if err := n.writePage(w, p); err != nil {
			return err
		}
	}
	n.data[0].Reset()
	return nil
}

func (n *node20) writePage(w *Writer, p v20.Encoded) error {
	enc, err := directEncoding(urlArray, p.Encoding)
	if err != nil {
		return err
	}
	return w.writePage(n.metadata, &pb.ColumnMetadata_Page{Length: uint64(p.Rows), Encoding: enc}, p.Buffers)
}
