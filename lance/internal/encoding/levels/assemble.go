package levels

import (
	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/bitutil"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/foldline/foldline/lance/internal/encoding"
)

// Assemble builds the array of rows rows from the leaves and takes their memory over. A nil leaf is one that
// the file does not have: it reads as null. Leaves that contradict each other give a CorruptError.
func (t *Tree) Assemble(leaves []*encoding.Leaf, rows int, mem memory.Allocator) (arrow.Array, error) {
	a := &assembler{tree: t, leaves: leaves, mem: mem}
	data, err := a.build(t.root, rows)
	if err != nil {
		return nil, err
	}
	defer data.Release()
	return array.MakeFromData(data), nil
}

type assembler struct {
	tree   *Tree
	leaves []*encoding.Leaf
	mem    memory.Allocator
}

// build makes the array of n instances of a node.
func (a *assembler) build(nd *node, n int) (*array.Data, error) {
	leaf := -1
	for i := nd.leaf; i < nd.leaf+nd.leaves && leaf < 0; i++ {
		if a.leaves[i] != nil {
			leaf = i
		}
	}
	if leaf < 0 {
		return nullData(nd.typ, n, a.mem), nil
	}
	path := a.tree.Leaves[leaf].Path
	layer := nd.layer(path)
	switch nd.kind {
	case structNode:
		valid, nulls, err := a.validity(a.leaves[leaf], path, layer, n)
		if err != nil {
			return nil, err
		}
		return a.buildStruct(nd, n, valid, nulls)
	case listNode:
		return a.buildList(nd, a.leaves[leaf], path, layer, n)
	}
	valid, nulls, err := a.validity(a.leaves[leaf], path, layer, n)
	if err != nil {
		return nil, err
	}
	if got := a.leaves[leaf].Values.Len; got != n {
		release(valid)
		return nil, encoding.Corruptf("%d values, levels speak of %d", got, n)
	}
	return leafData(nd.typ, a.leaves[leaf].Values, valid, nulls, a.mem)
}

func release(b *memory.Buffer) {
	if b != nil {
		b.Release()
	}
}

func (a *assembler) buildStruct(nd *node, n int, valid *memory.Buffer, nulls int) (*array.Data, error) {
	defer release(valid)
	children := make([]arrow.ArrayData, 0, len(nd.children))
	defer func() {
		for _, c := range children {
			c.Release()
		}
	}()
	for _, c := range nd.children {
		child, err := a.build(c, n)
		if err != nil {
			return nil, err
		}
		children = append(children, child)
	}
	return array.NewData(nd.typ, n, []*memory.Buffer{valid}, children, nulls, 0), nil
}

// validity tells which of the n instances of an item layer are valid; nil when all are.
func (a *assembler) validity(leaf *encoding.Leaf, p *Path, layer, n int) (*memory.Buffer, int, error) {
	if !p.HasLists() {
		return a.flatValidity(leaf, p.null[layer], n)
	}
	bits := memory.NewResizableBuffer(a.mem)
	bits.Resize((n + 7) / 8)
	clear(bits.Bytes())
	null, limit, lists := p.null[layer], p.limit[layer], p.lists[layer]
	at, valid := 0, 0
	for i, rep := range leaf.Rep {
		def := uint16(0)
		if len(leaf.Def) > 0 {
			def = leaf.Def[i]
		}
		if rep < lists || def > limit {
			continue
		}
		if at == n {
			at++
			break
		}
		if def < null {
			bits.Bytes()[at/8] |= 1 << (at % 8)
			valid++
		}
		at++
	}
	if at != n {
		bits.Release()
		return nil, 0, encoding.Corruptf("levels give more or fewer than %d values", n)
	}
	if valid == n {
		bits.Release()
		return nil, 0, nil
	}
	return bits, n - valid, nil
}

// flatValidity is validity for paths without lists: entry i is instance i.
func (a *assembler) flatValidity(leaf *encoding.Leaf, null uint16, n int) (*memory.Buffer, int, error) {
	if leaf.Entries != n {
		return nil, 0, encoding.Corruptf("%d level entries for %d values", leaf.Entries, n)
	}
	if len(leaf.Def) == 0 || n == 0 {
		return nil, 0, nil
	}
	bits := memory.NewResizableBuffer(a.mem)
	bits.Resize((n + 7) / 8)
	out := bits.Bytes()
	valid := 0
	for i := range out {
		var b byte
		for j, d := range leaf.Def[i*8 : min(i*8+8, n)] {
			if d < null {
				b |= 1 << j
				valid++
			}
		}
		out[i] = b
	}
	if valid == n {
		bits.Release()
		return nil, 0, nil
	}
	return bits, n - valid, nil
}

func (a *assembler) buildList(nd *node, leaf *encoding.Leaf, p *Path, layer, n int) (*array.Data, error) {
	l, err := scanLists(leaf, p, layer, n, nd.typ.ID() == arrow.LARGE_LIST, a.mem)
	if err != nil {
		return nil, err
	}
	defer l.release()
	child, err := a.build(nd.children[0], l.items)
	if err != nil {
		return nil, err
	}
	defer child.Release()
	var valid *memory.Buffer
	if l.nulls > 0 {
		valid = l.valid
	}
	return array.NewData(nd.typ, n, []*memory.Buffer{valid, l.offsets}, []arrow.ArrayData{child}, l.nulls, 0), nil
}

// lists are the offsets and validity of a list layer.
type lists struct {
	offsets, valid *memory.Buffer
	nulls, items   int
}

func (l *lists) release() { l.offsets.Release(); l.valid.Release() }

// scanLists finds the n lists of a layer in the levels.
func scanLists(leaf *encoding.Leaf, p *Path, layer, n int, large bool, mem memory.Allocator) (*lists, error) {
	l := &lists{offsets: memory.NewResizableBuffer(mem), valid: memory.NewResizableBuffer(mem)}
	l.valid.Resize((n + 7) / 8)
	clear(l.valid.Bytes())
	var found bool
	if large {
		l.offsets.Resize((n + 1) * 8)
		found = l.scan(leaf, p, layer, n, func(i int) { encoding.Cast[int64](l.offsets.Bytes())[i] = int64(l.items) })
	} else {
		l.offsets.Resize((n + 1) * 4)
		offsets := encoding.Cast[int32](l.offsets.Bytes())
		found = l.scan(leaf, p, layer, n, func(i int) { offsets[i] = int32(l.items) })
	}
	if !found {
		l.release()
		return nil, encoding.Corruptf("levels give more or fewer than %d lists", n)
	}
	return l, nil
}

// scan visits the entries; push(i) records the offset of list i. It reports whether exactly n lists were met.
func (l *lists) scan(leaf *encoding.Leaf, p *Path, layer, n int, push func(i int)) bool {
	null, limit, count := p.null[layer], p.limit[layer], p.lists[layer]
	at := 0
	for i, rep := range leaf.Rep {
		def := uint16(0)
		if len(leaf.Def) > 0 {
			def = leaf.Def[i]
		}
		if def > limit {
			continue
		}
		if rep >= count {
			if at == n {
				return false
			}
			push(at)
			if def < null || def == null+1 {
				bitutil.SetBit(l.valid.Bytes(), at)
			} else {
				l.nulls++
			}
			at++
		}
		if def < null && rep+1 >= count {
			l.items++
		}
	}
	if at != n {
		return false
	}
	push(n)
	return true
}
