package structural

import (
	"github.com/foldline/foldline/lance/internal/encoding"
	"github.com/foldline/foldline/lance/internal/encoding/levels"
	"github.com/foldline/foldline/lance/internal/pb/pb21"
)

// maxPageRows bounds the rows of a page, and so every count that is derived from it.
const maxPageRows = 1 << 32

// Page decodes the rows of one page of one leaf.
type Page interface {
	// Prepare returns the bytes that Locate needs to find rows.
	Prepare(rows []encoding.Range) []encoding.Span
	// Locate returns the bytes that Read needs for rows, given those of Prepare.
	Locate(src encoding.Loaded, rows []encoding.Range) ([]encoding.Span, error)
	// Read appends the rows r, which Locate was asked for, to out.
	Read(src encoding.Loaded, r encoding.Range, out *encoding.Leaf) error
	// Release frees what the page holds.
	Release()
}

// Open makes a page of the given leaf. Errors are CorruptErrors or wrap encoding.ErrUnsupported.
func Open(layout *pb21.PageLayout, rows int64, buffers []encoding.Span, leaf *levels.LeafPath) (Page, error) {
	if rows < 0 || rows > maxPageRows {
		return nil, encoding.Corruptf("page of %d rows", rows)
	}
	switch l := layout.GetLayout().(type) {
	case *pb21.PageLayout_MiniBlockLayout:
		return openMiniBlock(l.MiniBlockLayout, rows, buffers, leaf)
	case *pb21.PageLayout_FullZipLayout:
		return openFullZip(l.FullZipLayout, rows, buffers, leaf)
	case *pb21.PageLayout_ConstantLayout:
		return openConstant(l.ConstantLayout, rows, buffers, leaf)
	case *pb21.PageLayout_BlobLayout:
		return nil, encoding.Unsupportedf("blob pages")
	}
	return nil, encoding.Unsupportedf("page layout that is not known")
}

// levelMap turns a page's levels into canonical ones.
type levelMap struct {
	path  *levels.Path
	table []uint16
}

func newLevelMap(path *levels.Path, layers []pb21.RepDefLayer) (levelMap, error) {
	table, err := path.FromPage(layers)
	return levelMap{path: path, table: table}, err
}

// hasDef reports whether the page's layers can express anything but valid.
func (m levelMap) hasDef() bool { return len(m.table) > 1 }

// mapDef translates page levels in place and counts the visible entries.
func (m levelMap) mapDef(d []uint16) (visible int, err error) {
	limit := m.path.MaxVisible()
	if limit == m.path.MaxDef() {
		visible = len(d)
	}
	if len(m.table) == 2 && m.table[1] == 1 && visible > 0 {
		var all uint16
		for _, v := range d {
			all |= v
		}
		if all > 1 {
			return 0, encoding.Corruptf("definition level beyond the page's layers")
		}
		return visible, nil
	}
	for i, v := range d {
		if int(v) >= len(m.table) {
			return 0, encoding.Corruptf("definition level %d beyond the page's layers", v)
		}
		d[i] = m.table[v]
		if limit != m.path.MaxDef() && d[i] <= limit {
			visible++
		}
	}
	return visible, nil
}

// checkRep checks repetition levels.
func (m levelMap) checkRep(r []uint16) error {
	for _, v := range r {
		if v > m.path.MaxRep() {
			return encoding.Corruptf("repetition level %d, the type has %d lists", v, m.path.MaxRep())
		}
	}
	return nil
}

// visible counts the entries of canonical levels (nil: all valid) that own a slot.
func (m levelMap) visible(def []uint16, n int) int {
	if len(def) == 0 || m.path.MaxVisible() == m.path.MaxDef() {
		return n
	}
	count := 0
	for _, d := range def {
		if d <= m.path.MaxVisible() {
			count++
		}
	}
	return count
}

// rowStart finds a row among entries: the index of the entry that begins the k-th row of rep counted from 0,
// or len(rep) when there are fewer.
func rowStart(rep []uint16, maxRep uint16, k int) int {
	for i, r := range rep {
		if r != maxRep {
			continue
		}
		if k == 0 {
			return i
		}
		k--
	}
	return len(rep)
}

// appendEntries copies the entries [from, to) of src with their slots; slot is the slot of entry from. It
// returns the slot that follows.
func (m levelMap) appendEntries(out, src *encoding.Leaf, from, to, slot int) (int, error) {
	var rep, def []uint16
	if len(src.Rep) > 0 {
		rep = src.Rep[from:to]
	}
	if len(src.Def) > 0 {
		def = src.Def[from:to]
	}
	next := slot + m.visible(def, to-from)
	out.AppendEntries(to-from, rep, def)
	return next, out.Values.AppendRange(src.Values, slot, next)
}
