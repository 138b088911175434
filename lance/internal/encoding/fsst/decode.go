// Package fsst implements the FSST string compression of Lance pages: a table of up to 255 symbols of one to
// eight bytes, one table per page, every value coded on its own. A Decoder is immutable and safe for
// concurrent use.
package fsst

import (
	"encoding/binary"

	"github.com/foldline/foldline/lance/internal/encoding"
)

const (
	// TableBytes is the size of a serialized symbol table: header, symbols, lengths and zero fill.
	TableBytes = 8 + 256*8 + 256
	// Expand is how many bytes one code can stand for.
	Expand = 8

	magic          = 0x46535354
	compressedFlag = 1 << 24
	escape         = 255
	maxSymbols     = 255
)

// Decoder decodes the values of one page.
type Decoder struct {
	symbols [256]uint64
	lengths [256]uint8
	// plain tells that the values are not compressed.
	plain bool
}

// NewDecoder reads a serialized symbol table.
func NewDecoder(table []byte) (*Decoder, error) {
	if len(table) < 8 {
		return nil, encoding.Corruptf("FSST table of %d bytes", len(table))
	}
	header := binary.LittleEndian.Uint64(table)
	if header>>32 != magic {
		return nil, encoding.Corruptf("FSST table without its magic")
	}
	d := &Decoder{plain: header&compressedFlag == 0}
	n := int(header & 0xff)
	if n > maxSymbols || len(table) < 8+n*9 {
		return nil, encoding.Corruptf("FSST table of %d bytes for %d symbols", len(table), n)
	}
	for i := range n {
		d.symbols[i] = binary.LittleEndian.Uint64(table[8+i*8:])
		d.lengths[i] = table[8+n*8+i]
		if l := d.lengths[i]; l < 1 || l > 8 {
			return nil, encoding.Corruptf("FSST symbol %d of %d bytes", i, l)
		}
	}
	return d, nil
}

// Plain reports whether values are stored as they are.
func (d *Decoder) Plain() bool { return d.plain }

// Decode writes the value that src codes into dst, which has room for Expand×len(src)+8 bytes, and returns its
// length.
func (d *Decoder) Decode(dst, src []byte) (int, error) {
	if d.plain {
		return copy(dst, src), nil
	}
	at := 0
	for i := 0; i < len(src); i++ {
		code := src[i]
		if code == escape {
			i++
			if i == len(src) {
				return 0, encoding.Corruptf("FSST value ends in an escape")
			}
			dst[at] = src[i]
			at++
			continue
		}
		n := d.lengths[code]
		if n == 0 {
			return 0, encoding.Corruptf("FSST code %d is not in the table", code)
		}
		binary.LittleEndian.PutUint64(dst[at:], d.symbols[code])
		at += int(n)
	}
	return at, nil
}
