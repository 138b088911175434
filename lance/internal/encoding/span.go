package encoding

// Span is a run of bytes in a file.
type Span struct{ Off, Len int64 }

// End is the offset behind the span.
func (s Span) End() int64 { return s.Off + s.Len }

// Sub is the part of the span that begins at off and takes n bytes; it is an error when that does not lie
// inside.
func (s Span) Sub(off, n int64) (Span, error) {
	if off < 0 || n < 0 || off > s.Len || n > s.Len-off {
		return Span{}, Corruptf("bytes %d+%d of a buffer of %d", off, n, s.Len)
	}
	return Span{s.Off + off, n}, nil
}

// Range is a run of rows [From, To).
type Range struct{ From, To int64 }

// Len is the number of rows.
func (r Range) Len() int { return int(r.To - r.From) }

// Loaded gives bytes that have been read from the file.
type Loaded interface {
	// Bytes returns the bytes of a span that was asked for before. The slice must not be changed.
	Bytes(Span) ([]byte, error)
}
