package client

import (
	"bytes"
	"encoding/json"

	"github.com/foldline/foldline/internal/envelope"
)

// encodeRow is the JSON of one row on one line.
func encodeRow(table string, number int, value any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return nil, refused(envelope.CodeBadJSON, table, number, "%v", err)
	}
	line := bytes.TrimSpace(out.Bytes())
	if len(line) == 0 || line[0] != '{' {
		return nil, refused(envelope.CodeBadLine, table, number, "a row is a JSON object")
	}
	return line, nil
}

// encodeRows are the lines of a message to one table.
func encodeRows(table string, values []any) ([][]byte, error) {
	if !envelope.ValidTableKey(table) {
		return nil, refused(envelope.CodeBadSubject, "", envelope.NoRow, "%q is no table key", table)
	}
	if len(values) == 0 {
		return nil, refused(envelope.CodeEmptyBody, table, envelope.NoRow, "no rows")
	}
	lines := make([][]byte, len(values))
	for i, v := range values {
		var err error
		if lines[i], err = encodeRow(table, i, v); err != nil {
			return nil, err
		}
	}
	return lines, nil
}

// encodeMixed are the lines of a message to several tables.
func encodeMixed(rows []Row) ([][]byte, error) {
	if len(rows) == 0 {
		return nil, refused(envelope.CodeEmptyBody, "", envelope.NoRow, "no rows")
	}
	lines := make([][]byte, len(rows))
	for i, r := range rows {
		if !envelope.ValidTableKey(r.Table) {
			return nil, refused(envelope.CodeBadSubject, "", i, "%q is no table key", r.Table)
		}
		line, err := encodeRow(r.Table, i, r.Value)
		if err != nil {
			return nil, err
		}
		// Neither a table key nor an operation has a character that JSON escapes.
		lines[i] = bytes.Join([][]byte{[]byte(`{"table":"` + r.Table + `","op":"` + r.Op.String() + `","row":`), line, []byte(`}`)}, nil)
	}
	return lines, nil
}

func body(lines [][]byte) []byte { return bytes.Join(lines, []byte("\n")) }

// checkSize refuses what the server would close the connection for, and names the largest row.
func checkSize(table string, lines [][]byte, size int, limit int64) error {
	if int64(size) <= limit {
		return nil
	}
	largest := 0
	for i, line := range lines {
		if len(line) > len(lines[largest]) {
			largest = i
		}
	}
	return refused(envelope.CodeTooLarge, table, largest, "a message of %d bytes (%d in its largest row), the server takes %d", size, len(lines[largest]), limit)
}
