package file

import (
	"context"
	"fmt"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/foldline/foldline/lance/internal/encoding"
	"github.com/foldline/foldline/lance/internal/encoding/levels"
	"github.com/foldline/foldline/lance/internal/encoding/structural"
)

// wholePageBytes is the size up to which a take reads a page at once rather than in two steps.
const wholePageBytes = 32 << 10

// Take returns the rows at offsets, which must rise strictly, as one record that the caller releases. It reads
// in two rounds of parallel requests: the pages' indexes, then only the chunks that hold the rows; pages of
// up to 32 KiB are read whole in the first.
func (r *Reader) Take(ctx context.Context, cols []Column, offsets []uint32) (arrow.Record, error) {
	if err := r.checkOffsets(offsets); err != nil {
		return nil, err
	}
	p, err := r.plan(cols)
	if err != nil {
		return nil, err
	}
	t := &take{plan: p, loaded: segments{r: r}}
	defer t.release()
	if err := t.open(offsets); err != nil {
		return nil, err
	}
	if err := t.load(ctx); err != nil {
		return nil, err
	}
	return t.read(ctx, offsets)
}

func (r *Reader) checkOffsets(offsets []uint32) error {
	for i, o := range offsets {
		if int64(o) >= r.rows {
			return fmt.Errorf("%w: row %d of %d", ErrInvalid, o, r.rows)
		}
		if i > 0 && o <= offsets[i-1] {
			return fmt.Errorf("%w: row offsets do not rise: %d after %d", ErrInvalid, o, offsets[i-1])
		}
	}
	return nil
}

// take is a running Take.
type take struct {
	*plan
	loaded segments
	parts  []takePart
}

// takePart is what is taken from one page of one leaf.
type takePart struct {
	field, leaf int
	index       int32
	number      int
	page        structural.Page
	rows        []encoding.Range
}

func (t *take) release() {
	for _, p := range t.parts {
		p.page.Release()
	}
}

// open finds and opens the pages that hold the rows.
func (t *take) open(offsets []uint32) error {
	for i, f := range t.fields {
		for j, index := range f.index {
			if index < 0 || f.nodes != nil {
				continue
			}
			if err := t.openLeaf(i, j, index, &f.tree.Leaves[j], offsets); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *take) openLeaf(field, leaf int, index int32, path *levels.LeafPath, offsets []uint32) error {
	col := t.r.columns[index]
	number := 0
	for at := 0; at < len(offsets); {
		number = col.find(int64(offsets[at]), number)
		if number < 0 {
			return t.r.corrupt(fmt.Sprintf("column %d", index), 0, "no page for row %d", offsets[at])
		}
		info := &col.pages[number]
		part := takePart{field: field, leaf: leaf, index: index, number: number}
		for at < len(offsets) && int64(offsets[at]) < info.first+info.rows {
			part.rows = extend(part.rows, int64(offsets[at])-info.first)
			at++
		}
		page, err := t.r.openPage(index, number, path)
		if err != nil {
			return err
		}
		part.page = page
		t.parts = append(t.parts, part)
	}
	return nil
}

// load reads the bytes of all parts in two rounds.
func (t *take) load(ctx context.Context) error {
	var spans []encoding.Span
	for _, p := range t.parts {
		if info := &t.r.columns[p.index].pages[p.number]; info.bytes <= wholePageBytes {
			spans = append(spans, info.buffers...)
		} else {
			spans = append(spans, p.page.Prepare(p.rows)...)
		}
	}
	if err := t.loaded.load(ctx, spans); err != nil {
		return err
	}
	spans = nil
	for _, p := range t.parts {
		located, err := p.page.Locate(&t.loaded, p.rows)
		if err != nil {
			return t.r.placePage(err, p.index, p.number)
		}
		spans = append(spans, located...)
	}
	return t.loaded.load(ctx, spans)
}

// read decodes the rows of all parts.
func (t *take) read(ctx context.Context, offsets []uint32) (arrow.Record, error) {
	data := make([][]*encoding.Leaf, len(t.fields))
	defer releaseLeaves(data)
	for i, f := range t.fields {
		data[i] = make([]*encoding.Leaf, len(f.index))
		if f.nodes != nil {
			if err := t.readLists(ctx, f, offsets, data[i]); err != nil {
				return nil, err
			}
			continue
		}
		for j, index := range f.index {
			if index >= 0 {
				data[i][j] = encoding.NewLeaf(f.tree.Leaves[j].Type, t.r.opts.Allocator)
			}
		}
	}
	for _, p := range t.parts {
		for _, rows := range p.rows {
			if err := p.page.Read(&t.loaded, rows, data[p.field][p.leaf]); err != nil {
				return nil, t.r.placePage(err, p.index, p.number)
			}
		}
	}
	return t.assemble(data, len(offsets))
}

// readLists takes the rows of a field with lists of version 2.0, which needs a round of requests per layer.
func (t *take) readLists(ctx context.Context, f fieldPlan, offsets []uint32, data []*encoding.Leaf) error {
	l := newListReader(t.r, f, wholePageBytes)
	defer l.release()
	index := make([]int, len(offsets))
	for i, o := range offsets {
		index[i] = int(o)
	}
	return l.read(ctx, runs(index), data)
}
