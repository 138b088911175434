package lance

import (
	"context"
	"errors"
	"fmt"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/foldline/foldline/lance/internal/file"
	"github.com/foldline/foldline/lance/internal/pb"
	"github.com/foldline/foldline/objstore"
)

// defaultMaxRowsPerFile is the engine's size of a full fragment.
const defaultMaxRowsPerFile = 1 << 20

// WriteOptions tunes a FragmentWriter. The zero value is ready to use.
type WriteOptions struct {
	// MaxRowsPerFile is the number of rows after which the next fragment begins; zero is 1,048,576.
	MaxRowsPerFile int64
	// PageBytes is what is held per column before a page is written; zero is the file package's default, 8 MiB.
	PageBytes int64
	// FileVersion is the version of the data files; empty is "2.1". All files of a table have one version.
	FileVersion string
}

// FragmentWriter writes rows into data files, one fragment per file, to be named by a transaction later. Until a commit names
// them the files are invisible. It belongs to one goroutine and must end in Finish or Abort.
type FragmentWriter struct {
	// ctx bounds the uploads, which begin inside Write: the records' producer has no context to hand over.
	ctx    context.Context
	store  objstore.Store
	root   string
	schema *Schema
	o      WriteOptions

	path   string
	upload objstore.Upload
	file   *file.Writer
	rows   int64

	done []Fragment
	err  error
}

// NewFragmentWriter writes data files of a table at root with schema s. Nothing is stored before the first row comes.
func NewFragmentWriter(ctx context.Context, store objstore.Store, root string, s *Schema, o WriteOptions) *FragmentWriter {
	if o.MaxRowsPerFile <= 0 {
		o.MaxRowsPerFile = defaultMaxRowsPerFile
	}
	if o.FileVersion == "" {
		o.FileVersion = file.V21.String()
	}
	return &FragmentWriter{ctx: ctx, store: store, root: root, schema: s, o: o}
}

// NewFragmentWriter writes data files of the table's own schema and file version. On a table that needs writer features that are not
// known, the first Write is ErrUnsupported and nothing is stored.
func (t *Table) NewFragmentWriter(ctx context.Context, o WriteOptions) *FragmentWriter {
	if o.FileVersion == "" {
		o.FileVersion = t.FileVersion()
	}
	w := NewFragmentWriter(ctx, t.store, t.root, t.schema, o)
	w.err = checkWriterFlags(t.m.pb)
	return w
}

// Write appends the rows of rec, whose columns are those of the schema, in its order; rec may be released when Write returns.
// ErrInvalid names the column, and the row of a null in a column that takes none. After an error only Abort is of use.
func (w *FragmentWriter) Write(rec arrow.Record) error {
	if w.err == nil {
		w.err = w.write(rec)
	}
	return w.err
}

func (w *FragmentWriter) write(rec arrow.Record) error {
	if err := w.check(rec); err != nil {
		return err
	}
	for from := int64(0); from < rec.NumRows(); {
		if w.file == nil {
			if err := w.begin(); err != nil {
				return err
			}
		}
		to := min(rec.NumRows(), from+w.o.MaxRowsPerFile-w.rows)
		part := rec.NewSlice(from, to)
		err := w.file.Write(part)
		part.Release()
		if err != nil {
			return fileError(w.path, err)
		}
		w.rows += to - from
		from = to
		if w.rows == w.o.MaxRowsPerFile {
			if err := w.end(); err != nil {
				return err
			}
		}
	}
	return nil
}

// check holds a record to the schema.
func (w *FragmentWriter) check(rec arrow.Record) error {
	want := w.schema.arrow
	if rec.NumCols() != int64(want.NumFields()) {
		return invalid("a record of %d columns for a table of %d", rec.NumCols(), want.NumFields())
	}
	for i, f := range want.Fields() {
		got := rec.Schema().Field(i)
		if got.Name != f.Name || !arrow.TypeEqual(got.Type, f.Type) {
			return invalid("column %d is %q of type %s, want %q of type %s", i, got.Name, got.Type, f.Name, f.Type)
		}
		c := rec.Column(i)
		if f.Nullable || c.NullN() == 0 {
			continue
		}
		for row := range c.Len() {
			if c.IsNull(row) {
				return invalid("row %d: column %q takes no null", row, f.Name)
			}
		}
	}
	return nil
}

func (w *FragmentWriter) begin() error {
	version, err := file.ParseVersion(w.o.FileVersion)
	if err != nil {
		return fileError(w.root, err)
	}
	w.path, w.rows = dataFileName(), 0
	key := join(w.root, dataFolder, w.path)
	if w.upload, err = w.store.Create(w.ctx, key); err != nil {
		return storeError(err)
	}
	w.file, err = file.NewWriter(w.upload, w.schema.fields, file.WriterOptions{Version: version, PageBytes: w.o.PageBytes})
	if err != nil {
		return fileError(w.path, err)
	}
	return nil
}

// end finishes the current file and describes it as a fragment.
func (w *FragmentWriter) end() error {
	summary, err := w.file.Finish()
	if err != nil {
		return fileError(w.path, err)
	}
	if err := commitUpload(w.ctx, w.store, join(w.root, dataFolder, w.path), w.upload, summary.Bytes); err != nil {
		return err
	}
	d := &pb.DataFile{
		Path: w.path, FileSizeBytes: uint64(summary.Bytes),
		FileMajorVersion: uint32(summary.Version.Major), FileMinorVersion: uint32(summary.Version.Minor),
	}
	for _, c := range summary.Columns {
		d.Fields = append(d.Fields, c.FieldID)
		d.ColumnIndices = append(d.ColumnIndices, c.Index)
	}
	w.done = append(w.done, Fragment{&pb.DataFragment{Files: []*pb.DataFile{d}, PhysicalRows: uint64(summary.Rows)}})
	w.file, w.upload = nil, nil
	return nil
}

// Finish ends the last file and returns the fragments, without ids, in row order; none when no row was written. The files are
// durable when it returns nil.
func (w *FragmentWriter) Finish() ([]Fragment, error) {
	if w.err == nil && w.file != nil {
		w.err = w.end()
	}
	if w.err != nil {
		return nil, errors.Join(w.err, w.Abort())
	}
	w.err = fmt.Errorf("%w: the fragment writer has finished", ErrInvalid)
	done := w.done
	w.done = nil
	return done, nil
}

// Abort drops what was written. After a Finish that returned fragments it does nothing: a commit may name them.
func (w *FragmentWriter) Abort() error {
	var errs []error
	if w.upload != nil {
		errs = append(errs, w.upload.Abort())
		w.upload, w.file = nil, nil
	}
	for _, f := range w.done {
		errs = append(errs, w.store.Delete(w.ctx, join(w.root, dataFolder, f.m.GetFiles()[0].GetPath())))
	}
	w.done = nil
	if w.err == nil {
		w.err = fmt.Errorf("%w: the fragment writer was aborted", ErrInvalid)
	}
	return errors.Join(errs...)
}

// abortWith drops what w wrote because of err and returns both errors.
func abortWith(w *FragmentWriter, err error) error { return errors.Join(err, w.Abort()) }
