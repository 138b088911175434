package lance

import (
	"context"
	"errors"
	"fmt"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/foldline/foldline/lance/internal/file"
	"github.com/foldline/foldline/lance/internal/pb"
	"github.com/foldline/foldline/lance/internal/schema"
	"github.com/foldline/foldline/objstore"
)

// objectSource reads a data file from a store.
type objectSource struct {
	store objstore.Store
	key   string
}

func (s objectSource) GetRange(ctx context.Context, off, n int64) ([]byte, error) {
	return s.store.GetRange(ctx, s.key, off, n)
}

func (s objectSource) GetTail(ctx context.Context, n int64) ([]byte, int64, error) {
	return s.store.GetTail(ctx, s.key, n)
}

// selection is the columns that a read asks for.
type selection struct {
	subtrees [][]schema.Field
	schema   *arrow.Schema
}

// selectColumns finds top-level columns by name; nil selects all.
func (s *Schema) selectColumns(names []string) (*selection, error) {
	if names == nil {
		for _, f := range s.arrow.Fields() {
			names = append(names, f.Name)
		}
	}
	out := &selection{}
	fields := make([]arrow.Field, 0, len(names))
	for _, name := range names {
		i, ok := s.top[name]
		if !ok {
			return nil, invalid("no column %q", name)
		}
		sub := schema.Subtree(s.fields, i)
		out.subtrees = append(out.subtrees, sub)
		f, err := schema.ToArrowField(sub)
		if err != nil {
			return nil, schemaError(err)
		}
		fields = append(fields, f)
	}
	out.schema = arrow.NewSchema(fields, nil)
	return out, nil
}

// fileColumns is the part of a selection that one data file holds.
type fileColumns struct {
	file    *pb.DataFile
	version file.Version
	// columns of the file and, for each, its place in the selection.
	columns []file.Column
	at      []int
}

// filesOf distributes a selection over the fragment's data files. A column that no file holds is in none: it reads null.
func (s *selection) filesOf(f Fragment) ([]*fileColumns, error) {
	var out []*fileColumns
	owner := make(map[int]bool)
	for _, d := range f.m.GetFiles() {
		part, err := s.fileOf(d)
		if err != nil {
			return nil, fmt.Errorf("fragment %d: %w", f.ID(), err)
		}
		for _, at := range part.at {
			if owner[at] {
				return nil, unsupported("fragment %d: column %q is spread over several files", f.ID(), s.schema.Field(at).Name)
			}
			owner[at] = true
		}
		if len(part.at) > 0 {
			out = append(out, part)
		}
	}
	return out, nil
}

func (s *selection) fileOf(d *pb.DataFile) (*fileColumns, error) {
	version, err := fileVersion(d)
	if err != nil {
		return nil, err
	}
	columnOf, err := columnsByField(d)
	if err != nil {
		return nil, err
	}
	part := &fileColumns{file: d, version: version}
	for at, sub := range s.subtrees {
		held := false
		for _, f := range file.PhysicalFields(sub, version) {
			_, ok := columnOf[f.ID]
			held = held || ok
		}
		if !held {
			continue
		}
		c, err := file.NewColumn(sub, version, columnOf)
		if err != nil {
			return nil, fileError(d.GetPath(), err)
		}
		part.columns = append(part.columns, c)
		part.at = append(part.at, at)
	}
	return part, nil
}

func fileVersion(d *pb.DataFile) (file.Version, error) {
	v, err := file.ParseVersion(fmt.Sprintf("%d.%d", d.GetFileMajorVersion(), d.GetFileMinorVersion()))
	if err != nil {
		return v, fileError(d.GetPath(), err)
	}
	return v, nil
}

// columnsByField maps field ids to column indexes. Tombstones and parents without a column of their own are left out.
func columnsByField(d *pb.DataFile) (map[int32]int32, error) {
	if len(d.GetFields()) != len(d.GetColumnIndices()) {
		return nil, corrupt(d.GetPath(), "the manifest lists %d fields and %d columns", len(d.GetFields()), len(d.GetColumnIndices()))
	}
	out := make(map[int32]int32, len(d.GetFields()))
	for i, id := range d.GetFields() {
		if column := d.GetColumnIndices()[i]; id >= 0 && column >= 0 {
			out[id] = column
		}
	}
	return out, nil
}

// openFile opens a data file of the table.
func (t *Table) openFile(ctx context.Context, f Fragment, d *pb.DataFile, mem memory.Allocator) (*file.Reader, error) {
	key, err := t.dataKey(d)
	if err != nil {
		return nil, err
	}
	r, err := file.OpenReader(ctx, objectSource{t.store, key}, file.ReaderOptions{
		Name: key, Size: int64(d.GetFileSizeBytes()), Allocator: mem,
	})
	if err != nil {
		return nil, fileError(key, err)
	}
	if rows := f.PhysicalRows(); rows > 0 && uint64(r.Rows()) != rows {
		return nil, corrupt(key, "holds %d rows, the manifest says %d", r.Rows(), rows)
	}
	return r, nil
}

// physicalRows returns the fragment's row count, from a data file when its writer left it out of the manifest.
func (t *Table) physicalRows(ctx context.Context, f Fragment) (uint64, error) {
	if n := f.PhysicalRows(); n > 0 || len(f.m.GetFiles()) == 0 {
		return n, nil
	}
	r, err := t.openFile(ctx, f, f.m.GetFiles()[0], nil)
	if err != nil {
		return 0, err
	}
	return uint64(r.Rows()), nil
}

// fileError puts an error of the file package into our classes.
func fileError(object string, err error) error {
	var damaged *file.CorruptError
	switch {
	case errors.Is(err, file.ErrUnsupported):
		return fmt.Errorf("%w: %s: %w", ErrUnsupported, object, err)
	case errors.As(err, &damaged):
		return &CorruptError{Object: object, Err: err}
	case errors.Is(err, file.ErrInvalid):
		return fmt.Errorf("%w: %s: %w", ErrInvalid, object, err)
	}
	return storeError(err)
}
