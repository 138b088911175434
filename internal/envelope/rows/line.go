package rows

import (
	"bytes"
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/foldline/foldline/internal/envelope"
)

// line reads {"table":…,"op":…,"row":{…}}, members in any order.
func (d *Decoder) line(dec *jsontext.Decoder, lookup Lookup, n int) error {
	l := lineReader{d: d, dec: dec, lookup: lookup, n: n}
	if dec.PeekKind() != '{' {
		return rowError("", n, notObject(dec))
	}
	if _, err := dec.ReadToken(); err != nil {
		return rowError("", n, syntaxFault(err))
	}
	for dec.PeekKind() != '}' {
		if err := l.member(); err != nil {
			return err
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return rowError(l.table, n, syntaxFault(err))
	}
	return l.finish()
}

// lineReader holds what is known of a line so far.
type lineReader struct {
	d      *Decoder
	dec    *jsontext.Decoder
	lookup Lookup
	n      int

	table  string
	op     envelope.Op
	hasOp  bool
	hasRow bool
	done   bool           // the row was read in place
	row    jsontext.Value // a row that came before its table or its operation
}

func (l *lineReader) member() error {
	raw, err := l.dec.ReadValue()
	if err != nil {
		return l.fail(syntaxFault(err))
	}
	switch string(raw) {
	case `"table"`:
		return l.readTable()
	case `"op"`:
		return l.readOp()
	case `"row"`:
		return l.readRow()
	}
	return l.fail(refuse(envelope.CodeBadLine, "a line has the members table, op and row, not "+quote(raw)))
}

func (l *lineReader) readTable() error {
	if l.table != "" {
		return l.fail(refuse(envelope.CodeDuplicateMember, "stands twice in the line").under("table"))
	}
	text, f := l.text()
	if f != nil {
		return l.fail(f.under("table"))
	}
	if !envelope.ValidTableKey(text) {
		return l.fail(refuse(envelope.CodeBadLine, "not a table key").under("table"))
	}
	l.table = text
	return nil
}

func (l *lineReader) readOp() error {
	if l.hasOp {
		return l.fail(refuse(envelope.CodeDuplicateMember, "stands twice in the line").under("op"))
	}
	text, f := l.text()
	if f != nil {
		return l.fail(f.under("op"))
	}
	op, ok := envelope.ParseOp(text)
	if !ok || text == "" {
		return l.fail(refuse(envelope.CodeUnknownOp, "the operations are upsert, insert and delete").under("op"))
	}
	l.op, l.hasOp = op, true
	return nil
}

// text reads a string without escapes: neither a table key nor an operation needs one.
func (l *lineReader) text() (string, *fault) {
	raw, err := l.dec.ReadValue()
	if err != nil {
		return "", syntaxFault(err)
	}
	if raw.Kind() != '"' {
		return "", refuse(envelope.CodeBadLine, kindName(raw.Kind())+" where a string belongs")
	}
	return string(raw[1 : len(raw)-1]), nil
}

func (l *lineReader) readRow() error {
	if l.hasRow {
		return l.fail(refuse(envelope.CodeDuplicateMember, "stands twice in the line").under("row"))
	}
	l.hasRow = true
	if l.table != "" && l.hasOp {
		l.done = true
		return l.build(l.dec)
	}
	raw, err := l.dec.ReadValue()
	if err != nil {
		return l.fail(syntaxFault(err))
	}
	// A value of the reader is valid until its next call only; the row waits for members behind it.
	l.row = bytes.Clone(raw)
	return nil
}

func (l *lineReader) build(dec *jsontext.Decoder) error {
	b, err := l.d.build(l.table, l.lookup)
	if err != nil {
		var e *envelope.Error
		if errors.As(err, &e) && e.Row == envelope.NoRow {
			located := *e
			located.Row = l.n
			return &located
		}
		return err
	}
	if f := b.line(dec, l.op, l.n); f != nil {
		return l.fail(f)
	}
	return nil
}

func (l *lineReader) finish() error {
	switch {
	case l.table == "":
		return l.fail(refuse(envelope.CodeBadLine, "the line names no table").under("table"))
	case !l.hasRow:
		return l.fail(refuse(envelope.CodeBadLine, "the line has no row").under("row"))
	case l.done:
		return nil
	}
	l.d.row.Reset(bytes.NewBuffer(l.row), jsontext.AllowDuplicateNames(true))
	return l.build(l.d.row)
}

func (l *lineReader) fail(f *fault) error { return rowError(l.table, l.n, f) }
