package lance

import (
	"context"
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
)

// Take returns the rows at the given addresses, in that order, repeats allowed, as one record that the caller releases; nil
// columns are all. ErrNotFound names the first address that is not a live row of this version.
func (t *Table) Take(ctx context.Context, addresses []RowAddress, columns []string) (arrow.Record, error) {
	sel, err := t.schema.selectColumns(columns)
	if err != nil {
		return nil, err
	}
	sorted := slices.Clone(addresses)
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	parts := make([][]arrow.Array, 0, 8)
	defer func() {
		for _, p := range parts {
			releaseAll(p)
		}
	}()
	for from := 0; from < len(sorted); {
		to := from
		for to < len(sorted) && sorted[to].Fragment() == sorted[from].Fragment() {
			to++
		}
		part, err := t.takeFragment(ctx, sorted[from:to], sel)
		if err != nil {
			return nil, fmt.Errorf("take from table %q version %d: %w", t.root, t.Version(), err)
		}
		parts = append(parts, part)
		from = to
	}
	return assemble(sel, parts, sorted, addresses)
}

// takeFragment returns the columns of rows of one fragment; addresses rise strictly.
func (t *Table) takeFragment(ctx context.Context, addresses []RowAddress, sel *selection) (columns []arrow.Array, err error) {
	f, ok := t.Fragment(uint64(addresses[0].Fragment()))
	if !ok {
		return nil, fmt.Errorf("%w: row %s", ErrNotFound, addresses[0])
	}
	offsets, err := t.liveOffsets(ctx, f, addresses)
	if err != nil {
		return nil, err
	}
	files, err := sel.filesOf(f)
	if err != nil {
		return nil, err
	}
	columns = make([]arrow.Array, len(sel.subtrees))
	defer func() {
		if err != nil {
			releaseAll(columns)
		}
	}()
	for _, part := range files {
		r, err := t.openFile(ctx, f, part.file, nil)
		if err != nil {
			return nil, err
		}
		rec, err := r.Take(ctx, part.columns, offsets)
		if err != nil {
			return nil, fileError(part.file.GetPath(), err)
		}
		for i, at := range part.at {
			columns[at] = rec.Column(i)
			columns[at].Retain()
		}
		rec.Release()
	}
	for at := range columns {
		if columns[at] == nil {
			columns[at] = array.MakeArrayOfNull(memory.DefaultAllocator, sel.schema.Field(at).Type, len(offsets))
		}
	}
	return columns, nil
}

// liveOffsets holds the addresses to the fragment's live rows.
func (t *Table) liveOffsets(ctx context.Context, f Fragment, addresses []RowAddress) ([]uint32, error) {
	rows, err := t.physicalRows(ctx, f)
	if err != nil {
		return nil, err
	}
	deleted, err := t.deletionsOf(ctx, f)
	if err != nil {
		return nil, err
	}
	offsets := make([]uint32, len(addresses))
	for i, a := range addresses {
		if uint64(a.Offset()) >= rows || (deleted != nil && deleted.Contains(a.Offset())) {
			return nil, fmt.Errorf("%w: row %s", ErrNotFound, a)
		}
		offsets[i] = a.Offset()
	}
	return offsets, nil
}

// assemble joins the fragments' parts, which hold the sorted addresses, and puts rows in the wanted order.
func assemble(sel *selection, parts [][]arrow.Array, sorted, wanted []RowAddress) (arrow.Record, error) {
	order := wantedOrder(sorted, wanted)
	columns := make([]arrow.Array, len(sel.subtrees))
	defer func() { releaseAll(columns) }()
	for at := range columns {
		chunks := make([]arrow.Array, len(parts))
		for i, p := range parts {
			chunks[i] = p[at]
		}
		if len(chunks) == 0 {
			columns[at] = array.MakeArrayOfNull(memory.DefaultAllocator, sel.schema.Field(at).Type, 0)
			continue
		}
		joined, err := array.Concatenate(chunks, memory.DefaultAllocator)
		if err != nil {
			return nil, fmt.Errorf("lance: join rows: %w", err)
		}
		columns[at], err = gather(joined, order, memory.DefaultAllocator)
		joined.Release()
		if err != nil {
			return nil, fmt.Errorf("lance: order rows: %w", err)
		}
	}
	return array.NewRecord(sel.schema, columns, int64(len(wanted))), nil
}

// wantedOrder expresses the wanted order as runs of rows of the sorted one.
func wantedOrder(sorted, wanted []RowAddress) []run {
	var runs []run
	for _, a := range wanted {
		at, _ := slices.BinarySearch(sorted, a)
		if n := len(runs); n > 0 && runs[n-1].to == at {
			runs[n-1].to++
		} else {
			runs = append(runs, run{at, at + 1})
		}
	}
	return runs
}
