package encoding

import "github.com/apache/arrow/go/v17/arrow/memory"

// Leaf is a run of a leaf column: values with their repetition and definition levels. Levels are in the
// canonical numbering of the leaf's path (package levels), in which every layer can express null and empty.
type Leaf struct {
	Values *Values
	// Entries counts the level entries: the value slots and the placeholders of null and empty lists.
	Entries int
	// Rep has one level per entry; empty for a path without lists.
	Rep []uint16
	// Def has one level per entry; empty while all entries are valid.
	Def []uint16
}

// NewLeaf makes an empty leaf.
func NewLeaf(t Type, mem memory.Allocator) *Leaf {
	return &Leaf{Values: NewValues(t, mem)}
}

// Reset empties the leaf and keeps its memory.
func (l *Leaf) Reset() {
	l.Values.Reset()
	l.Entries, l.Rep, l.Def = 0, l.Rep[:0], l.Def[:0]
}

// Release frees the memory.
func (l *Leaf) Release() {
	l.Values.Release()
	l.Entries, l.Rep, l.Def = 0, nil, nil
}

// ExtendDef adds n definition levels of unspecified content and returns them; entries before them that had no
// levels become valid. It must be called before Entries grows.
func (l *Leaf) ExtendDef(n int) []uint16 {
	if len(l.Def) < l.Entries {
		have := len(l.Def)
		l.Def = grow(l.Def, l.Entries-have)
		clear(l.Def[have:])
	}
	l.Def = grow(l.Def, n)
	return l.Def[len(l.Def)-n:]
}

// AppendEntries accounts for n entries whose definition levels (nil: all valid) and repetition levels (nil: no
// lists) are given.
func (l *Leaf) AppendEntries(n int, rep, def []uint16) {
	switch {
	case def != nil:
		copy(l.ExtendDef(n), def)
	case len(l.Def) > 0:
		clear(l.ExtendDef(n))
	}
	l.Rep = append(l.Rep, rep...)
	l.Entries += n
}

func grow(s []uint16, n int) []uint16 {
	if len(s)+n > cap(s) {
		bigger := make([]uint16, len(s), max(len(s)+n, 2*cap(s)))
		copy(bigger, s)
		s = bigger
	}
	return s[:len(s)+n]
}
