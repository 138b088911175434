package v20

import (
	"github.com/foldline/foldline/lance/internal/encoding"
	"github.com/foldline/foldline/lance/internal/pb/pb20"
)

// Lists is a page of list offsets: one u64 per list, the end of its items within the page; a null list adds the
// adjustment.
type Lists struct {
	// Items is the number of items that the page's lists hold.
	Items      int64
	rows       int64
	ends       encoding.Span
	adjustment uint64
}

// OpenLists opens a page of an offsets column.
func OpenLists(enc *pb20.ArrayEncoding, rows int64, buffers []encoding.Span) (*Lists, error) {
	l, ok := enc.GetArrayEncoding().(*pb20.ArrayEncoding_List)
	if !ok {
		return nil, encoding.Unsupportedf("array encoding %s for lists", name(enc))
	}
	if l.List.GetNumItems() > maxItems || l.List.GetNullOffsetAdjustment() <= l.List.GetNumItems() {
		return nil, encoding.Corruptf("lists of %d items with adjustment %d", l.List.GetNumItems(), l.List.GetNullOffsetAdjustment())
	}
	p := &Page{rows: rows, buffers: buffers}
	ends, err := p.plainNoNulls(l.List.GetOffsets(), rows, 64)
	return &Lists{Items: int64(l.List.GetNumItems()), rows: rows, ends: ends, adjustment: l.List.GetNullOffsetAdjustment()}, err
}

// maxItems bounds the items of a page of lists.
const maxItems = 1 << 40

// Span covers what Read needs for lists r.
func (l *Lists) Span(r encoding.Range) encoding.Span {
	from := max(r.From-1, 0)
	return encoding.Span{Off: l.ends.Off + from*8, Len: (r.To - from) * 8}
}

// Read calls f for each list of r with its items within the page.
func (l *Lists) Read(src encoding.Loaded, r encoding.Range, f func(items encoding.Range, isNull bool)) error {
	data, err := src.Bytes(l.Span(r))
	if err != nil {
		return err
	}
	ends := encoding.Cast[uint64](data)
	last := int64(0)
	if r.From > 0 {
		last = int64(ends[0] % l.adjustment)
		ends = ends[1:]
	}
	for _, e := range ends {
		end := int64(e % l.adjustment)
		if end < last || end > l.Items {
			return encoding.Corruptf("list ends at item %d after %d of %d", end, last, l.Items)
		}
		f(encoding.Range{From: last, To: end}, e >= l.adjustment)
		last = end
	}
	return nil
}
