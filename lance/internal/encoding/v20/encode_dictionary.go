package v20

import (
	"github.com/foldline/foldline/lance/internal/encoding"
	"github.com/foldline/foldline/lance/internal/pb/pb20"
)

// encodeDictionary encodes the values [from, to) of a column of Arrow dictionaries of strings or bytes: indexes of the column's own width, and the
// values that differ. Nulls point at one more item, which is null itself. When the items are too many for the indexes the
// page is halved.
func encodeDictionary(v *encoding.Values, def []uint16, from, to int) ([]Encoded, error) {
	items := newValues(encoding.BytesType(64))
	defer items.Release()
	index, err := numberItems(v, def, from, to, items)
	if err != nil {
		return nil, err
	}
	p := pageWriter{rows: to - from}
	var itemDef []uint16
	if countNulls(def) > 0 {
		itemDef = make([]uint16, items.Len+1)
		itemDef[items.Len] = null
		items.AppendZero(1)
	}
	// One bit less than the width: the engine reads signed indexes.
	if limit := v.Type.IndexBits - 1; limit < 32 && items.Len > 1<<limit {
		return halves(v, def, from, to)
	}
	for i := range index {
		if index[i] < 0 {
			index[i] = items.Len - 1
		}
	}
	indexes := indexBytes(index, v.Type.IndexBits)
	enc := &pb20.Dictionary{Indices: nullableOf(nil, p.flat(v.Type.IndexBits, indexes)), NumDictionaryItems: uint32(items.Len)}
	enc.Items = p.strings(items, itemDef)
	// The items go when this returns.
	last := len(p.buffers) - 1
	p.buffers[last] = append([]byte(nil), p.buffers[last]...)
	return []Encoded{p.page(&pb20.ArrayEncoding{ArrayEncoding: &pb20.ArrayEncoding_Dictionary{Dictionary: enc}})}, nil
}

// numberItems gives each value the number of its item, -1 for a null, and collects the items.
func numberItems(v *encoding.Values, def []uint16, from, to int, items *encoding.Values) ([]int, error) {
	known := map[string]int{}
	index := make([]int, 0, to-from)
	for i := from; i < to; i++ {
		if len(def) > 0 && def[i] != 0 {
			index = append(index, -1)
			continue
		}
		value := v.Slice(i)
		item, ok := known[string(value)]
		if !ok {
			item = items.Len
			known[string(value)] = item
			if err := items.AppendValue(value); err != nil {
				return nil, err
			}
		}
		index = append(index, item)
	}
	return index, nil
}

func halves(v *encoding.Values, def []uint16, from, to int) ([]Encoded, error) {
	mid := from + (to-from)/2
	head, err := encodeDictionary(v, def, from, mid)
	if err != nil {
		return nil, err
	}
	tail, err := encodeDictionary(v, def, mid, to)
	return append(head, tail...), err
}

// indexBytes gives the indexes their width on disk.
func indexBytes(index []int, bits int) []byte {
	switch bits {
	case 8:
		return narrow[uint8](index)
	case 16:
		return narrow[uint16](index)
	case 32:
		return narrow[uint32](index)
	}
	return narrow[uint64](index)
}

func narrow[T uint8 | uint16 | uint32 | uint64](index []int) []byte {
	out := make([]T, len(index))
	for i, at := range index {
		out[i] = T(at)
	}
	return encoding.CastBytes(out)
}
