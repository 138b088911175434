package file

import (
	"context"
	"fmt"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/foldline/foldline/lance/internal/encoding"
	"github.com/foldline/foldline/lance/internal/encoding/levels"
	"github.com/foldline/foldline/lance/internal/encoding/structural"
	"github.com/foldline/foldline/lance/internal/encoding/v20"
	"github.com/foldline/foldline/lance/internal/pb"
	"github.com/foldline/foldline/lance/internal/pb/pb20"
	"github.com/foldline/foldline/lance/internal/pb/pb21"
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
type Reader struct {
	src     Source
	name    string
	opts    ReaderOptions
	size    int64
	tail    segment // the end of the file, from the first metadata on
	footer  footer
	rows    int64
	fields  []schema.Field
	columns []*column
}

// column is a physical column of the file.
type column struct {
	rows  int64
	pages []pageInfo
}

// pageInfo is what the column metadata says of a page.
type pageInfo struct {
	first, rows int64
	buffers     []encoding.Span
	bytes       int64
	encoding    *pb.Encoding
}

// Rows is the number of rows of the file.
func (r *Reader) Rows() int64 { return r.rows }

// Version is the file's version.
func (r *Reader) Version() Version { return r.footer.version }

// Fields is the schema that the file itself carries.
func (r *Reader) Fields() []schema.Field { return r.fields }

// Columns returns all columns of the file by its own schema, whose order is the order of the columns.
func (r *Reader) Columns() ([]Column, error) {
	columnOf := map[int32]int32{}
	for i, f := range PhysicalFields(r.fields, r.Version()) {
		columnOf[f.ID] = int32(i)
	}
	var out []Column
	for i := 0; i < len(r.fields); {
		sub := schema.Subtree(r.fields, i)
		c, err := NewColumn(sub, r.Version(), columnOf)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
		i += len(sub)
	}
	return out, nil
}

// plan is a request for columns, checked against the file.
type plan struct {
	r      *Reader
	schema *arrow.Schema
	fields []fieldPlan
}

// fieldPlan is one top-level field of a plan.
type fieldPlan struct {
	tree *levels.Tree
	// index holds the column of each leaf of the tree; -1 when the file does not have it.
	index []int32
	// nodes holds the column of each node of the tree when the field has lists in a file of version 2.0, whose
	// offsets are columns of their own; nil otherwise.
	nodes []int32
}

func (r *Reader) plan(cols []Column) (*plan, error) {
	p := &plan{r: r}
	fields := make([]arrow.Field, len(cols))
	for i, c := range cols {
		tree, err := levels.NewTree(c.Field)
		if err != nil {
			return nil, err
		}
		f, err := r.planField(tree, c.Leaves)
		if err != nil {
			return nil, err
		}
		p.fields = append(p.fields, f)
		fields[i] = c.Field
	}
	p.schema = arrow.NewSchema(fields, nil)
	return p, nil
}

// planField checks the columns of a field against the file.
func (r *Reader) planField(tree *levels.Tree, columns []int32) (fieldPlan, error) {
	f := fieldPlan{tree: tree, index: columns}
	want := len(tree.Leaves)
	if !r.Version().structural() {
		want = tree.Nodes
	}
	if len(columns) != want {
		return f, fmt.Errorf("%w: field %q has %d columns, not %d", ErrInvalid, tree.Field.Name, want, len(columns))
	}
	for _, index := range columns {
		if index >= int32(len(r.columns)) {
			return f, r.corrupt("schema", 0, "column %d of %d", index, len(r.columns))
		}
	}
	if !r.Version().structural() {
		f.index = make([]int32, len(tree.Leaves))
		for i := range tree.Leaves {
			steps := tree.Leaves[i].Steps()
			f.index[i] = columns[steps[len(steps)-1].Node]
			if tree.Leaves[i].Path.HasLists() {
				f.nodes = columns
			}
		}
	}
	if f.nodes != nil {
		return f, nil
	}
	for _, index := range f.index {
		if index >= 0 && r.columns[index].rows != r.rows {
			return f, r.corrupt(fmt.Sprintf("column %d", index), 0, "%d rows, the file has %d", r.columns[index].rows, r.rows)
		}
	}
	return f, nil
}

// openPage opens a page of a leaf.
func (r *Reader) openPage(index int32, number int, leaf *levels.LeafPath) (structural.Page, error) {
	info := &r.columns[index].pages[number]
	if !r.Version().structural() {
		enc, err := r.arrayEncoding(index, number)
		if err != nil {
			return nil, err
		}
		page, err := v20.Open(enc, info.rows, info.buffers, leaf.Type)
		return page, r.placePage(err, index, number)
	}
	var layout pb21.PageLayout
	if err := openEncoding(info.encoding, urlStructure, &layout); err != nil {
		return nil, r.placePage(err, index, number)
	}
	page, err := structural.Open(&layout, info.rows, info.buffers, leaf)
	return page, r.placePage(err, index, number)
}

// arrayEncoding is the description of a page of version 2.0.
func (r *Reader) arrayEncoding(index int32, number int) (*pb20.ArrayEncoding, error) {
	var enc pb20.ArrayEncoding
	err := openEncoding(r.columns[index].pages[number].encoding, urlArray, &enc)
	return &enc, r.placePage(err, index, number)
}

// placePage gives an error the column and page that it is about.
func (r *Reader) placePage(err error, index int32, number int) error {
	if err == nil {
		return nil
	}
	at := int64(0)
	if buffers := r.columns[index].pages[number].buffers; len(buffers) > 0 {
		at = buffers[0].Off
	}
	return r.place(err, fmt.Sprintf("column %d page %d", index, number), at)
}

// assemble makes the record of the decoded leaves and takes their memory over.
func (p *plan) assemble(data [][]*encoding.Leaf, rows int) (arrow.Record, error) {
	arrays := make([]arrow.Array, 0, len(p.fields))
	defer func() {
		for _, a := range arrays {
			a.Release()
		}
	}()
	for i, f := range p.fields {
		a, err := f.tree.Assemble(data[i], rows, p.r.opts.Allocator)
		if err != nil {
			return nil, p.r.place(err, fmt.Sprintf("field %q", f.tree.Field.Name), 0)
		}
		arrays = append(arrays, a)
	}
	return newRecord(p.schema, arrays, int64(rows)), nil
}
