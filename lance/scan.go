package lance

import (
	"context"
	"fmt"
	"iter"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
)

// RowAddressColumn is the name of the column that a scan adds on request.
const RowAddressColumn = "_rowaddr"

const defaultBatchRows = 8192

// ScanOptions says what a scan returns. The zero value returns all columns of all live rows.
type ScanOptions struct {
	// Columns are the top-level columns wanted, in that order; nil is all, an empty list none.
	Columns []string
	// RowAddress adds a last column "_rowaddr" of type uint64, see [RowAddress].
	RowAddress bool
	// BatchRows is the number of physical rows per record, 8,192 by default; records hold fewer where rows are deleted.
	BatchRows int
	// Fragments are the ids of the fragments to read, in that order; nil is all.
	Fragments []uint64
	// Allocator of the records' memory; nil is the Go allocator.
	Allocator memory.Allocator
}

// Scan yields the live rows in fragment order, deleted rows left out. The consumer releases each record. The sequence ends
// after the first error. Memory is bounded by one record and the read-ahead of one fragment's files.
func (t *Table) Scan(ctx context.Context, o ScanOptions) iter.Seq2[arrow.Record, error] {
	fragments, err := t.fragmentsByID(o.Fragments)
	if err != nil {
		return func(yield func(arrow.Record, error) bool) { yield(nil, err) }
	}
	return t.ScanFragments(ctx, fragments, o)
}

// ScanFragments yields the rows of fragments that need not be part of this version, such as those that a [FragmentWriter] has
// uploaded and no commit has named yet, in the order given and through this version's schema. o.Fragments is not used. Otherwise
// it is [Table.Scan].
func (t *Table) ScanFragments(ctx context.Context, fragments []Fragment, o ScanOptions) iter.Seq2[arrow.Record, error] {
	if o.BatchRows <= 0 {
		o.BatchRows = defaultBatchRows
	}
	if o.Allocator == nil {
		o.Allocator = memory.DefaultAllocator
	}
	return func(yield func(arrow.Record, error) bool) {
		sel, err := t.schema.selectColumns(o.Columns)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, f := range fragments {
			if more, err := t.scanFragment(ctx, f, sel, o, yield); err != nil {
				yield(nil, fmt.Errorf("scan fragment %d of table %q version %d: %w", f.ID(), t.root, t.Version(), err))
				return
			} else if !more {
				return
			}
		}
	}
}

func (t *Table) fragmentsByID(ids []uint64) ([]Fragment, error) {
	if ids == nil {
		return t.Fragments(), nil
	}
	out := make([]Fragment, 0, len(ids))
	for _, id := range ids {
		f, ok := t.Fragment(id)
		if !ok {
			return nil, fmt.Errorf("%w: fragment %d in version %d", ErrNotFound, id, t.Version())
		}
		out = append(out, f)
	}
	return out, nil
}

// scanFragment yields the live rows of one fragment; more is false when the consumer has had enough.
func (t *Table) scanFragment(
	ctx context.Context, f Fragment, sel *selection, o ScanOptions, yield func(arrow.Record, error) bool,
) (more bool, err error) {
	deleted, err := t.deletionsOf(ctx, f)
	if err != nil {
		return false, err
	}
	src, err := t.openColumns(ctx, f, sel, o)
	if err != nil {
		return false, err
	}
	defer src.close()
	out := batchBuilder{sel: sel, fragment: f.ID(), deleted: deleted, mem: o.Allocator, schema: sel.schema}
	if o.RowAddress {
		out.addRowAddress()
	}
	for {
		columns, rows, err := src.next(ctx)
		if err != nil || rows == 0 {
			return err == nil, err
		}
		rec, err := out.build(columns, rows)
		releaseAll(columns)
		if err != nil {
			return false, err
		}
		if rec != nil && !yield(rec, nil) {
			return false, nil
		}
	}
}

// columnSource steps through the files of a fragment side by side.
type columnSource struct {
	o     ScanOptions
	sel   *selection
	parts []*fileColumns
	pull  []func() (arrow.Record, error, bool)
	stop  []func()
	left  uint64
}

func (t *Table) openColumns(ctx context.Context, f Fragment, sel *selection, o ScanOptions) (*columnSource, error) {
	parts, err := sel.filesOf(f)
	if err != nil {
		return nil, err
	}
	rows, err := t.physicalRows(ctx, f)
	if err != nil {
		return nil, err
	}
	src := &columnSource{o: o, sel: sel, parts: parts, left: rows}
	for _, p := range parts {
		r, err := t.openFile(ctx, f, p.file, o.Allocator)
		if err != nil {
			src.close()
			return nil, err
		}
		key := join(t.root, dataFolder, p.file.GetPath())
		next, stop := iter.Pull2(r.Scan(ctx, p.columns, 0, int64(rows), o.BatchRows))
		src.pull = append(src.pull, func() (arrow.Record, error, bool) {
			rec, err, ok := next()
			if err != nil {
				err = fileError(key, err)
			}
			return rec, err, ok
		})
		src.stop = append(src.stop, stop)
	}
	return src, nil
}

