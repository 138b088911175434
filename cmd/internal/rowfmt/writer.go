package rowfmt

import (
	"bufio"
	"bytes"
	"fmt"
	"io"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/foldline/foldline/internal/rowjson"
)

// Writer writes records of one schema. It retains nothing of a record after Write.
type Writer interface {
	Write(rec arrow.Record) error
	// Close ends the stream (the Arrow end marker, the last flush); it does not close the destination.
	Close() error
}

// New returns a writer of the given format: json, csv or arrow. A header (csv, arrow) is written even without rows.
func New(dst io.Writer, format string, schema *arrow.Schema) (Writer, error) {
	switch format {
	case "json":
		return &textWriter{dst: bufio.NewWriter(dst), row: rowjson.AppendRow}, nil
	case "csv":
		w := &textWriter{dst: bufio.NewWriter(dst), row: appendCSV}
		return w, w.header(schema)
	case "arrow":
		return &arrowWriter{ipc.NewWriter(dst, ipc.WithSchema(schema))}, nil
	}
	return nil, fmt.Errorf("rowfmt: format %q is not json, csv or arrow", format)
}

type arrowWriter struct{ w *ipc.Writer }

func (a *arrowWriter) Write(rec arrow.Record) error { return a.w.Write(rec) }
func (a *arrowWriter) Close() error                 { return a.w.Close() }

type textWriter struct {
	dst  *bufio.Writer
	row  func(dst []byte, rec arrow.Record, row int) ([]byte, error)
	line []byte
}

func (t *textWriter) header(schema *arrow.Schema) error {
	var line []byte
	for i, f := range schema.Fields() {
		if i > 0 {
			line = append(line, ',')
		}
		line = appendField(line, []byte(f.Name))
	}
	_, err := t.dst.Write(append(line, '\n'))
	return err
}

func (t *textWriter) Write(rec arrow.Record) error {
	for i := range int(rec.NumRows()) {
		var err error
		if t.line, err = t.row(t.line[:0], rec, i); err != nil {
			return err
		}
		if _, err := t.dst.Write(append(t.line, '\n')); err != nil {
			return err
		}
	}
	return nil
}

func (t *textWriter) Close() error { return t.dst.Flush() }

func appendCSV(dst []byte, rec arrow.Record, row int) ([]byte, error) {
	var text []byte
	for c, column := range rec.Columns() {
		if c > 0 {
			dst = append(dst, ',')
		}
		if column.IsNull(row) {
			continue
		}
		value, err := rowjson.AppendValue(text[:0], column, row)
		if err != nil {
			return dst, err
		}
		if text = value; value[0] == '"' {
			if value, err = jsontext.AppendUnquote(nil, value); err != nil {
				return dst, fmt.Errorf("rowfmt: column %q: %w", rec.ColumnName(c), err)
			}
		}
		dst = appendField(dst, value)
	}
	return dst, nil
}

// appendField appends a CSV field of RFC 4180; an empty text is quoted, because the empty field is null.
func appendField(dst, text []byte) []byte {
	if len(text) > 0 && !bytes.ContainsAny(text, "\",\r\n") {
		return append(dst, text...)
	}
	dst = append(dst, '"')
	dst = append(dst, bytes.ReplaceAll(text, []byte{'"'}, []byte{'"', '"'})...)
	return append(dst, '"')
}
