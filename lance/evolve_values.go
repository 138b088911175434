package lance

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"google.golang.org/protobuf/proto"

	"github.com/foldline/foldline/lance/internal/pb"
	"github.com/foldline/foldline/lance/internal/schema"
)

// FillColumns plans a commit that adds top-level columns with values: compute gets the rows of the named columns, deleted ones
// included, and returns an array of as many values for each new field, which it hands over. One data file is written for each
// fragment, beside those it has; until the commit nothing has changed. Memory is that of a scan and a write. ErrInvalid: a name that
// is taken or reserved, a key column, values of another type or number, or a null in a column that takes none.
func (t *Table) FillColumns(
	ctx context.Context, from []string, compute func(arrow.Record) ([]arrow.Array, error), fields ...arrow.Field,
) (*Merge, error) {
	next, err := t.newFields(fields)
	if err != nil {
		return nil, err
	}
	added := schema.ToProto(next)
	s, err := t.evolved(append(slices.Clone(t.schema.proto), added...))
	if err != nil {
		return nil, err
	}
	own, err := schemaOf(added, nil)
	if err != nil {
		return nil, err
	}
	op := &Merge{Schema: s}
	for _, f := range t.Fragments() {
		file, err := t.fillFragment(ctx, f, own, from, compute)
		if err != nil {
			return nil, fmt.Errorf("add columns to fragment %d of table %q: %w", f.ID(), t.root, err)
		}
		m := proto.CloneOf(f.m)
		m.Files = append(m.Files, file)
		op.Fragments = append(op.Fragments, Fragment{m})
	}
	return op, nil
}

// newFields numbers new columns on from the highest id ever used.
func (t *Table) newFields(fields []arrow.Field) ([]schema.Field, error) {
	next, err := schema.FromArrow(arrow.NewSchema(fields, nil))
	if err != nil {
		return nil, schemaError(err)
	}
	first := t.highestFieldID() + 1
	for i, f := range next {
		if f.PrimaryKey {
			return nil, invalid("new column %q: the primary key is set when a table is created", f.Name)
		}
		next[i].ID += first
		if f.ParentID != schema.NoParent {
			next[i].ParentID += first
		}
	}
	return next, nil
}

// fillFragment writes the new columns of all physical rows of a fragment.
func (t *Table) fillFragment(
	ctx context.Context, f Fragment, own *Schema, from []string, compute func(arrow.Record) ([]arrow.Array, error),
) (*pb.DataFile, error) {
	w := NewFragmentWriter(ctx, t.store, t.root, own, WriteOptions{MaxRowsPerFile: math.MaxUint32, FileVersion: t.FileVersion()})
	w.err = checkWriterFlags(t.m.pb)
	whole := withDeletions(f, nil)
	for rec, err := range t.ScanFragments(ctx, []Fragment{whole}, ScanOptions{Columns: from}) {
		if err != nil {
			return nil, abortWith(w, err)
		}
		if err := writeComputed(w, rec, compute); err != nil {
			return nil, abortWith(w, err)
		}
	}
	done, err := w.Finish()
	if err != nil {
		return nil, err
	}
	if len(done) != 1 || done[0].PhysicalRows() != f.PhysicalRows() {
		return nil, corrupt(t.m.object, "fragment %d has not the %d rows that it says", f.ID(), f.PhysicalRows())
	}
	return done[0].m.GetFiles()[0], nil
}

func writeComputed(w *FragmentWriter, rec arrow.Record, compute func(arrow.Record) ([]arrow.Array, error)) error {
	defer rec.Release()
	values, err := compute(rec)
	defer releaseAll(values)
	if err != nil {
		return err
	}
	want := w.schema.arrow
	if len(values) != want.NumFields() {
		return invalid("%d arrays for %d new columns", len(values), want.NumFields())
	}
	fields := slices.Clone(want.Fields())
	for i, v := range values {
		if int64(v.Len()) != rec.NumRows() {
			return invalid("new column %q has %d values for %d rows", fields[i].Name, v.Len(), rec.NumRows())
		}
		fields[i].Type = v.DataType()
	}
	made := array.NewRecord(arrow.NewSchema(fields, nil), values, rec.NumRows())
	defer made.Release()
	return w.Write(made)
}

// ForbidNull plans a commit that lets a top-level column hold no more nulls, after a scan of the column has found none. It must be
// committed on t: a version of others in between makes it ErrConflict, since it may have brought a null. A writer of others that planned
// before it and commits after it is not stopped by the format; pause those. ErrInvalid: no such column, or a row with a null, which it
// names.
func (t *Table) ForbidNull(ctx context.Context, column string) (*Project, error) {
	for rec, err := range t.Scan(ctx, ScanOptions{Columns: []string{column}, RowAddress: true}) {
		if err != nil {
			return nil, err
		}
		err = firstNull(rec, column)
		rec.Release()
		if err != nil {
			return nil, err
		}
	}
	op, err := t.changeColumn(column, func(f *pb.Field) { f.Nullable = false })
	if err != nil {
		return nil, err
	}
	op.validated = true
	return op, nil
}

func firstNull(rec arrow.Record, column string) error {
	values := rec.Column(0)
	if values.NullN() == 0 {
		return nil
	}
	for i := range values.Len() {
		if values.IsNull(i) {
			return invalid("column %q is null in row %s", column, RowAddress(rec.Column(1).(*array.Uint64).Value(i)))
		}
	}
	return nil
}
