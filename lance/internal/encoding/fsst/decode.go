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
	// Slack is how many bytes beyond a value its decoding may write.
	Slack = 8

	magic          = 0x46535354
	compressedFlag = 1 << 24
	escape         = 255
	maxSymbols     = 255
)

// Decoder decodes the values of one page.
type Decoder struct {
	symbols [256]uint64
	lengths [256]uint8 // 0 = no symbol
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

// Decode writes the value that src codes into dst, which has room for Expand×len(src)+Slack bytes, and returns its
// length.
func (d *Decoder) Decode(dst, src []byte) (int, error) {
	var end [1]int64
	_, n, err := DecodeValues(d, dst, src, []uint64{0, uint64(len(src))}, end[:], 0)
	return n, err
}

// DecodeValues decodes the values that stand in src between each two neighbours of offsets into dst, one behind the other, as many as surely fit there: the first one does
// when dst has room for Expand×its length+Slack bytes. It notes in ends where each one ends, counted from base, and returns how many values and bytes it has written.
// encoding.ErrCorrupt when the offsets fall or lie beyond src, or a value is none.
func DecodeValues[T encoding.Offset, S uint32 | uint64](d *Decoder, dst, src []byte, offsets []S, ends []T, base int) (values, bytes int, err error) {
	at := 0
	for i := range len(offsets) - 1 {
		from, to := offsets[i], offsets[i+1]
		if to < from || uint64(to) > uint64(len(src)) {
			return 0, 0, encoding.Corruptf("value %d from %d to %d of %d bytes", i, from, to, len(src))
		}
		value := src[from:to]
		if at+len(value)*Expand+Slack > len(dst) {
			return i, at, nil
		}
		if d.plain {
			at += copy(dst[at:], value)
			ends[i] = T(base + at)
			continue
		}
		for j := 0; j < len(value); j++ {
			code := value[j]
			n := d.lengths[code]
			if n == 0 { // no symbol has the code of an escape
				if code != escape {
					return 0, 0, encoding.Corruptf("FSST code %d is not in the table", code)
				}
				if j++; j == len(value) {
					return 0, 0, encoding.Corruptf("FSST value ends in an escape")
				}
				dst[at] = value[j]
				at++
				continue
			}
			binary.LittleEndian.PutUint64(dst[at:], d.symbols[code])
			at += int(n)
		}
		ends[i] = T(base + at)
	}
	return len(offsets) - 1, at, nil
}
