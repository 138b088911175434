package file

import (
	"context"
	"fmt"

	"github.com/foldline/foldline/lance/internal/encoding"
	"github.com/foldline/foldline/lance/internal/encoding/levels"
	"github.com/foldline/foldline/lance/internal/encoding/structural"
	"github.com/foldline/foldline/lance/internal/encoding/v20"
)

// listReader reads a field with lists from a file of version 2.0. There, every list is a column of offsets and
// the items are columns of their own, whose rows are items: the rows of a field are found layer by layer, and
// come out as leaves with levels like those of later versions.
type listReader struct {
	r     *Reader
	field fieldPlan
	// whole is the size up to which a page is read at once and kept for the next rows.
	whole  int64
	loaded segments
	lists  map[int32]*listColumn
	pages  map[pageKey]structural.Page
}

type pageKey struct {
	index  int32
	number int
}

// listColumn is a column of list offsets.
type listColumn struct {
	pages []*v20.Lists
	// first is the number of items before each page.
	first []int64
}

func newListReader(r *Reader, f fieldPlan, whole int64) *listReader {
	return &listReader{
		r: r, field: f, whole: whole, loaded: segments{r: r},
		lists: map[int32]*listColumn{}, pages: map[pageKey]structural.Page{},
	}
}

func (l *listReader) release() {
	for _, p := range l.pages {
		p.Release()
	}
}

// read decodes rows into the leaves that the file has.
func (l *listReader) read(ctx context.Context, rows []encoding.Range, out []*encoding.Leaf) error {
	for i := range l.field.tree.Leaves {
		leaf := &l.field.tree.Leaves[i]
		if l.missing(leaf) {
			continue
		}
		out[i] = encoding.NewLeaf(leaf.Type, l.r.opts.Allocator)
		if err := l.readLeaf(ctx, leaf, rows, out[i]); err != nil {
			return err
		}
	}
	if l.loaded.bytes() > 4*l.whole {
		l.loaded.parts = nil
	}
	return nil
}

// missing reports whether the file lacks the leaf or a list above it. Struct columns hold nothing.
func (l *listReader) missing(leaf *levels.LeafPath) bool {
	steps := leaf.Steps()
	for i, s := range steps {
		if (s.Kind == levels.List || i == len(steps)-1) && l.field.nodes[s.Node] < 0 {
			return true
		}
	}
	return false
}

func (l *listReader) readLeaf(ctx context.Context, leaf *levels.LeafPath, rows []encoding.Range, out *encoding.Leaf) error {
	e := &levels.Entries{}
	for _, r := range rows {
		for i := r.From; i < r.To; i++ {
			e.Add(leaf.Path.MaxRep(), 0, int(i))
		}
	}
	steps := leaf.Steps()
	for _, s := range steps {
		if s.Kind != levels.List {
			continue
		}
		var err error
		if e, err = l.expand(ctx, l.field.nodes[s.Node], s, e); err != nil {
			return err
		}
	}
	return l.readValues(ctx, l.field.nodes[steps[len(steps)-1].Node], leaf, e, out)
}

// expand replaces the lists of entries by their items.
func (l *listReader) expand(ctx context.Context, index int32, s levels.Step, e *levels.Entries) (*levels.Entries, error) {
	col, err := l.openLists(index)
	if err != nil {
		return nil, err
	}
	parts, err := l.split(index, runs(e.Index))
	if err != nil {
		return nil, err
	}
	var spans []encoding.Span
	for _, p := range parts {
		spans = append(spans, l.orWhole(p, []encoding.Span{col.pages[p.number].Span(p.rows)})...)
	}
	if err := l.loaded.load(ctx, spans); err != nil {
		return nil, err
	}
	x := &expander{step: s, in: e, out: &levels.Entries{}}
	for _, p := range parts {
		x.base = col.first[p.number]
		if err := col.pages[p.number].Read(&l.loaded, p.rows, x.list); err != nil {
			return nil, l.r.placePage(err, index, p.number)
		}
	}
	x.skip()
	return x.out, nil
}

// expander takes the lists of consecutive entries.
type expander struct {
	step    levels.Step
	in, out *levels.Entries
	at      int   // the next entry of in
	base    int64 // items before the page
}

// skip copies the entries that have no list here.
func (x *expander) skip() {
	for x.at < len(x.in.Index) && x.in.Index[x.at] < 0 {
		x.out.Add(x.in.Rep[x.at], x.in.Def[x.at], -1)
		x.at++
	}
}

