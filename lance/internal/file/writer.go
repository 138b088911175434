package file

import (
	"bufio"
	"fmt"
	"io"

	"github.com/apache/arrow/go/v17/arrow"
	"google.golang.org/protobuf/proto"

	"github.com/foldline/foldline/lance/internal/pb"
	"github.com/foldline/foldline/lance/internal/schema"
)

const writeBufferBytes = 256 << 10

// ColumnRef says which column of the file holds a field, as a manifest lists it.
type ColumnRef struct {
	FieldID int32
	Index   int32
}

// Summary describes a finished file.
type Summary struct {
	Rows, Bytes int64
	Version     Version
	// Columns lists the fields that own a column, in column order.
	Columns []ColumnRef
}

// Writer writes one data file front to back. It is for one goroutine. It holds up to PageBytes of values per
// column, and while a page is written its encoded form beside them.
type Writer struct {
	out     *bufio.Writer
	pos     int64
	opts    WriterOptions
	fields  []schema.Field
	schema  *arrow.Schema
	columns []fieldWriter
	rows    int64
	err     error // sticky
}

// NewWriter begins a file for the given fields (pre-order, with the table's ids). Nothing is written to dst
// before the first page is full. Errors wrap ErrUnsupported when a type or the version cannot be written.
func NewWriter(dst io.Writer, fields []schema.Field, opts WriterOptions) (*Writer, error) {
	if err := opts.ensureDefaults(); err != nil {
		return nil, err
	}
	s, err := schema.ToArrow(fields)
	if err != nil {
		return nil, err
	}
	w := &Writer{out: bufio.NewWriterSize(dst, writeBufferBytes), opts: opts, fields: fields, schema: s}
	for _, f := range s.Fields() {
		c, err := newFieldWriter(f, opts.Version)
		if err != nil {
			return nil, err
		}
		w.columns = append(w.columns, c)
	}
	return w, nil
}

// CheckWritable tells whether files of the version can hold the fields. Errors are those of NewWriter.
func CheckWritable(fields []schema.Field, v Version) error {
	_, err := NewWriter(io.Discard, fields, WriterOptions{Version: v})
	return err
}

// Write appends the rows of rec, whose columns stand in schema order and have the schema's types. The record
// may be released when Write returns. After an error the file is of no use.
func (w *Writer) Write(rec arrow.Record) error {
	if w.err == nil {
		w.err = w.write(rec)
	}
	return w.err
}

func (w *Writer) write(rec arrow.Record) error {
	if int(rec.NumCols()) != len(w.columns) {
		return fmt.Errorf("%w: record of %d columns, the schema has %d", ErrInvalid, rec.NumCols(), len(w.columns))
	}
	for i, c := range w.columns {
		arr := rec.Column(i)
		if err := checkType(w.schema.Field(i), arr); err != nil {
			return err
		}
		if err := c.write(w, arr); err != nil {
			return err
		}
	}
	w.rows += rec.NumRows()
	return nil
}

func checkType(f arrow.Field, arr arrow.Array) error {
	if !sameLayout(arr.DataType(), f.Type) {
		return fmt.Errorf("%w: column %q is %s, the schema says %s", ErrInvalid, f.Name, arr.DataType(), f.Type)
	}
	if !f.Nullable && arr.NullN() > 0 {
		return fmt.Errorf("%w: column %q has nulls, the schema forbids them", ErrInvalid, f.Name)
	}
	return nil
}

// sameLayout compares types; the names and nullability of list items and vectors do not matter.
func sameLayout(a, b arrow.DataType) bool {
	if a.ID() != b.ID() {
		return false
	}
	switch b := b.(type) {
	case *arrow.StructType:
		fields := a.(*arrow.StructType).Fields()
		if len(fields) != b.NumFields() {
			return false
		}
		for i, f := range fields {
			if f.Name != b.Field(i).Name || !sameLayout(f.Type, b.Field(i).Type) {
				return false
			}
		}
		return true
	case *arrow.FixedSizeListType:
		other := a.(*arrow.FixedSizeListType)
		return other.Len() == b.Len() && sameLayout(other.Elem(), b.Elem())
	case arrow.ListLikeType:
		return sameLayout(a.(arrow.ListLikeType).Elem(), b.Elem())
	}
	return arrow.TypeEqual(a, b)
}

// Finish writes what is still held and the file's metadata. The Writer cannot be used after it.
func (w *Writer) Finish() (Summary, error) {
	if w.err == nil {
		w.err = w.finish()
	}
	if w.err != nil {
		return Summary{}, w.err
	}
	w.err = fmt.Errorf("%w: the file is finished", ErrInvalid)
	sum := Summary{Rows: w.rows, Bytes: w.pos, Version: w.opts.Version}
	for i, f := range PhysicalFields(w.fields, w.opts.Version) {
		sum.Columns = append(sum.Columns, ColumnRef{FieldID: f.ID, Index: int32(i)})
	}
	return sum, nil
}

func (w *Writer) finish() error {
	for _, c := range w.columns {
		if err := c.finish(w); err != nil {
			return err
		}
		c.release()
	}
	descriptor, err := w.writeMessage(&pb.FileDescriptor{Schema: &pb.Schema{Fields: schema.ToProto(w.fields)}, Length: uint64(w.rows)}, alignment)
	if err != nil {
		return err
	}
	f := footer{columnMetadata: w.pos, globals: 1, version: w.opts.Version}
	var table []byte
	for _, c := range w.columns {
		for _, column := range c.columns() {
			at, err := w.writeMessage(column, 1)
			if err != nil {
				return err
			}
			table = at.append(table)
			f.columns++
		}
	}
	f.columnOffsets = w.pos
	f.globalOffsets = f.columnOffsets + int64(len(table))
	table = descriptor.append(table)
	if err := w.writeBytes(f.append(table)); err != nil {
		return err
	}
	return w.out.Flush()
}

// writeMessage writes a message and says where it is.
func (w *Writer) writeMessage(m proto.Message, align int64) (position, error) {
	b, err := proto.Marshal(m)
	if err != nil {
		return position{}, err
	}
	if err := w.pad(align); err != nil {
		return position{}, err
	}
	at := position{off: w.pos, size: int64(len(b))}
	return at, w.writeBytes(b)
}

// writePage writes the buffers of a page and enters it into its column.
func (w *Writer) writePage(column *pb.ColumnMetadata, page *pb.ColumnMetadata_Page, buffers [][]byte) error {
	for _, b := range buffers {
		// The engine checks the alignment of empty buffers too.
		if err := w.pad(alignment); err != nil {
			return err
		}
		page.BufferOffsets = append(page.BufferOffsets, uint64(w.pos))
		page.BufferSizes = append(page.BufferSizes, uint64(len(b)))
		if err := w.writeBytes(b); err != nil {
			return err
		}
	}
	column.Pages = append(column.Pages, page)
	return nil
}

func (w *Writer) pad(align int64) error {
	var zeros [alignment]byte
	return w.writeBytes(zeros[:(align-w.pos%align)%align])
}

func (w *Writer) writeBytes(b []byte) error {
	n, err := w.out.Write(b)
	w.pos += int64(n)
	return err
}
