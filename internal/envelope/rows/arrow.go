package rows

import (
	"errors"
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/foldline/foldline/internal/envelope"
	"github.com/foldline/foldline/internal/envelope/ipcstream"
)

// arrowStream reads an Arrow stream of one table. The record's memory is the message's and the Go heap's, not the decoder's allocator's.
func (d *Decoder) arrowStream(m Message, lookup Lookup) (Added, error) {
	if m.Table == "" {
		return Added{}, messageError(m, envelope.CodeUnsupportedContent, "an Arrow stream goes to the subject of one table")
	}
	t, err := lookup(m.Table)
	if err != nil {
		return Added{}, lookupError(m.Table, err)
	}
	schema, batches, err := d.stream.Read(m.Body)
	if err != nil {
		return Added{}, streamError(m, err)
	}
	if d.match.table != t || d.match.schema != schema {
		d.match = matchColumns(t, schema)
	}
	return d.fit(m, t, batches)
}

// match tells where the columns of a table are in a stream's schema. The stream's reader gives the same schema for the same bytes, so that a producer's
// next message has the match of the one before.
type match struct {
	table   *Table
	schema  *arrow.Schema
	at      []int    // by column of the table, negative where the stream has none
	unknown []string // columns of the stream that the table has not
}

func matchColumns(t *Table, schema *arrow.Schema) match {
	m := match{table: t, schema: schema, at: make([]int, len(t.names))}
	for i := range m.at {
		m.at[i] = -1
	}
	for i, f := range schema.Fields() {
		if column, known := t.index[f.Name]; known {
			m.at[column] = i
		} else {
			m.unknown = append(m.unknown, f.Name)
		}
	}
	return m
}

// heap is the allocator of what comes from a stream: its buffers are the Go heap's, so that nothing has to be given back
// when a later column refuses the message.
func heap() memory.Allocator { return memory.NewGoAllocator() }

func streamError(m Message, err error) error {
	e := &envelope.Error{Class: envelope.ClassInvalid, Code: envelope.CodeBadArrow, Table: m.Table, Row: envelope.NoRow, Reason: err.Error()}
	switch {
	case errors.Is(err, ipcstream.ErrTooLarge):
		e.Code = envelope.CodeTooLarge
	case errors.Is(err, ipcstream.ErrTooDeep):
		e.Code = envelope.CodeTooDeep
	}
	var at *ipcstream.Error
	if errors.As(err, &at) {
		e.Field = at.Field
	}
	return e
}

// fit makes one record of the table's columns out of a stream's.
func (d *Decoder) fit(m Message, t *Table, batches []ipcstream.Batch) (Added, error) {
	total := 0
	for _, b := range batches {
		total += b.Rows
	}
	if total == 0 {
		return Added{}, messageError(m, envelope.CodeEmptyBody, "the stream has no rows")
	}
	if total > d.limits.RecordBytes/t.width {
		return Added{}, messageError(m, envelope.CodeTooLarge, fmt.Sprintf("%d rows of at least %d bytes each, the limit is %d bytes", total, t.width, d.limits.RecordBytes))
	}
	if unknown := d.match.unknown; len(unknown) > 0 && !t.spec.DropUnknown {
		return Added{}, columnError(m, unknown[0], envelope.NoRow, envelope.CodeUnknownField, "the table has no such column")
	}
	dropped := total * len(d.match.unknown)
	columns := make([]arrow.Array, len(t.isKey))
	for i := range columns {
		var err error
		if columns[i], err = d.fitColumn(m, t, i, batches, total); err != nil {
			return Added{}, err
		}
	}
	if err := d.checkKeyBytes(m, t, columns, total); err != nil {
		return Added{}, err
	}
	record := array.NewRecord(t.record, columns, int64(total))
	d.batch.records = append(d.batch.records, record)
	d.batch.tables = append(d.batch.tables, TableRows{Table: t, Record: record, Count: total, Op: m.Op})
	return Added{Rows: total, Dropped: dropped, first: len(d.batch.tables) - 1, end: len(d.batch.tables)}, nil
}

// fitColumn finds, converts and checks one column of the table.
func (d *Decoder) fitColumn(m Message, t *Table, i int, batches []ipcstream.Batch, total int) (arrow.Array, error) {
	want, at := t.spec.Arrow.Field(i), d.match.at[i]
	ignored := m.Op == envelope.OpDelete && !t.isKey[i]
	if at < 0 || ignored {
		switch {
		case t.isKey[i]:
			return nil, columnError(m, want.Name, envelope.NoRow, envelope.CodeMissingKey, "a key column is missing")
		case !ignored && !want.Nullable && m.Op != envelope.OpDelete:
			return nil, columnError(m, want.Name, envelope.NoRow, envelope.CodeNullInRequired, "missing, and the column takes no null")
		}
		return array.MakeArrayOfNull(heap(), want.Type, total), nil
	}
	var parts []arrow.Array
	row := 0
	for _, b := range batches {
		data, f := convert(b.Columns[at], want, d.limits)
		if f != nil {
			if t.isKey[i] && f.code == envelope.CodeNullInRequired {
				f.code, f.reason = envelope.CodeMissingKey, "null in a key column"
			}
			if f.row != envelope.NoRow {
				f.row += row
			}
			return nil, columnError(m, f.under(want.Name).path, f.row, f.code, f.reason)
		}
		part := array.MakeFromData(data)
		if len(batches) == 1 {
			return part, nil
		}
		parts = append(parts, part)
		row += b.Rows
	}
	whole, err := array.Concatenate(parts, heap())
	if err != nil {
		return nil, columnError(m, want.Name, envelope.NoRow, envelope.CodeTooLarge, err.Error())
	}
	return whole, nil
}

// checkKeyBytes bounds the key of each row.
func (d *Decoder) checkKeyBytes(m Message, t *Table, columns []arrow.Array, total int) error {
	d.sizes = slices.Grow(d.sizes[:0], total)[:total]
	clear(d.sizes)
	separator := min(1, len(t.spec.Key)-1)
	for i, column := range columns {
		if !t.isKey[i] {
			continue
		}
		text, isText := column.(interface{ ValueLen(int) int })
		for row := range d.sizes {
			size := 8
			if isText {
				size = text.ValueLen(row)
			}
			if d.sizes[row] += separator + size; d.sizes[row] > d.limits.KeyBytes {
				return columnError(m, t.record.Field(i).Name, row, envelope.CodeTooLarge, fmt.Sprintf("a key of more than %d bytes", d.limits.KeyBytes))
			}
		}
	}
	return nil
}

func columnError(m Message, field string, row int, code envelope.Code, reason string) error {
	return &envelope.Error{Class: envelope.ClassInvalid, Code: code, Table: m.Table, Row: row, Field: field, Reason: reason}
}
