package file

import (
	"context"
	"fmt"
	"iter"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"golang.org/x/sync/errgroup"

	"github.com/foldline/foldline/lance/internal/encoding"
	"github.com/foldline/foldline/lance/internal/encoding/levels"
	"github.com/foldline/foldline/lance/internal/encoding/structural"
)

// maxBatchBytes is the stored size from which a scan cuts its records shorter than it was asked to.
const maxBatchBytes = 64 << 20

func newRecord(s *arrow.Schema, arrays []arrow.Array, rows int64) arrow.Record {
	return array.NewRecord(s, arrays, rows)
}

// Scan yields the rows [from, to) of cols in order, in records of batchRows rows (0 is 8,192) but for the
// last; where rows are so large that a record would take more than 64 MiB in the file, in shorter ones. The
// consumer releases each record. The sequence ends after the first error. Memory is bounded by one record plus
// WindowBytes per column.
func (r *Reader) Scan(ctx context.Context, cols []Column, from, to int64, batchRows int) iter.Seq2[arrow.Record, error] {
	return func(yield func(arrow.Record, error) bool) {
		s, err := r.newScan(cols, from, to)
		if err != nil {
			yield(nil, err)
			return
		}
		defer s.release()
		if batchRows <= 0 {
			batchRows = defaultBatchRows
		}
		for from < to {
			n := s.batchRows(from, min(int64(batchRows), to-from))
			rec, err := s.read(ctx, encoding.Range{From: from, To: from + n})
			if !yield(rec, err) || err != nil {
				return
			}
			from += n
		}
	}
}

// scan is a running Scan: a cursor per leaf that the file has.
type scan struct {
	*plan
	cursors [][]*cursor   // by field and leaf; nil where the file has no column
	lists   []*listReader // by field; nil but for lists of version 2.0
}

func (r *Reader) newScan(cols []Column, from, to int64) (*scan, error) {
	if from < 0 || to > r.rows || from > to {
		return nil, fmt.Errorf("%w: rows %d to %d of %d", ErrInvalid, from, to, r.rows)
	}
	p, err := r.plan(cols)
	if err != nil {
		return nil, err
	}
	s := &scan{plan: p}
	for _, f := range p.fields {
		cursors := make([]*cursor, len(f.index))
		var lists *listReader
		if f.nodes != nil {
			lists = newListReader(r, f, r.opts.WindowBytes)
		}
		s.lists = append(s.lists, lists)
		for i, index := range f.index {
			if index >= 0 && lists == nil {
				cursors[i] = &cursor{r: r, index: index, leaf: &f.tree.Leaves[i], end: to, page: -1, loaded: segments{r: r}}
			}
		}
		s.cursors = append(s.cursors, cursors)
	}
	return s, nil
}

