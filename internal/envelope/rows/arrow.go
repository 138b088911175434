package rows

import (
	"errors"
	"fmt"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/foldline/foldline/internal/envelope"
	"github.com/foldline/foldline/internal/envelope/ipcstream"
)

// arrowStream reads an Arrow stream of one table. The record's memory is the Go heap's, not the decoder's allocator's.
func (d *Decoder) arrowStream(m Message, lookup Lookup) (Added, error) {
	if m.Table == "" {
		return Added{}, messageError(m, envelope.CodeUnsupportedContent, "an Arrow stream goes to the subject of one table")
	}
	t, err := lookup(m.Table)
	if err != nil {
		return Added{}, lookupError(m.Table, err)
	}
	schema, records, err := d.stream.Read(m.Body)
	if err != nil {
		return Added{}, streamError(m, err)
	}
	r, err := d.fit(m, t, schema, records)
	if err != nil {
		return Added{}, err
	}
	return r, nil
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
func (d *Decoder) fit(m Message, t *Table, schema *arrow.Schema, records []arrow.Record) (Added, error) {
	total := 0
	for _, rec := range records {
		total += int(rec.NumRows())
	}
	if total == 0 {
		return Added{}, messageError(m, envelope.CodeEmptyBody, "the stream has no rows")
	}
	if total > d.limits.RecordBytes/t.width {
		return Added{}, messageError(m, envelope.CodeTooLarge, fmt.Sprintf("%d rows of at least %d bytes each, the limit is %d bytes", total, t.width, d.limits.RecordBytes))
	}
	dropped := 0
	for _, f := range schema.Fields() {
		if _, known := t.index[f.Name]; known {
			continue
		}
		if !t.spec.DropUnknown {
			return Added{}, columnError(m, f.Name, envelope.NoRow, envelope.CodeUnknownField, "the table has no such column")
		}
		dropped += total
	}
	columns := make([]arrow.Array, len(t.isKey))
	for i := range columns {
		var err error
		if columns[i], err = d.fitColumn(m, t, i, schema, records, total); err != nil {
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
func (d *Decoder) fitColumn(m Message, t *Table, i int, schema *arrow.Schema, records []arrow.Record, total int) (arrow.Array, error) {
	want := t.spec.Arrow.Field(i)
	at := schema.FieldIndices(want.Name)
	ignored := m.Op == envelope.OpDelete && !t.isKey[i]
	if len(at) == 0 || ignored {
		switch {
		case t.isKey[i]:
			return nil, columnError(m, want.Name, envelope.NoRow, envelope.CodeMissingKey, "a key column is missing")
		case !ignored && !want.Nullable && m.Op != envelope.OpDelete:
			return nil, columnError(m, want.Name, envelope.NoRow, envelope.CodeNullInRequired, "missing, and the column takes no null")
		}
		return array.MakeArrayOfNull(heap(), want.Type, total), nil
	}
	parts := make([]arrow.Array, len(records))
	row := 0
	for n, rec := range records {
		data, f := convert(rec.Column(at[0]).Data(), want, d.limits)
		if f != nil {
			if t.isKey[i] && f.code == envelope.CodeNullInRequired {
				f.code, f.reason = envelope.CodeMissingKey, "null in a key column"
			}
			if f.row != envelope.NoRow {
				f.row += row
			}
			return nil, columnError(m, f.under(want.Name).path, f.row, f.code, f.reason)
		}
		parts[n] = array.MakeFromData(data)
		row += int(rec.NumRows())
	}
	if len(parts) == 1 {
		return parts[0], nil
	}
	whole, err := array.Concatenate(parts, heap())
	if err != nil {
		return nil, columnError(m, want.Name, envelope.NoRow, envelope.CodeTooLarge, err.Error())
	}
	return whole, nil
}

// checkKeyBytes bounds the key of each row.
func (d *Decoder) checkKeyBytes(m Message, t *Table, columns []arrow.Array, total int) error {
	sizes := make([]int, total)
	for i, column := range columns {
		if !t.isKey[i] {
			continue
		}
		for row := range total {
			if len(t.spec.Key) > 1 {
				sizes[row]++
			}
			sizes[row] += valueBytes(column, row)
			if sizes[row] > d.limits.KeyBytes {
				return columnError(m, t.record.Field(i).Name, row, envelope.CodeTooLarge, fmt.Sprintf("a key of more than %d bytes", d.limits.KeyBytes))
			}
		}
	}
	return nil
}

// valueBytes is what a value adds to a Lance key.
func valueBytes(column arrow.Array, row int) int {
	if text, ok := column.(interface{ ValueLen(int) int }); ok {
		return text.ValueLen(row)
	}
	return 8
}

func columnError(m Message, field string, row int, code envelope.Code, reason string) error {
	return &envelope.Error{Class: envelope.ClassInvalid, Code: code, Table: m.Table, Row: row, Field: field, Reason: reason}
}
