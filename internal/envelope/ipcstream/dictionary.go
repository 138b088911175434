package ipcstream

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/apache/arrow/go/v17/arrow"
)

// dictionary holds the values that indices stand for; nil is a null value.
type dictionary struct {
	values [][]byte
}

// readDictionary takes a DictionaryBatch: a new dictionary, another in its place, or more values behind it.
func (r *reader) readDictionary(header flatTable, body []byte) error {
	id, delta := header.number(0, 8, 0), header.number(2, 1, 0) != 0
	table, ok := header.child(1)
	if header.f.err != nil || !ok {
		return errors.Join(errors.New("a dictionary without values"), header.f.err)
	}
	of := findDictionary(r.columns, id)
	if of == nil {
		return fmt.Errorf("dictionary %d belongs to no column", id)
	}
	b, err := r.open(table, body)
	if err != nil {
		return err
	}
	data, err := b.column(&column{field: arrow.Field{Name: "dictionary", Type: of, Nullable: true}}, b.rows)
	if err != nil {
		return fmt.Errorf("dictionary %d: %w", id, err)
	}
	if err := b.close(); err != nil {
		return err
	}
	d := r.dictionaries[id]
	if d == nil && delta {
		return fmt.Errorf("values are added to dictionary %d, which is not there", id)
	}
	if d == nil || !delta {
		d = &dictionary{}
		if r.dictionaries == nil {
			r.dictionaries = map[int64]*dictionary{}
		}
		r.dictionaries[id] = d
	}
	// A slice header per value is memory too.
	if err := r.spend(24 * data.Len()); err != nil {
		return err
	}
	d.values = append(d.values, bytesOf(data, of)...)
	return nil
}

// bytesOf are the values of checked data of strings or bytes.
func bytesOf(data arrow.ArrayData, t arrow.DataType) [][]byte {
	v := values{length: data.Len()}
	if b := data.Buffers()[0]; b != nil {
		v.validity = b.Bytes()
	}
	o := offsets{raw: data.Buffers()[1].Bytes(), wide: wideOffsets(t)}
	text := data.Buffers()[2].Bytes()
	out := make([][]byte, v.length)
	for i := range out {
		if !v.null(i) {
			out[i] = text[o.at(i):o.at(i+1):o.at(i+1)]
		}
	}
	return out
}

// findDictionary is the value type of the dictionary of an id, nil when no column has it. All columns of one id have to
// agree, or the values would be taken for another type.
func findDictionary(columns []column, id int64) arrow.DataType {
	var found arrow.DataType
	for i := range columns {
		c := &columns[i]
		t := findDictionary(c.children, id)
		if c.dictionary != nil && c.dictionary.id == id {
			t = c.field.Type
		}
		if t == nil {
			continue
		}
		if found != nil && !arrow.TypeEqual(found, t) {
			return nil
		}
		found = t
	}
	return found
}

// indices expands a column of indices.
func (b *batch) indices(c *column, v values) (arrow.ArrayData, error) {
	width := c.dictionary.index.BitWidth() / 8
	raw, err := b.buffer(v.length * width)
	if err != nil {
		return nil, err
	}
	d := b.r.dictionaries[c.dictionary.id]
	if d == nil {
		if v.nulls < v.length {
			return nil, fmt.Errorf("dictionary %d was not sent", c.dictionary.id)
		}
		d = &dictionary{}
	}
	return b.expand(c, v, d, func(i int) uint64 {
		switch width {
		case 1:
			return uint64(raw[i])
		case 2:
			return uint64(binary.LittleEndian.Uint16(raw[2*i:]))
		case 4:
			return uint64(binary.LittleEndian.Uint32(raw[4*i:]))
		}
		return binary.LittleEndian.Uint64(raw[8*i:])
	})
}

// expand writes the values of indices out. A negative index is a large one here, and out of range like it.
func (b *batch) expand(c *column, v values, d *dictionary, index func(int) uint64) (arrow.ArrayData, error) {
	wide := wideOffsets(c.field.Type)
	offsets := make([]byte, 0, 8*(v.length+1))
	var text []byte
	validity := make([]byte, bitmapBytes(v.length))
	out := values{length: v.length, validity: validity}
	offsets = appendOffset(offsets, 0, wide)
	for i := range v.length {
		var value []byte
		if !v.null(i) {
			at := index(i)
			if at >= uint64(len(d.values)) {
				return nil, fmt.Errorf("index %d at %d, the dictionary has %d values", int64(at), i, len(d.values))
			}
			value = d.values[at]
		}
		if value == nil {
			out.nulls++
		} else {
			validity[i/8] |= 1 << (i % 8)
			if err := b.r.spend(len(value)); err != nil {
				return nil, err
			}
		}
		text = append(text, value...)
		offsets = appendOffset(offsets, len(text), wide)
	}
	if err := b.r.spend(len(offsets)); err != nil {
		return nil, err
	}
	if out.nulls == 0 {
		out.validity = nil
	}
	return b.data(out, c.field.Type, [][]byte{offsets, text}), nil
}

func appendOffset(dst []byte, n int, wide bool) []byte {
	if wide {
		return binary.LittleEndian.AppendUint64(dst, uint64(n))
	}
	return binary.LittleEndian.AppendUint32(dst, uint32(n))
}
