package levels

import (
	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/foldline/foldline/lance/internal/encoding"
)

// leafData wraps the values, which it takes over, and their validity into an array of type t.
func leafData(t arrow.DataType, v *encoding.Values, valid *memory.Buffer, nulls int, mem memory.Allocator) (*array.Data, error) {
	defer release(valid)
	n := v.Len
	if dict, ok := t.(*arrow.DictionaryType); ok {
		return dictionaryData(dict, v, valid, nulls, mem)
	}
	switch v.Type.Kind {
	case encoding.Null:
		return array.NewData(t, n, []*memory.Buffer{nil}, nil, n, 0), nil
	case encoding.Bytes:
		if v.Offsets.Len() == 0 {
			clear(v.Offsets.Extend(v.Type.OffsetBits / 8))
		}
		offsets, data := v.Offsets.Detach(), v.Data.Detach()
		defer offsets.Release()
		defer data.Release()
		return array.NewData(t, n, []*memory.Buffer{valid, offsets, data}, nil, nulls, 0), nil
	}
	data := v.Data.Detach()
	defer data.Release()
	list, ok := t.(*arrow.FixedSizeListType)
	if !ok {
		return array.NewData(t, n, []*memory.Buffer{valid, data}, nil, nulls, 0), nil
	}
	var items *memory.Buffer
	if v.HasItemNulls() {
		items = v.ItemValid.Detach()
		defer items.Release()
	}
	child := vectorItems(list, n, items, data)
	defer child.Release()
	return array.NewData(t, n, []*memory.Buffer{valid}, []arrow.ArrayData{child}, nulls, 0), nil
}

// vectorItems is the child array of n vectors; vectors of vectors nest, with the validity at the innermost.
func vectorItems(list *arrow.FixedSizeListType, n int, valid, data *memory.Buffer) *array.Data {
	items := n * int(list.Len())
	inner, ok := list.Elem().(*arrow.FixedSizeListType)
	if !ok {
		nulls := 0
		if valid != nil {
			nulls = array.UnknownNullCount
		}
		return array.NewData(list.Elem(), items, []*memory.Buffer{valid, data}, nil, nulls, 0)
	}
	child := vectorItems(inner, items, valid, data)
	defer child.Release()
	return array.NewData(inner, items, []*memory.Buffer{nil}, []arrow.ArrayData{child}, 0, 0)
}

// nullData is an array of n nulls.
func nullData(t arrow.DataType, n int, mem memory.Allocator) *array.Data {
	a := array.MakeArrayOfNull(mem, t, n)
	defer a.Release()
	data := a.Data().(*array.Data)
	data.Retain()
	return data
}
