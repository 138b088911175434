package levels

import (
	"encoding/binary"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/bitutil"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/foldline/foldline/lance/internal/encoding"
)

// newDictionarySource reads an Arrow dictionary as its values.
func newDictionarySource(d *array.Dictionary, t encoding.Type) (*source, error) {
	if d.Dictionary().NullN() > 0 {
		return nil, encoding.Unsupportedf("nulls inside of a dictionary")
	}
	items, err := newSource(d.Dictionary(), t)
	return &source{typ: t, dictionary: d, items: items}, err
}

// appendItems adds the items that n indexes point at.
func (s *source) appendItems(out *encoding.Values, at, n int) error {
	for i := at; i < at+n; i++ {
		if err := s.items.append(out, s.dictionary.GetValueIndex(i), 1); err != nil {
			return err
		}
	}
	return nil
}

// dictionaryData turns the values, which it takes over, into an Arrow dictionary of those that differ.
func dictionaryData(t *arrow.DictionaryType, v *encoding.Values, valid *memory.Buffer, nulls int, mem memory.Allocator) (*array.Data, error) {
	items := encoding.NewValues(v.Type, mem)
	defer items.Release()
	width := v.Type.IndexBits / 8
	indexes := memory.NewResizableBuffer(mem)
	defer indexes.Release()
	indexes.Resize(v.Len * width)
	clear(indexes.Bytes())
	known := map[string]int{}
	for i := range v.Len {
		if valid != nil && !bitutil.BitIsSet(valid.Bytes(), i) {
			continue
		}
		value := valueBytes(v, i)
		item, ok := known[string(value)]
		if !ok {
			item = items.Len
			known[string(value)] = item
			if err := items.AppendRange(v, i, i+1); err != nil {
				return nil, err
			}
		}
		if !putIndex(t, indexes.Bytes()[i*width:], item) {
			return nil, encoding.Unsupportedf("more values in a batch than indexes of type %s can tell apart", t.IndexType)
		}
	}
	dictionary, err := leafData(t.ValueType, items, nil, 0, mem)
	if err != nil {
		return nil, err
	}
	defer dictionary.Release()
	return array.NewDataWithDictionary(t, v.Len, []*memory.Buffer{valid, indexes}, nulls, 0, dictionary), nil
}

func valueBytes(v *encoding.Values, i int) []byte {
	if v.Type.Kind == encoding.Bytes {
		return v.Slice(i)
	}
	w := v.Type.ValueBytes()
	return v.Data.Bytes()[i*w : (i+1)*w]
}

// putIndex writes an index; it reports whether the type can hold it.
func putIndex(t *arrow.DictionaryType, dst []byte, item int) bool {
	bits := t.IndexType.(arrow.FixedWidthDataType).BitWidth()
	if arrow.IsSignedInteger(t.IndexType.ID()) {
		bits--
	}
	if bits < 32 && item >= 1<<bits {
		return false
	}
	switch (bits + 7) / 8 {
	case 1:
		dst[0] = byte(item)
	case 2:
		binary.LittleEndian.PutUint16(dst, uint16(item))
	case 4:
		binary.LittleEndian.PutUint32(dst, uint32(item))
	default:
		binary.LittleEndian.PutUint64(dst, uint64(item))
	}
	return true
}
