package file

import (
	"io"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/foldline/foldline/lance/internal/schema"
)

// ColumnRef says which column of the file holds a field, as a manifest lists it.
type ColumnRef struct {
	FieldID int32
	Index   int32
}

// Summary describes a finished file.
type Summary struct {
	Rows, Bytes int64
	Version     Version
	// Columns lists the leaf fields in column order.
	Columns []ColumnRef
}

// Writer writes one data file front to back. It is for one goroutine.
type Writer struct{}

// NewWriter begins a file for the given fields (pre-order, with the table's ids). Nothing is written to dst
// before the first page is full. Errors wrap ErrUnsupported when a type or the version cannot be written.
func NewWriter(dst io.Writer, fields []schema.Field, opts WriterOptions) (*Writer, error) {
	panic("pending")
}

// Write appends the rows of rec, whose columns stand in schema order and have the schema's types. The record
// may be released when Write returns. After an error the file is of no use.
func (w *Writer) Write(rec arrow.Record) error { panic("pending") }

// Finish writes what is still held and the file's metadata. The Writer cannot be used after it.
func (w *Writer) Finish() (Summary, error) { panic("pending") }
