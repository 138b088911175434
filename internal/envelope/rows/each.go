package rows

import (
	"errors"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/foldline/foldline/internal/envelope"
)

// Line is one row with its operation.
type Line struct {
	Op  envelope.Op
	Row []byte // a JSON object
}

// DecodeEach decodes rows of one table that were accepted before, so that one which the table cannot take any more refuses itself and not the
// others. The record holds the accepted rows in their order, nil when there are none, and is the caller's; the refusals are by index. Any other error
// concerns all rows.
//
// The decoder must hold nothing that was not taken.
func (d *Decoder) DecodeEach(table *Table, lines []Line) (arrow.Record, map[int]*envelope.Error, error) {
	lookup := func(string) (*Table, error) { return table, nil }
	refused := map[int]*envelope.Error{}
	var accepted []int
	for i, l := range lines {
		_, err := d.Add(Message{Table: table.Key(), Op: l.Op, Body: l.Row}, lookup)
		var e *envelope.Error
		switch {
		case err == nil:
			accepted = append(accepted, i)
		case errors.As(err, &e):
			refused[i] = e
		default:
			return nil, nil, err
		}
	}
	var batch Batch
	d.Take(&batch) // each row was tried alone
	batch.Release()
	if len(accepted) == 0 {
		return nil, refused, nil
	}
	body, err := mixedBody(table.Key(), lines, accepted)
	if err != nil {
		return nil, nil, err
	}
	added, err := d.Add(Message{Body: body}, lookup)
	d.Take(&batch)
	defer batch.Release()
	if err != nil {
		return nil, nil, err
	}
	t := batch.Tables(added)[0]
	return t.Record.NewSlice(int64(t.First), int64(t.First+t.Count)), refused, nil
}

// mixedBody writes lines that name their table and operation.
func mixedBody(table string, lines []Line, chosen []int) ([]byte, error) {
	name, err := jsontext.AppendQuote(nil, table)
	if err != nil {
		return nil, err
	}
	var body []byte
	for _, i := range chosen {
		body = append(append(append(body, `{"table":`...), name...), `,"op":"`...)
		body = append(append(append(append(body, lines[i].Op.String()...), `","row":`...), lines[i].Row...), "}\n"...)
	}
	return body, nil
}
