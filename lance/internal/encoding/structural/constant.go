package structural

import (
	"encoding/binary"

	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/foldline/foldline/lance/internal/encoding"
	"github.com/foldline/foldline/lance/internal/encoding/levels"
	"github.com/foldline/foldline/lance/internal/pb/pb21"
)

// constant is a page whose valid slots all hold one value, or of which no slot is valid.
type constant struct {
	levelMap
	typ      encoding.Type
	rows     int64
	inline   []byte
	allNull  bool
	repCount int
	defCount int
	repBlock blockDecoder
	defBlock blockDecoder
	value    encoding.Span
	repSpan  encoding.Span
	defSpan  encoding.Span
	hasValue bool // the value stands in a buffer
	levels   bool // the levels stand in buffers

	loaded bool
	leaf   *encoding.Leaf // levels of the whole page; no values
	one    *encoding.Values
}

func openConstant(l *pb21.ConstantLayout, rows int64, buffers []encoding.Span, leaf *levels.LeafPath) (Page, error) {
	c := &constant{typ: leaf.Type, rows: rows, inline: l.GetInlineValue()}
	var err error
	if c.levelMap, err = newLevelMap(leaf.Path, l.GetLayers()); err != nil {
		return nil, err
	}
	c.allNull = l.InlineValue == nil && len(buffers)%2 == 0
	c.hasValue = l.InlineValue == nil && !c.allNull
	rest := buffers
	if c.hasValue {
		c.value, rest = buffers[0], buffers[1:]
	}
	switch len(rest) {
	case 0:
	case 2:
		c.levels = true
		c.repSpan, c.defSpan = rest[0], rest[1]
	default:
		return nil, encoding.Corruptf("%d buffers", len(buffers))
	}
	if err := c.check(l); err != nil {
		return nil, err
	}
	if err := c.setLevels(l); err != nil {
		return nil, err
	}
	c.leaf = encoding.NewLeaf(c.typ, memory.DefaultAllocator)
	c.one = encoding.NewValues(c.typ, memory.DefaultAllocator)
	return c, nil
}

func (c *constant) check(l *pb21.ConstantLayout) error {
	if c.path.HasLists() && !c.levels {
		return encoding.Corruptf("a page of lists without repetition levels")
	}
	if c.allNull && !c.levels && l.GetLayers()[0] != pb21.RepDefLayer_NULLABLE_ITEM {
		return encoding.Corruptf("a page of nulls whose leaf cannot be null")
	}
	if l.InlineValue != nil && (c.typ.Kind != encoding.Fixed || len(c.inline) != c.typ.Size(1)) {
		return encoding.Corruptf("value of %d bytes in a column of %s", len(c.inline), c.typ)
	}
	return nil
}

// setLevels sizes the level buffers: raw unless the message says how they are compressed.
func (c *constant) setLevels(l *pb21.ConstantLayout) (err error) {
	if !c.levels {
		return nil
	}
	if c.repBlock, c.repCount, err = constantLevels(l.GetRepCompression(), l.GetNumRepValues(), c.repSpan); err != nil {
		return err
	}
	if c.defBlock, c.defCount, err = constantLevels(l.GetDefCompression(), l.GetNumDefValues(), c.defSpan); err != nil {
		return err
	}
	if c.path.HasLists() != (c.repCount > 0) && c.rows > 0 {
		return encoding.Corruptf("%d repetition levels", c.repCount)
	}
	if c.repCount > 0 && c.defCount > 0 && c.repCount != c.defCount {
		return encoding.Corruptf("%d repetition and %d definition levels", c.repCount, c.defCount)
	}
	return nil
}

func constantLevels(enc *pb21.CompressiveEncoding, count uint64, span encoding.Span) (blockDecoder, int, error) {
	if enc == nil {
		return flat{bits: 16}, int(span.Len / 2), nil
	}
	if count > maxPageRows {
		return nil, 0, encoding.Corruptf("%d levels", count)
	}
	d, err := newBlockDecoder(enc, encoding.FixedType(16))
	return d, int(count), err
}

func (c *constant) Release() {
	c.leaf.Release()
	c.one.Release()
}

func (c *constant) Prepare([]encoding.Range) []encoding.Span {
	if c.loaded {
		return nil
	}
	var spans []encoding.Span
	if c.hasValue {
		spans = append(spans, c.value)
	}
	if c.levels {
		spans = append(spans, c.repSpan, c.defSpan)
	}
	return spans
}

// Locate decodes the page's levels and value; there is nothing else to read.
func (c *constant) Locate(src encoding.Loaded, _ []encoding.Range) ([]encoding.Span, error) {
	if c.loaded {
		return nil, nil
	}
	if err := c.loadValue(src); err != nil {
		return nil, encoding.At(err, "constant value", c.value.Off)
	}
	if c.levels {
		if err := c.loadLevels(src); err != nil {
			return nil, encoding.At(err, "levels", c.repSpan.Off)
		}
	}
	c.loaded = true
	return nil, nil
}

