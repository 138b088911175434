package run

import (
	"fmt"

	"github.com/foldline/foldline/fold"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/envelope"
	"github.com/foldline/foldline/internal/envelope/rows"
)

// replayLimits let every row through that was accepted once, whatever the limits were then.
var replayLimits = rows.Limits{PayloadBytes: 1 << 30, RecordBytes: 1 << 30, StringBytes: 1 << 28, KeyBytes: 1 << 20, Columns: 1 << 16, Nesting: 1 << 8} // read only

// decodeLetters reads the rows of dead letters with the decoder of the wire: they are written in its form.
func decodeLetters(t heads.Table, letters []fold.JSONRow) (fold.DecodedRows, error) {
	schema, err := heads.ArrowSchema(t.Columns)
	if err != nil {
		return fold.DecodedRows{}, err
	}
	table, err := rows.NewTable(rows.Spec{Table: t.Key, ID: uint64(t.ID), Arrow: schema, Key: t.PrimaryKey, DropUnknown: t.UnknownFields == heads.DropUnknown})
	if err != nil {
		return fold.DecodedRows{}, err
	}
	lines := make([]rows.Line, len(letters))
	for i, l := range letters {
		op, ok := envelope.ParseOp(l.Op.String())
		if !ok {
			return fold.DecodedRows{}, fmt.Errorf("operation %s of a dead letter", l.Op)
		}
		lines[i] = rows.Line{Op: op, Row: l.Row}
	}
	decoder := rows.NewDecoder(nil, replayLimits)
	defer decoder.Close()
	rec, refused, err := decoder.DecodeEach(table, lines)
	out := fold.DecodedRows{Record: rec, Refused: map[int]fold.Refusal{}}
	for i, e := range refused {
		out.Refused[i] = fold.Refusal{Code: string(e.Code), Field: e.Field, Reason: e.Reason}
	}
	return out, err
}