func (s *scan) each(f func(field, leaf int, c *cursor) error) error {
	for i, cursors := range s.cursors {
		for j, c := range cursors {
			if c == nil {
				continue
			}
			if err := f(i, j, c); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *scan) release() {
	_ = s.each(func(_, _ int, c *cursor) error { c.close(); return nil })
	for _, l := range s.lists {
		if l != nil {
			l.release()
		}
	}
}

// batchRows cuts n rows from row `from` on short when their type or the pages' average says that they are large.
func (s *scan) batchRows(from, n int64) int64 {
	for _, f := range s.fields {
		for _, l := range f.tree.Leaves {
			n = min(n, max(maxBatchBytes*8/int64(l.Type.ValueBits()+1), 1))
		}
	}
	_ = s.each(func(_, _ int, c *cursor) error {
		if p := c.find(from); p >= 0 {
			info := &c.column().pages[p]
			n = min(n, max(maxBatchBytes*info.rows/max(info.bytes, 1), 1))
		}
		return nil
	})
	return n
}

// read decodes the rows of one record.
func (s *scan) read(ctx context.Context, rows encoding.Range) (arrow.Record, error) {
	if err := s.prefetch(ctx, rows); err != nil {
		return nil, err
	}
	data := make([][]*encoding.Leaf, len(s.fields))
	for i, f := range s.fields {
		data[i] = make([]*encoding.Leaf, len(f.index))
	}
	defer releaseLeaves(data)
	err := s.each(func(i, j int, c *cursor) error {
		leaf := encoding.NewLeaf(c.leaf.Type, s.r.opts.Allocator)
		data[i][j] = leaf
		leaf.Values.Reserve(rows.Len())
		leaf.Values.Data.Reserve(c.lastDataBytes)
		if err := c.read(ctx, rows, leaf); err != nil {
			return err
		}
		if c.leaf.Type.Kind == encoding.Bytes {
			c.lastDataBytes = leaf.Values.Data.Len()
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i, l := range s.lists {
		if l == nil {
			continue
		}
		if err := l.read(ctx, []encoding.Range{rows}, data[i]); err != nil {
			return nil, err
		}
	}
	return s.assemble(data, rows.Len())
}

// prefetch loads the windows in which the rows begin, several columns at a time.
func (s *scan) prefetch(ctx context.Context, rows encoding.Range) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelRequests)
	_ = s.each(func(_, _ int, c *cursor) error {
		if !c.ready(rows.From) {
			g.Go(func() error { return c.seek(ctx, rows.From) })
		}
		return nil
	})
	return g.Wait()
}

func releaseLeaves(data [][]*encoding.Leaf) {
	for _, leaves := range data {
		for _, l := range leaves {
			if l != nil {
				l.Release()
			}
		}
	}
}

// cursor reads one leaf column forward.
type cursor struct {
	r     *Reader
	index int32
	leaf  *levels.LeafPath
	end   int64 // the scan's end

	page   int // the open page, -1 for none
	open   structural.Page
	window encoding.Range // rows of the page whose bytes are loaded
	loaded segments
	// lastDataBytes is the size of the last record's string bytes, to reserve as much for the next.
	lastDataBytes int
}

func (c *cursor) column() *column { return c.r.columns[c.index] }

func (c *cursor) close() {
	if c.open != nil {
		c.open.Release()
	}
	c.open, c.page, c.window, c.loaded.parts = nil, -1, encoding.Range{}, nil
}

// find is the page that holds a row, -1 for none.
func (c *cursor) find(row int64) int { return c.column().find(row, max(c.page, 0)) }

// ready reports whether the bytes of a row are loaded.
func (c *cursor) ready(row int64) bool {
	if c.page < 0 {
		return false
	}
	at := row - c.column().pages[c.page].first
	return at >= c.window.From && at < c.window.To
}

// seek opens the page of a row and loads a window that begins with it.
func (c *cursor) seek(ctx context.Context, row int64) error {
	p := c.find(row)
	if p < 0 {
		return c.r.corrupt(fmt.Sprintf("column %d", c.index), 0, "no page for row %d", row)
	}
	if p != c.page {
		c.close()
		page, err := c.r.openPage(c.index, p, c.leaf)
		if err != nil {
			return err
		}
		c.page, c.open = p, page
	}
	return c.r.placePage(c.load(ctx, row), c.index, p)
}

// load reads a window of the open page: the whole page in one request when it is small and wanted whole.
func (c *cursor) load(ctx context.Context, row int64) error {
	info := &c.column().pages[c.page]
	want := encoding.Range{From: row - info.first, To: min(c.end-info.first, info.rows)}
	limit := c.r.opts.WindowBytes
	c.loaded.parts = nil
	if info.bytes > limit {
		want.To = min(want.To, want.From+max(info.rows*limit/info.bytes, 1))
	} else if want.Len() > int(info.rows/2) {
		if err := c.loaded.load(ctx, info.buffers); err != nil {
			return err
		}
	}
	rows := []encoding.Range{want}
	if err := c.loaded.load(ctx, c.open.Prepare(rows)); err != nil {
		return err
	}
	spans, err := c.open.Locate(&c.loaded, rows)
	if err != nil {
		return err
	}
	if err := c.loaded.load(ctx, spans); err != nil {
		return err
	}
	c.window = want
	return nil
}

// read appends rows to out, page by page and window by window.
func (c *cursor) read(ctx context.Context, rows encoding.Range, out *encoding.Leaf) error {
	for at := rows.From; at < rows.To; {
		if !c.ready(at) {
			if err := c.seek(ctx, at); err != nil {
				return err
			}
		}
		first := c.column().pages[c.page].first
		part := encoding.Range{From: at - first, To: min(rows.To-first, c.window.To)}
		if err := c.open.Read(&c.loaded, part, out); err != nil {
			return c.r.placePage(err, c.index, c.page)
		}
		at = first + part.To
	}
	return nil
}

// find is the page that holds a row, looked for from page `from` on first.
func (c *column) find(row int64, from int) int {
	if from < len(c.pages) && row >= c.pages[from].first && row < c.pages[from].first+c.pages[from].rows {
		return from
	}
	low, high := 0, len(c.pages)
	for low < high {
		mid := (low + high) / 2
		if c.pages[mid].first+c.pages[mid].rows <= row {
			low = mid + 1
		} else {
			high = mid
		}
	}
	if low == len(c.pages) || row < c.pages[low].first {
		return -1
	}
	return low
}