func (c *constant) loadLevels(src encoding.Loaded) error {
	rep, err := readLevels(src, c.repBlock, c.repSpan, c.repCount)
	if err != nil {
		return err
	}
	def, err := readLevels(src, c.defBlock, c.defSpan, c.defCount)
	if err != nil {
		return err
	}
	if err := c.checkRep(rep); err != nil {
		return err
	}
	if _, err := c.mapDef(def); err != nil {
		return err
	}
	rows := int64(0)
	for _, r := range rep {
		if r == c.path.MaxRep() {
			rows++
		}
	}
	if !c.path.HasLists() {
		rows = int64(len(def))
		rep = nil
	}
	if len(def) == 0 && !c.path.HasLists() { // no levels after all: everything is valid
		return nil
	}
	if rows != c.rows || len(rep) > 0 && rep[0] != c.path.MaxRep() {
		return encoding.Corruptf("levels of %d rows instead of %d", rows, c.rows)
	}
	c.leaf.AppendEntries(max(len(rep), len(def)), rep, def)
	return nil
}

func readLevels(src encoding.Loaded, d blockDecoder, span encoding.Span, n int) ([]uint16, error) {
	if n == 0 {
		return nil, nil
	}
	data, err := src.Bytes(span)
	if err != nil {
		return nil, err
	}
	v := encoding.NewValues(encoding.FixedType(16), memory.DefaultAllocator)
	defer v.Release()
	if err := d.decodeBlock(data, n, v); err != nil {
		return nil, err
	}
	return append([]uint16(nil), encoding.Cast[uint16](v.Data.Bytes())...), nil
}

// loadValue makes the one value: zero for a page of nulls, inline, or from a buffer with a count of parts,
// their lengths and the parts: for strings, two offsets and the bytes.
func (c *constant) loadValue(src encoding.Loaded) error {
	switch {
	case c.allNull:
		c.one.AppendZero(1)
		return nil
	case !c.hasValue:
		c.one.AppendFixed(c.inline, 0, 1, nil, 0)
		return nil
	}
	data, err := src.Bytes(c.value)
	if err != nil {
		return err
	}
	parts, err := splitParts(data)
	if err != nil {
		return err
	}
	last := parts[len(parts)-1]
	if c.typ.Kind == encoding.Bytes && len(parts) == 2 {
		return c.one.AppendValue(last)
	}
	if c.typ.Kind == encoding.Fixed && len(parts) == 1 && len(last) >= c.typ.Size(1) {
		c.one.AppendFixed(last, 0, 1, nil, 0)
		return nil
	}
	return encoding.Unsupportedf("constant of %d parts in a column of %s", len(parts), c.typ)
}

const maxParts = 8

func splitParts(data []byte) ([][]byte, error) {
	if len(data) < 4 {
		return nil, encoding.Corruptf("%d bytes", len(data))
	}
	k := binary.LittleEndian.Uint32(data)
	if k == 0 || k > maxParts || len(data) < int(4+4*k) {
		return nil, encoding.Corruptf("%d parts in %d bytes", k, len(data))
	}
	parts := make([][]byte, k)
	body := data[4+4*k:]
	for i := range parts {
		n := binary.LittleEndian.Uint32(data[4+4*i:])
		if uint64(n) > uint64(len(body)) {
			return nil, encoding.Corruptf("part of %d bytes in %d", n, len(body))
		}
		parts[i], body = body[:n], body[n:]
	}
	return parts, nil
}

func (c *constant) Read(_ encoding.Loaded, r encoding.Range, out *encoding.Leaf) error {
	from, to := int(r.From), int(r.To)
	if c.path.HasLists() {
		from = rowStart(c.leaf.Rep, c.path.MaxRep(), int(r.From))
		to = rowStart(c.leaf.Rep, c.path.MaxRep(), int(r.To))
	}
	n := to - from
	var rep, def []uint16
	if len(c.leaf.Rep) > 0 {
		rep = c.leaf.Rep[from:to]
	}
	switch {
	case len(c.leaf.Def) > 0:
		def = c.leaf.Def[from:to]
	case c.allNull && !c.levels:
		def = make([]uint16, n)
		for i := range def {
			def[i] = c.table[1]
		}
	}
	out.AppendEntries(n, rep, def)
	return c.repeat(out.Values, c.visible(def, n))
}

// repeat adds the page's value n times.
func (c *constant) repeat(out *encoding.Values, n int) error {
	if c.allNull {
		out.AppendZero(n)
		return nil
	}
	for range n {
		if err := out.AppendRange(c.one, 0, 1); err != nil {
			return err
		}
	}
	return nil
}
