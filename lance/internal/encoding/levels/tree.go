package levels

import (
	"github.com/apache/arrow/go/v17/arrow"

	"github.com/foldline/foldline/lance/internal/encoding"
)

// Tree is a top-level field taken apart into its leaves.
type Tree struct {
	Field arrow.Field
	root  *node
	// Nodes is the number of fields of the tree, itself included; they are numbered in pre-order.
	Nodes int
	// Leaves stand in pre-order; they are the field's columns from version 2.1 on.
	Leaves []LeafPath
}

// LeafPath is a leaf of a Tree.
type LeafPath struct {
	// Name is the dotted path of the leaf, for messages.
	Name  string
	Path  *Path
	Type  encoding.Type
	nodes []*node // outermost first; the last is the leaf
}

type nodeKind uint8

const (
	leafNode nodeKind = iota
	structNode
	listNode
)

type node struct {
	kind     nodeKind
	typ      arrow.DataType
	children []*node
	// leaf is the index of the first leaf at or below the node, leaves their number.
	leaf, leaves int
	// depth counts the nodes above.
	depth int
	// number counts the nodes before it in pre-order.
	number int
}

// NewTree takes a field apart. Errors wrap encoding.ErrUnsupported and name the field.
func NewTree(f arrow.Field) (*Tree, error) {
	t := &Tree{Field: f}
	root, err := t.add(f, f.Name, nil)
	t.root = root
	return t, err
}

func (t *Tree) add(f arrow.Field, name string, above []*node) (*node, error) {
	if len(above) >= MaxLayers {
		return nil, encoding.Unsupportedf("field %q: nested deeper than %d", name, MaxLayers)
	}
	n := &node{typ: f.Type, leaf: len(t.Leaves), depth: len(above), number: t.Nodes}
	t.Nodes++
	path := append(above[:len(above):len(above)], n)
	var children []arrow.Field
	switch typ := f.Type.(type) {
	case *arrow.StructType:
		n.kind, children = structNode, typ.Fields()
		if len(children) == 0 {
			return nil, encoding.Unsupportedf("field %q: a struct without fields", name)
		}
	case *arrow.ListType:
		n.kind, children = listNode, []arrow.Field{typ.ElemField()}
	case *arrow.LargeListType:
		n.kind, children = listNode, []arrow.Field{typ.ElemField()}
	default:
		return n, t.addLeaf(f, name, path)
	}
	for _, c := range children {
		child, err := t.add(c, name+"."+c.Name, path)
		if err != nil {
			return nil, err
		}
		n.children = append(n.children, child)
	}
	n.leaves = len(t.Leaves) - n.leaf
	return n, nil
}

func (t *Tree) addLeaf(f arrow.Field, name string, path []*node) error {
	typ, err := encoding.TypeOf(f.Type)
	if err != nil {
		return encoding.Unsupportedf("field %q: type %s", name, f.Type)
	}
	path[len(path)-1].leaves = 1
	kinds := make([]Kind, len(path))
	for i, n := range path {
		if n.kind == listNode {
			kinds[len(path)-1-i] = List
		}
	}
	t.Leaves = append(t.Leaves, LeafPath{Name: name, Path: NewPath(kinds), Type: typ, nodes: path})
	return nil
}

// layer is the node's index in the path of a leaf below it.
func (n *node) layer(p *Path) int { return p.Layers() - 1 - n.depth }

// Step is one layer of the way from the outside to a leaf.
type Step struct {
	// Node is the pre-order number of the layer's field.
	Node int
	Kind Kind
	// Null is the canonical definition level of a null here; for a list, an empty one is one more.
	Null uint16
	// ItemRep is, for a list, the repetition level of its items but the first.
	ItemRep uint16
}

// Steps lists the layers from the outside; the last is the leaf.
func (l *LeafPath) Steps() []Step {
	steps := make([]Step, len(l.nodes))
	for depth, n := range l.nodes {
		layer := n.layer(l.Path)
		steps[depth] = Step{Node: n.number, Kind: l.Path.kinds[layer], Null: l.Path.null[layer]}
		if steps[depth].Kind == List {
			steps[depth].ItemRep = l.Path.lists[layer] - 1
		}
	}
	return steps
}
