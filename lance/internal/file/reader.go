package file

import (
	"context"
	"iter"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/foldline/foldline/lance/internal/schema"
)

// Source is where a file's bytes come from. It must be safe for concurrent use; the returned slices belong to
// the caller.
type Source interface {
	// GetRange returns exactly n bytes from off, or an error.
	GetRange(ctx context.Context, off, n int64) ([]byte, error)
	// GetTail returns the last min(n, size) bytes and the size.
	GetTail(ctx context.Context, n int64) (data []byte, size int64, err error)
}

// Column asks a Reader for one top-level field.
type Column struct {
	// Field is the name and Arrow type under which the values are returned.
	Field arrow.Field
	// Leaves holds, for every physical column of the field in column order, its index in the file; -1 when the
	// file does not have it: it then reads as null. The physical columns are those of PhysicalFields.
	Leaves []int32
}

// PhysicalFields returns the fields of a subtree that own a column in files of version v, in column order: the
// leaves from 2.1 on, every field in 2.0. These are also the fields that a manifest lists for the file.
func PhysicalFields(sub []schema.Field, v Version) []schema.Field {
	var out []schema.Field
	for _, f := range sub {
		if !v.structural() || f.IsLeaf() {
			out = append(out, f)
		}
	}
	return out
}

// NewColumn makes the Column of a subtree (as schema.Subtree returns it) of a file of version v. columnOf maps
// field ids to column indexes of the file; a field that it lacks reads as null.
func NewColumn(sub []schema.Field, v Version, columnOf map[int32]int32) (Column, error) {
	field, err := schema.ToArrowField(sub)
	if err != nil {
		return Column{}, err
	}
	c := Column{Field: field}
	for _, f := range PhysicalFields(sub, v) {
		index, ok := columnOf[f.ID]
		if !ok {
			index = -1
		}
		c.Leaves = append(c.Leaves, index)
	}
	return c, nil
}

// Reader reads one data file. It is safe for concurrent use.
type Reader struct{}

// OpenReader reads the file's footer, schema and column metadata: one request for most files.
func OpenReader(ctx context.Context, src Source, opts ReaderOptions) (*Reader, error) {
	panic("pending")
}

// Rows is the number of rows of the file.
func (r *Reader) Rows() int64 { panic("pending") }

// Version is the file's version.
func (r *Reader) Version() Version { panic("pending") }

// Fields is the schema that the file itself carries.
func (r *Reader) Fields() []schema.Field { panic("pending") }

// Columns returns all columns of the file by its own schema.
func (r *Reader) Columns() ([]Column, error) { panic("pending") }

// Scan yields the rows [from, to) of cols in order, in records of batchRows rows (0 is 8,192) but for the
// last. The consumer releases each record. The sequence ends after the first error. Memory is bounded by one
// record plus WindowBytes per column.
func (r *Reader) Scan(ctx context.Context, cols []Column, from, to int64, batchRows int) iter.Seq2[arrow.Record, error] {
	panic("pending")
}

// Take returns the rows at offsets, which must rise strictly, as one record that the caller releases. It reads
// only the chunks that hold them.
func (r *Reader) Take(ctx context.Context, cols []Column, offsets []uint32) (arrow.Record, error) {
	panic("pending")
}
