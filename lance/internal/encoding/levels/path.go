package levels

import (
	"math"

	"github.com/foldline/foldline/lance/internal/encoding"
	"github.com/foldline/foldline/lance/internal/pb/pb21"
)

// Kind tells what a layer of a path is.
type Kind uint8

const (
	// Item is a leaf or a struct.
	Item Kind = iota
	// List is a list of any offset width.
	List
)

// Path is the way from a leaf outward to its top-level field. Layer 0 is the leaf.
type Path struct {
	kinds []Kind
	// null is the canonical definition level of a null at each layer; a list's empty level is one more.
	null []uint16
	// limit is the highest canonical level at which the layer still has an instance. Above it, an outer list is
	// null or empty.
	limit []uint16
	// lists counts the list layers at or inside each layer.
	lists []uint16
}

// NewPath makes a path from its layers, leaf first.
func NewPath(kinds []Kind) *Path {
	n := len(kinds)
	p := &Path{kinds: kinds, null: make([]uint16, n), limit: make([]uint16, n), lists: make([]uint16, n)}
	level, lists := uint16(0), uint16(0)
	for i, k := range kinds {
		p.null[i] = level + 1
		level++
		if k == List {
			level++
			lists++
		}
		p.lists[i] = lists
	}
	limit := level
	for i := n - 1; i >= 0; i-- {
		p.limit[i] = limit
		if kinds[i] == List {
			limit = p.null[i] - 1
		}
	}
	return p
}

// Layers is the number of layers.
func (p *Path) Layers() int { return len(p.kinds) }

// MaxRep is the repetition level that begins a row: the number of lists.
func (p *Path) MaxRep() uint16 { return p.lists[len(p.lists)-1] }

// MaxDef is the highest canonical definition level.
func (p *Path) MaxDef() uint16 { return p.limit[len(p.limit)-1] }

// MaxVisible is the highest canonical definition level whose entry owns a value slot.
func (p *Path) MaxVisible() uint16 { return p.limit[0] }

// HasLists reports whether the path needs repetition levels.
func (p *Path) HasLists() bool { return p.MaxRep() > 0 }

// NullableAboveList reports whether layers of a page put nulls on an item that encloses a list. The engine
// misreads full-zip pages of that kind.
func NullableAboveList(layers []pb21.RepDefLayer) bool {
	inList := false
	for _, l := range layers {
		switch l {
		case pb21.RepDefLayer_NULLABLE_ITEM:
			if inList {
				return true
			}
		case pb21.RepDefLayer_ALL_VALID_ITEM:
		default:
			inList = true
		}
	}
	return false
}

// FromPage returns the table from a page's definition levels to canonical ones, given the page's layers. The
// table is never empty; its last index is the page's highest level.
func (p *Path) FromPage(layers []pb21.RepDefLayer) ([]uint16, error) {
	if len(layers) != len(p.kinds) {
		return nil, encoding.Corruptf("%d layers, the type has %d", len(layers), len(p.kinds))
	}
	table := []uint16{0}
	for i, l := range layers {
		null := p.null[i]
		list := true
		switch l {
		case pb21.RepDefLayer_ALL_VALID_ITEM:
			list = false
		case pb21.RepDefLayer_NULLABLE_ITEM:
			list = false
			table = append(table, null)
		case pb21.RepDefLayer_ALL_VALID_LIST:
		case pb21.RepDefLayer_NULLABLE_LIST:
			table = append(table, null)
		case pb21.RepDefLayer_EMPTYABLE_LIST:
			table = append(table, null+1)
		case pb21.RepDefLayer_NULL_AND_EMPTY_LIST:
			table = append(table, null, null+1)
		default:
			return nil, encoding.Unsupportedf("layer kind %d", l)
		}
		if list != (p.kinds[i] == List) {
			return nil, encoding.Corruptf("layer %d is %s, the type says otherwise", i, l)
		}
	}
	return table, nil
}

// ToPage finds the layers that the canonical levels of a page need and the table from canonical levels to the
// page's. levels is the number of page levels beyond 0; with 0 the page needs no definition levels.
func (p *Path) ToPage(def []uint16) (layers []pb21.RepDefLayer, table []uint16, levels int) {
	present := make([]bool, p.MaxDef()+1)
	for _, d := range def {
		present[d] = true
	}
	layers = make([]pb21.RepDefLayer, len(p.kinds))
	table = make([]uint16, p.MaxDef()+1)
	next := func(canonical uint16) bool {
		if !present[canonical] {
			return false
		}
		levels++
		table[canonical] = uint16(levels)
		return true
	}
	for i, k := range p.kinds {
		null := next(p.null[i])
		if k == Item {
			layers[i] = pb21.RepDefLayer_ALL_VALID_ITEM
			if null {
				layers[i] = pb21.RepDefLayer_NULLABLE_ITEM
			}
			continue
		}
		layers[i] = listLayer(null, next(p.null[i]+1))
	}
	return layers, table, levels
}

func listLayer(null, empty bool) pb21.RepDefLayer {
	switch {
	case null && empty:
		return pb21.RepDefLayer_NULL_AND_EMPTY_LIST
	case null:
		return pb21.RepDefLayer_NULLABLE_LIST
	case empty:
		return pb21.RepDefLayer_EMPTYABLE_LIST
	}
	return pb21.RepDefLayer_ALL_VALID_LIST
}

// MaxLayers bounds the nesting that levels of 16 bits and readers put up with.
const MaxLayers = math.MaxUint8
