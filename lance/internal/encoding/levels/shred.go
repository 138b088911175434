package levels

import (
	"fmt"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"

	"github.com/foldline/foldline/lance/internal/encoding"
)

// Shred appends the rows [from, to) of arr, whose type is the tree's, to the leaves. Null slots are zeroed, so
// that what a caller left under a null does not reach a file.
func (t *Tree) Shred(arr arrow.Array, from, to int, out []*encoding.Leaf) error {
	for i := range t.Leaves {
		var err error
		if t.Leaves[i].Path.HasLists() {
			err = t.Leaves[i].shredNested(arr, from, to, out[i])
		} else {
			err = t.Leaves[i].shredFlat(arr, from, to, out[i])
		}
		if err != nil {
			return fmt.Errorf("field %q: %w", t.Leaves[i].Name, err)
		}
	}
	return nil
}

// child is the array below arr on the way to a leaf; rows keep their positions below a struct, and list
// offsets point into it below a list.
func (l *LeafPath) child(arr arrow.Array, depth int) arrow.Array {
	switch a := arr.(type) {
	case *array.Struct:
		for i, c := range l.nodes[depth].children {
			if c == l.nodes[depth+1] {
				return a.Field(i)
			}
		}
	case array.ListLike:
		return a.ListValues()
	}
	return arr
}

// shredFlat handles paths without lists: every row has one entry and one slot.
func (l *LeafPath) shredFlat(arr arrow.Array, from, to int, out *encoding.Leaf) error {
	var def []uint16
	a := arr
	for depth := range l.nodes {
		if depth > 0 {
			a = l.child(a, depth-1)
		}
		def = markNulls(def, a, from, to, l.Path.null[len(l.nodes)-1-depth])
	}
	src, err := newSource(a, out.Values.Type)
	if err != nil {
		return err
	}
	if err := src.appendSlots(out.Values, from, to, def); err != nil {
		return err
	}
	out.AppendEntries(to-from, nil, def)
	return nil
}

// markNulls writes level where a is null and no outer layer is; it makes def when it is first needed.
func markNulls(def []uint16, a arrow.Array, from, to int, level uint16) []uint16 {
	if a.NullN() == 0 {
		return def
	}
	if def == nil {
		def = make([]uint16, to-from)
	}
	all := a.DataType().ID() == arrow.NULL
	for i := from; i < to; i++ {
		if def[i-from] == 0 && (all || a.IsNull(i)) {
			def[i-from] = level
		}
	}
	return def
}

// Entries are the level entries of a path at one depth, before its leaf is reached.
type Entries struct {
	Rep, Def []uint16
	// Index is the position in the array of that depth, -1 below a null or an empty list.
	Index []int
}

// Add appends an entry.
func (e *Entries) Add(rep, def uint16, index int) {
	e.Rep, e.Def, e.Index = append(e.Rep, rep), append(e.Def, def), append(e.Index, index)
}

// AddItems appends the items [start, end) of a list whose own entry was (rep, index ≥ 0).
func (e *Entries) AddItems(rep, itemRep uint16, start, end int) {
	for i := start; i < end; i++ {
		e.Add(rep, 0, i)
		rep = itemRep
	}
}

// shredNested handles paths with lists, layer by layer from the outside.
func (l *LeafPath) shredNested(arr arrow.Array, from, to int, out *encoding.Leaf) error {
	e := &Entries{}
	for i := from; i < to; i++ {
		e.Add(l.Path.MaxRep(), 0, i)
	}
	a := arr
	for depth := range l.nodes {
		layer := len(l.nodes) - 1 - depth
		if depth > 0 {
			a = l.child(a, depth-1)
		}
		if list, ok := a.(array.ListLike); ok && l.Path.kinds[layer] == List {
			e = e.expand(list, l.Path.null[layer], l.Path.lists[layer]-1)
			continue
		}
		e.mark(a, l.Path.null[layer])
	}
	src, err := newSource(a, out.Values.Type)
	if err != nil {
		return err
	}
	if err := src.appendEntries(out.Values, e, l.Path.MaxVisible()); err != nil {
		return err
	}
	out.AppendEntries(len(e.Rep), e.Rep, e.Def)
	return nil
}

func (e *Entries) mark(a arrow.Array, level uint16) {
	if a.NullN() == 0 {
		return
	}
	all := a.DataType().ID() == arrow.NULL
	for i, at := range e.Index {
		if at >= 0 && (all || a.IsNull(at)) {
			e.Def[i], e.Index[i] = level, -1
		}
	}
}

// expand replaces each list by its items, or by one placeholder when it is null or empty. Items but the first
// carry the repetition level rep.
func (e *Entries) expand(list array.ListLike, null, rep uint16) *Entries {
	out := &Entries{}
	for i, at := range e.Index {
		switch {
		case at < 0:
			out.Add(e.Rep[i], e.Def[i], -1)
		case list.IsNull(at):
			out.Add(e.Rep[i], null, -1)
		default:
			start, end := list.ValueOffsets(at)
			if start == end {
				out.Add(e.Rep[i], null+1, -1)
				continue
			}
			out.AddItems(e.Rep[i], rep, int(start), int(end))
		}
	}
	return out
}
