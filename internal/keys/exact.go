package keys

import (
	"encoding/binary"
	"errors"
)

// Exact builds an unambiguous encoding of a key for use as a map key. Lance key bytes cannot serve for
// that when a key has several columns: the text "a\x00b" beside "c" and "a" beside "b\x00c" give the
// same bytes. Here each part of such a key is preceded by its length (unsigned varint); a key of one
// column is its Lance bytes, unchanged.
//
// Two keys are equal exactly when their encodings are, as long as both belong to tables whose key
// columns have the same types. Make one with [NewExact], then per row append every part in key order
// and read the result. Not safe for concurrent use.
type Exact struct {
	columns int
	buf     []byte
}

// NewExact makes a builder for keys of the given number of columns (1 or more).
func NewExact(columns int) *Exact { return &Exact{columns: columns} }

// Reset drops the parts appended so far, for the next row.
func (e *Exact) Reset() { e.buf = e.buf[:0] }

// AppendString appends a utf8 or large_utf8 part.
func (e *Exact) AppendString(v string) {
	e.length(len(v))
	e.buf = AppendString(e.buf, v)
}

// AppendBytes appends a binary or large_binary part.
func (e *Exact) AppendBytes(v []byte) {
	e.length(len(v))
	e.buf = AppendBytes(e.buf, v)
}

// AppendInt appends a signed integer part.
func (e *Exact) AppendInt(v int64) {
	e.length(8)
	e.buf = AppendInt(e.buf, v)
}

// AppendUint appends an unsigned integer part.
func (e *Exact) AppendUint(v uint64) {
	e.length(8)
	e.buf = AppendUint(e.buf, v)
}

// Bytes is the encoding of the parts since the last Reset; it is valid until the next call.
func (e *Exact) Bytes() []byte { return e.buf }

// String is the encoding of the parts since the last Reset, as a copy that may be kept.
func (e *Exact) String() string { return string(e.buf) }

func (e *Exact) length(n int) {
	if e.columns > 1 {
		e.buf = binary.AppendUvarint(e.buf, uint64(n))
	}
}

// ErrExact: bytes that are not an exact encoding.
var ErrExact = errors.New("keys: not an exact encoding of a key")

// AppendLance appends the Lance key bytes of a key of the given number of columns, given its exact encoding.
func AppendLance(dst, exact []byte, columns int) ([]byte, error) {
	if columns == 1 {
		return append(dst, exact...), nil
	}
	for range columns {
		n, width := binary.Uvarint(exact)
		if width <= 0 || n > uint64(len(exact)-width) {
			return dst, ErrExact
		}
		dst = AppendSeparator(append(dst, exact[width:width+int(n)]...))
		exact = exact[width+int(n):]
	}
	if len(exact) > 0 {
		return dst, ErrExact
	}
	return dst, nil
}