func (s *columnSource) close() {
	for _, stop := range s.stop {
		stop()
	}
}

// next returns the columns of the next rows in the selection's order, to be released; 0 rows at the end.
func (s *columnSource) next(ctx context.Context) (columns []arrow.Array, rows int, err error) {
	if err := ctx.Err(); err != nil || s.left == 0 {
		return nil, 0, err
	}
	rows = int(min(uint64(s.o.BatchRows), s.left))
	columns = make([]arrow.Array, len(s.sel.subtrees))
	for i, part := range s.parts {
		rec, err, ok := s.pull[i]()
		if err == nil && (!ok || rec.NumRows() != int64(rows)) {
			err = corrupt(part.file.GetPath(), "ends before the fragment's last row")
		}
		if err != nil {
			releaseAll(columns)
			return nil, 0, err
		}
		for j, at := range part.at {
			columns[at] = rec.Column(j)
			columns[at].Retain()
		}
		rec.Release()
	}
	for at := range columns {
		if columns[at] == nil {
			columns[at] = array.MakeArrayOfNull(s.o.Allocator, s.sel.schema.Field(at).Type, rows)
		}
	}
	s.left -= uint64(rows)
	return columns, rows, nil
}

func releaseAll(columns []arrow.Array) {
	for _, c := range columns {
		if c != nil {
			c.Release()
		}
	}
}

// batchBuilder turns columns of consecutive physical rows into records of live rows.
type batchBuilder struct {
	sel      *selection
	schema   *arrow.Schema
	fragment uint64
	deleted  *roaring.Bitmap
	mem      memory.Allocator
	address  bool
	offset   uint64
}

func (b *batchBuilder) addRowAddress() {
	b.address = true
	fields := append(b.sel.schema.Fields(), arrow.Field{Name: RowAddressColumn, Type: arrow.PrimitiveTypes.Uint64})
	b.schema = arrow.NewSchema(fields, nil)
}

// build returns the live rows, nil when there are none.
func (b *batchBuilder) build(columns []arrow.Array, rows int) (arrow.Record, error) {
	from := b.offset
	b.offset += uint64(rows)
	runs, live := liveRuns(b.deleted, from, rows)
	if live == 0 {
		return nil, nil
	}
	out := make([]arrow.Array, 0, len(columns)+1)
	defer func() { releaseAll(out) }()
	for _, c := range columns {
		kept, err := gather(c, runs, b.mem)
		if err != nil {
			return nil, err
		}
		out = append(out, kept)
	}
	if b.address {
		out = append(out, addresses(b.mem, b.fragment, from, runs, live))
	}
	return array.NewRecord(b.schema, out, int64(live)), nil
}

// liveRuns lists the stretches of rows [from, from+rows) that are not deleted, relative to from.
func liveRuns(deleted *roaring.Bitmap, from uint64, rows int) (runs []run, live int) {
	at := 0
	if deleted != nil && !deleted.IsEmpty() {
		it := deleted.Iterator()
		it.AdvanceIfNeeded(uint32(from))
		for it.HasNext() && uint64(it.PeekNext()) < from+uint64(rows) {
			gap := int(uint64(it.Next()) - from)
			if gap > at {
				runs = append(runs, run{at, gap})
				live += gap - at
			}
			at = gap + 1
		}
	}
	if at < rows {
		runs = append(runs, run{at, rows})
		live += rows - at
	}
	return runs, live
}

func addresses(mem memory.Allocator, fragment, from uint64, runs []run, live int) arrow.Array {
	buffer := memory.NewResizableBuffer(mem)
	defer buffer.Release()
	buffer.Resize(live * arrow.Uint64SizeBytes)
	out := arrow.Uint64Traits.CastFromBytes(buffer.Bytes())
	for _, r := range runs {
		first := fragment<<32 | (from + uint64(r.from))
		part := out[:r.to-r.from]
		for i := range part {
			part[i] = first + uint64(i)
		}
		out = out[len(part):]
	}
	data := array.NewData(arrow.PrimitiveTypes.Uint64, live, []*memory.Buffer{nil, buffer}, nil, 0, 0)
	defer data.Release()
	return array.NewUint64Data(data)
}
