package rows

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// body is the text of a message on its way through the decoder: rows of the common form are scanned by us, and everything
// else is read by the library's reader.
type body struct {
	text []byte
	at   int // behind the last row
	line bool
	dec  *jsontext.Decoder
	base int // where the reader's text begins; negative when it has none of this body
	buf  bytes.Buffer
}

func (b *body) begin(text []byte) { b.text, b.at, b.base = text, 0, -1 }

// more tells whether there is text behind the last row, and notes whether it stands on a line of its own.
func (b *body) more() bool {
	next := skipSpace(b.text, b.at)
	b.line = b.at == 0 || bytes.IndexByte(b.text[b.at:next], '\n') >= 0
	return next < len(b.text)
}

// scan takes the next row apart, when it has the common form and its end is not in doubt.
func (b *body) scan(t *Table, into []member, most int) ([]member, bool) {
	next := skipSpace(b.text, b.at)
	if b.text[next] != '{' {
		return into, false
	}
	members, length, ok := scanRow(b.text[next:], t, into, most)
	if end := next + length; ok && (end == len(b.text) || skipSpace(b.text, end) > end) {
		b.at = end
		return members, true
	}
	return members, false
}

// reader is the library's reader, standing behind the last row.
func (b *body) reader() *jsontext.Decoder {
	if b.base < 0 || b.base+int(b.dec.InputOffset()) != b.at {
		b.base = b.at
		b.buf = *bytes.NewBuffer(b.text[b.at:])
		// We look for duplicate members where we look at members at all, at a fraction of the reader's cost.
		b.dec.Reset(&b.buf, jsontext.AllowDuplicateNames(true))
	}
	return b.dec
}

// read notes that the reader has read a row.
func (b *body) read() { b.at = b.base + int(b.dec.InputOffset()) }