func (x *expander) list(items encoding.Range, isNull bool) {
	x.skip()
	rep := x.in.Rep[x.at]
	x.at++
	switch {
	case isNull:
		x.out.Add(rep, x.step.Null, -1)
	case items.From == items.To:
		x.out.Add(rep, x.step.Null+1, -1)
	default:
		x.out.AddItems(rep, x.step.ItemRep, int(x.base+items.From), int(x.base+items.To))
	}
}

func (l *listReader) openLists(index int32) (*listColumn, error) {
	if col, ok := l.lists[index]; ok {
		return col, nil
	}
	col := &listColumn{}
	items := int64(0)
	for number, info := range l.r.columns[index].pages {
		enc, err := l.r.arrayEncoding(index, number)
		if err != nil {
			return nil, err
		}
		page, err := v20.OpenLists(enc, info.rows, info.buffers)
		if err != nil {
			return nil, l.r.placePage(err, index, number)
		}
		col.pages, col.first = append(col.pages, page), append(col.first, items)
		items += page.Items
	}
	l.lists[index] = col
	return col, nil
}

// readValues reads the values of the entries that have one.
func (l *listReader) readValues(ctx context.Context, index int32, leaf *levels.LeafPath, e *levels.Entries, out *encoding.Leaf) error {
	parts, err := l.split(index, runs(e.Index))
	if err != nil {
		return err
	}
	if err := l.load(ctx, index, leaf, parts); err != nil {
		return err
	}
	for _, p := range parts {
		if err := l.pages[pageKey{index, p.number}].Read(&l.loaded, p.rows, out); err != nil {
			return l.r.placePage(err, index, p.number)
		}
	}
	values := out.Def
	out.Def, out.Entries = nil, 0
	if len(values) > 0 {
		at := 0
		for i, item := range e.Index {
			if item >= 0 {
				e.Def[i] = values[at]
				at++
			}
		}
	}
	out.AppendEntries(len(e.Rep), e.Rep, e.Def)
	return nil
}

func (l *listReader) load(ctx context.Context, index int32, leaf *levels.LeafPath, parts []listPart) error {
	var spans []encoding.Span
	for _, p := range parts {
		key := pageKey{index, p.number}
		if l.pages[key] == nil {
			page, err := l.r.openPage(index, p.number, leaf)
			if err != nil {
				return err
			}
			l.pages[key] = page
		}
		spans = append(spans, l.orWhole(p, l.pages[key].Prepare([]encoding.Range{p.rows}))...)
	}
	if err := l.loaded.load(ctx, spans); err != nil {
		return err
	}
	spans = nil
	for _, p := range parts {
		located, err := l.pages[pageKey{index, p.number}].Locate(&l.loaded, []encoding.Range{p.rows})
		if err != nil {
			return l.r.placePage(err, index, p.number)
		}
		spans = append(spans, located...)
	}
	return l.loaded.load(ctx, spans)
}

// listPart is a run of rows of one page of a column.
type listPart struct {
	index  int32
	number int
	rows   encoding.Range
}

// orWhole is all of a small page, else the spans.
func (l *listReader) orWhole(p listPart, spans []encoding.Span) []encoding.Span {
	if info := &l.r.columns[p.index].pages[p.number]; info.bytes <= l.whole {
		return info.buffers
	}
	return spans
}

// split cuts runs of rows of a column at its pages.
func (l *listReader) split(index int32, rows []encoding.Range) ([]listPart, error) {
	var parts []listPart
	col := l.r.columns[index]
	number := 0
	for _, r := range rows {
		for at := r.From; at < r.To; {
			number = col.find(at, number)
			if number < 0 {
				return nil, l.r.corrupt(fmt.Sprintf("column %d", index), 0, "no page for row %d", at)
			}
			info := &col.pages[number]
			to := min(r.To, info.first+info.rows)
			parts = append(parts, listPart{index, number, encoding.Range{From: at - info.first, To: to - info.first}})
			at = to
		}
	}
	return parts, nil
}

// runs joins neighbouring positions; negative ones are left out.
func runs(index []int) []encoding.Range {
	var out []encoding.Range
	for _, i := range index {
		if i >= 0 {
			out = extend(out, int64(i))
		}
	}
	return out
}

// extend adds a position to the last run, or begins one.
func extend(rows []encoding.Range, at int64) []encoding.Range {
	if n := len(rows); n > 0 && rows[n-1].To == at {
		rows[n-1].To++
		return rows
	}
	return append(rows, encoding.Range{From: at, To: at + 1})
}
