package levels

import (
	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/foldline/foldline/lance/internal/encoding"
)

// source gives the values of a leaf array by position.
type source struct {
	typ encoding.Type
	// base is the position of the array's first value in its buffers.
	base    int
	data    []byte
	offsets []byte
	// valid is the item validity of vectors (nil: all valid), of which validBase items precede position 0.
	valid     []byte
	validBase int
	// dataBase is the number of bits that precede position 0 in data.
	dataBase int
	// dictionary is set when the values are indexes into it.
	dictionary *array.Dictionary
	items      *source
}

func newSource(a arrow.Array, t encoding.Type) (*source, error) {
	if d, ok := a.(*array.Dictionary); ok {
		return newDictionarySource(d, t)
	}
	data := a.Data()
	s := &source{typ: t, base: data.Offset()}
	buffers := data.Buffers()
	switch t.Kind {
	case encoding.Fixed:
		if t.Vector {
			return s, s.setItems(data)
		}
		s.data = bufferBytes(buffers[1])
	case encoding.Bytes:
		s.offsets, s.data = bufferBytes(buffers[1]), bufferBytes(buffers[2])
	}
	return s, nil
}

func bufferBytes(b *memory.Buffer) []byte {
	if b == nil {
		return nil
	}
	return b.Bytes()
}

// setItems descends through fixed-size lists to their items.
func (s *source) setItems(data arrow.ArrayData) error {
	skip, outermost := 0, true
	for {
		list, ok := data.DataType().(*arrow.FixedSizeListType)
		if !ok {
			break
		}
		if !outermost && hasNulls(data) {
			return encoding.Unsupportedf("null vectors inside of vectors")
		}
		outermost = false
		skip *= int(list.Len())
		data = data.Children()[0]
		skip += data.Offset()
	}
	buffers := data.Buffers()
	s.data = bufferBytes(buffers[1])
	s.dataBase = skip * s.typ.Bits
	if hasNulls(data) {
		s.valid, s.validBase = buffers[0].Bytes(), skip
	}
	return nil
}

func hasNulls(data arrow.ArrayData) bool {
	if data.Buffers()[0] == nil || data.NullN() == 0 {
		return false
	}
	a := array.MakeFromData(data)
	defer a.Release()
	return a.NullN() > 0
}

// append adds n values from position at, all of them valid or zeroed later.
func (s *source) append(out *encoding.Values, at, n int) error {
	if s.dictionary != nil {
		return s.appendItems(out, at, n)
	}
	at += s.base
	switch s.typ.Kind {
	case encoding.Null:
		out.AppendZero(n)
	case encoding.Fixed:
		out.AppendFixed(s.data, s.dataBase+at*s.typ.ValueBits(), n, s.valid, s.validBase+at*s.typ.Dim)
	case encoding.Bytes:
		if n == 0 {
			return nil
		}
		if s.typ.OffsetBits == 32 {
			return encoding.AppendSlices[int32](out, encoding.Cast[int32](s.offsets)[at:at+n+1], s.data)
		}
		return encoding.AppendSlices[int64](out, encoding.Cast[int64](s.offsets)[at:at+n+1], s.data)
	}
	return nil
}

// appendSlots adds the values [from, to), empty or zero where def is not 0.
func (s *source) appendSlots(out *encoding.Values, from, to int, def []uint16) error {
	if def == nil {
		return s.append(out, from, to-from)
	}
	for i := 0; i < to-from; {
		j := i
		for j < to-from && (def[j] == 0) == (def[i] == 0) {
			j++
		}
		if def[i] != 0 {
			out.AppendZero(j - i)
		} else if err := s.append(out, from+i, j-i); err != nil {
			return err
		}
		i = j
	}
	return nil
}

// appendEntries adds a value for every visible entry, in runs of neighbours.
func (s *source) appendEntries(out *encoding.Values, e *Entries, maxVisible uint16) error {
	for i := 0; i < len(e.Index); {
		at, j := e.Index[i], i+1
		switch {
		case at >= 0:
			for j < len(e.Index) && e.Index[j] == at+j-i {
				j++
			}
			if err := s.append(out, at, j-i); err != nil {
				return err
			}
		case e.Def[i] <= maxVisible:
			out.AppendZero(1)
		}
		i = j
	}
	return nil
}
