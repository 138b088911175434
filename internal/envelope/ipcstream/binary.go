package ipcstream

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/apache/arrow/go/v17/arrow"
)

// offsets are checked: they begin at zero or above and never fall.
type offsets struct {
	raw   []byte
	wide  bool // 64 bits each
	first int64
	last  int64
}

func (o offsets) at(i int) int64 {
	if o.wide {
		return int64(binary.LittleEndian.Uint64(o.raw[8*i:]))
	}
	return int64(int32(binary.LittleEndian.Uint32(o.raw[4*i:])))
}

// onCharacters tells whether no offset points into the middle of a character.
func (o offsets) onCharacters(data []byte, length int) bool {
	for i := range length {
		if at := o.at(i); at < o.last && !utf8.RuneStart(data[at]) {
			return false
		}
	}
	return true
}

func wideOffsets(t arrow.DataType) bool {
	switch t.ID() {
	case arrow.LARGE_STRING, arrow.LARGE_BINARY, arrow.LARGE_LIST:
		return true
	}
	return false
}

// offsets reads length+1 offsets. A column without values may leave the buffer empty.
func (b *batch) offsets(t arrow.DataType, length int) (offsets, error) {
	o := offsets{wide: wideOffsets(t)}
	width := 4
	if o.wide {
		width = 8
	}
	data, err := b.rawBuffer()
	if err != nil {
		return o, err
	}
	need := (length + 1) * width
	if length == 0 && len(data) == 0 {
		data = make([]byte, need)
	}
	if len(data) < need {
		return o, fmt.Errorf("offsets of %d bytes where %d are needed", len(data), need)
	}
	o.raw = data[:need:need]
	o.first = o.at(0)
	o.last = o.first
	if o.first < 0 {
		return o, errors.New("a negative offset")
	}
	for i := 1; i <= length; i++ {
		next := o.at(i)
		if next < o.last {
			return o, fmt.Errorf("offset %d falls from %d to %d", i, o.last, next)
		}
		o.last = next
	}
	return o, nil
}

// binary reads a column of strings or bytes.
func (b *batch) binary(t arrow.DataType, v values) (arrow.ArrayData, error) {
	o, err := b.offsets(t, v.length)
	if err != nil {
		return nil, err
	}
	data, err := b.rawBuffer()
	if err != nil {
		return nil, err
	}
	if o.last > int64(len(data)) {
		return nil, fmt.Errorf("an offset of %d, there are %d bytes", o.last, len(data))
	}
	if err := checkText(t, o, data, v); err != nil {
		return nil, err
	}
	return b.data(v, t, [][]byte{o.raw, data[:o.last]}), nil
}

// checkText holds every value that is not null to UTF-8, in a column of text.
func checkText(t arrow.DataType, o offsets, data []byte, v values) error {
	if t.ID() != arrow.STRING && t.ID() != arrow.LARGE_STRING {
		return nil
	}
	// All at once, when every value begins where a character does; it is the rule.
	if utf8.Valid(data[o.first:o.last]) && o.onCharacters(data, v.length) {
		return nil
	}
	for i := range v.length {
		if !v.null(i) && !utf8.Valid(data[o.at(i):o.at(i+1)]) {
			return fmt.Errorf("value %d is not UTF-8", i)
		}
	}
	return nil
}
