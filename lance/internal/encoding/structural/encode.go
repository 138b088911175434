package structural

import (
	"encoding/binary"
	"errors"

	"github.com/foldline/foldline/lance/internal/encoding"
	"github.com/foldline/foldline/lance/internal/encoding/levels"
	"github.com/foldline/foldline/lance/internal/pb/pb21"
)

// wideBytes is the length of a value from which a page is full-zip.
const wideBytes = 256

// Encoded is a page ready to be written.
type Encoded struct {
	Layout  *pb21.PageLayout
	Buffers [][]byte
	Rows    int
}

// Options tunes Encode.
type Options struct {
	// LargeChunks writes the chunk form of version 2.2.
	LargeChunks bool
}

// Encode turns the rows of a leaf, at least one, into pages: one, unless the levels of so many rows do not fit
// a chunk. The values are read, not changed.
func Encode(leaf *levels.LeafPath, in *encoding.Leaf, rows int, opts Options) ([]Encoded, error) {
	layers, table, count := leaf.Path.ToPage(in.Def)
	p := &page{leaf: leaf, in: in, rows: rows, layers: layers, levels: count, opts: opts}
	if count > 0 {
		p.def = make([]uint16, len(in.Def))
		for i, d := range in.Def {
			p.def[i] = table[d]
		}
		p.maxVisible = table[0]
		for c, level := range table[:leaf.Path.MaxVisible()+1] {
			if c > 0 && level > 0 {
				p.maxVisible = level
			}
		}
	}
	if p.allNull() {
		return []Encoded{p.encodeNulls()}, nil
	}
	if p.wide() {
		return []Encoded{p.encodeFullZip()}, nil
	}
	out, err := p.encodeMiniBlock()
	switch {
	case err == nil:
		return []Encoded{out}, nil
	case !errors.Is(err, errChunkFull):
		return nil, err
	case rows == 1:
		return []Encoded{p.encodeFullZip()}, nil
	}
	return p.split()
}

// page is a page that is being encoded.
type page struct {
	leaf *levels.LeafPath
	in   *encoding.Leaf
	rows int
	opts Options

	layers []pb21.RepDefLayer
	// def has the page's own levels; nil when all entries are valid.
	def []uint16
	// levels is the highest of them; maxVisible the highest that owns a slot.
	levels     int
	maxVisible uint16
}

// visible reports whether entry i owns a slot.
func (p *page) visible(i int) bool { return p.def == nil || p.def[i] <= p.maxVisible }

func (p *page) allNull() bool {
	if p.def == nil {
		return false
	}
	for _, d := range p.def {
		if d == 0 {
			return false
		}
	}
	return true
}

// wide reports whether the page is to be full-zip. Where a null stands above a list the engine misreads such
// pages, and mini-block chunks hold wide values too.
func (p *page) wide() bool {
	t := p.leaf.Type
	if t.IndexBits > 0 || levels.NullableAboveList(p.layers) || t.Kind == encoding.Fixed && t.ValueBits()%8 != 0 {
		return false
	}
	if t.Kind == encoding.Fixed {
		return t.ValueBytes() >= wideBytes
	}
	return longestString(p.in.Values) >= wideBytes
}

func longestValue[T encoding.Offset](offsets []T) int {
	longest := T(0)
	for i := 1; i < len(offsets); i++ {
		longest = max(longest, offsets[i]-offsets[i-1])
	}
	return int(longest)
}

// encodeNulls makes the page of which no slot is valid; above a lone leaf the levels tell what is null.
func (p *page) encodeNulls() Encoded {
	layout := &pb21.ConstantLayout{Layers: p.layers}
	out := Encoded{Rows: p.rows, Layout: &pb21.PageLayout{Layout: &pb21.PageLayout_ConstantLayout{ConstantLayout: layout}}}
	if p.leaf.Path.Layers() > 1 {
		out.Buffers = [][]byte{encoding.CastBytes(p.in.Rep), encoding.CastBytes(p.def)}
	}
	return out
}

// split encodes the two halves of the rows.
func (p *page) split() ([]Encoded, error) {
	half := p.rows / 2
	entry := half
	if p.leaf.Path.HasLists() {
		entry = rowStart(p.in.Rep, p.leaf.Path.MaxRep(), half)
	}
	m := levelMap{path: p.leaf.Path}
	var out []Encoded
	slot := 0
	for _, part := range [][3]int{{0, entry, half}, {entry, p.in.Entries, p.rows - half}} {
		piece := encoding.NewLeaf(p.leaf.Type, p.in.Values.Allocator())
		next, err := m.appendEntries(piece, p.in, part[0], part[1], slot)
		if err == nil {
			var pages []Encoded
			pages, err = Encode(p.leaf, piece, part[2], p.opts)
			out = append(out, pages...)
		}
		piece.Release()
		if err != nil {
			return nil, err
		}
		slot = next
	}
	return out, nil
}

// fullZipIndex writes the starts of the rows in the smallest width that holds the last.
func fullZipIndex(starts []uint64) []byte {
	last := starts[len(starts)-1]
	out := make([]byte, 0, len(starts)*8)
	for _, s := range starts {
		switch {
		case last < 1<<8:
			out = append(out, byte(s))
		case last < 1<<16:
			out = binary.LittleEndian.AppendUint16(out, uint16(s))
		case last < 1<<32:
			out = binary.LittleEndian.AppendUint32(out, uint32(s))
		default:
			out = binary.LittleEndian.AppendUint64(out, s)
		}
	}
	return out
}
