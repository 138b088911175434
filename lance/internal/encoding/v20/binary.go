package v20

import (
	"github.com/foldline/foldline/lance/internal/encoding"
	"github.com/foldline/foldline/lance/internal/encoding/compress"
	"github.com/foldline/foldline/lance/internal/pb/pb20"
	"github.com/foldline/foldline/lance/internal/pb/pb21"
)

// binary values are one u64 per row, the end of its bytes; a null adds the adjustment to it.
type binary struct {
	rows       int64
	ends, data encoding.Span
	adjustment uint64
	// scheme is set when the bytes are compressed as a whole; plain then holds them once they were read.
	scheme     pb21.CompressionScheme
	compressed bool
	plain      []byte
}

func (p *Page) openBinary(b *pb20.Binary, rows int64) (*binary, error) {
	if p.typ.Kind != encoding.Bytes {
		return nil, encoding.Corruptf("strings in a column of %s", p.typ)
	}
	v := &binary{rows: rows, adjustment: b.GetNullAdjustment()}
	var err error
	if v.ends, err = p.plainNoNulls(b.GetIndices(), rows, 64); err != nil {
		return nil, err
	}
	f, ok := b.GetBytes().GetArrayEncoding().(*pb20.ArrayEncoding_Flat)
	if !ok {
		return nil, encoding.Unsupportedf("bytes of array encoding %s", name(b.GetBytes()))
	}
	if v.data, err = p.buffer(f.Flat, 0, 8); err != nil {
		return nil, err
	}
	switch scheme := f.Flat.GetCompression().GetScheme(); scheme {
	case "":
	case "zstd":
		v.scheme, v.compressed = pb21.CompressionScheme_ZSTD, true
	case "lz4":
		v.scheme, v.compressed = pb21.CompressionScheme_LZ4, true
	default:
		return nil, encoding.Unsupportedf("compression scheme %q", scheme)
	}
	return v, nil
}

func (b *binary) release() {}

// endsSpan covers the ends of rows r and of the row before, where the first begins.
func (b *binary) endsSpan(r encoding.Range) encoding.Span {
	from := max(r.From-1, 0)
	return encoding.Span{Off: b.ends.Off + from*8, Len: (r.To - from) * 8}
}

func (b *binary) prepare(r encoding.Range) []encoding.Span {
	spans := []encoding.Span{b.endsSpan(r)}
	if b.compressed && b.plain == nil {
		spans = append(spans, b.data)
	}
	return spans
}

// offsets returns the n+1 offsets of rows r and which of them are null.
func (b *binary) offsets(src encoding.Loaded, r encoding.Range) ([]uint64, []bool, error) {
	data, err := src.Bytes(b.endsSpan(r))
	if err != nil {
		return nil, nil, err
	}
	ends := encoding.Cast[uint64](data)
	offsets := make([]uint64, 0, len(ends)+1)
	if r.From == 0 {
		offsets = append(offsets, 0)
	}
	first := len(offsets)
	var nulls []bool
	for i, e := range ends {
		isNull := b.adjustment > 0 && e >= b.adjustment
		if isNull {
			e -= b.adjustment
			if row := i + first - 1; row >= 0 {
				if nulls == nil {
					nulls = make([]bool, r.Len())
				}
				nulls[row] = true
			}
		}
		if len(offsets) > 0 && e < offsets[len(offsets)-1] {
			return nil, nil, encoding.Corruptf("string offsets that fall")
		}
		offsets = append(offsets, e)
	}
	return offsets, nulls, nil
}

func (b *binary) locate(src encoding.Loaded, r encoding.Range) ([]encoding.Span, error) {
	if b.compressed {
		return nil, b.decompress(src)
	}
	offsets, _, err := b.offsets(src, r)
	if err != nil {
		return nil, err
	}
	span, err := b.bytesSpan(offsets)
	return []encoding.Span{span}, err
}

func (b *binary) bytesSpan(offsets []uint64) (encoding.Span, error) {
	first, last := offsets[0], offsets[len(offsets)-1]
	if last > uint64(b.data.Len) {
		return encoding.Span{}, encoding.Corruptf("strings that end at %d of %d bytes", last, b.data.Len)
	}
	return b.data.Sub(int64(first), int64(last-first))
}

func (b *binary) decompress(src encoding.Loaded) error {
	if b.plain != nil || b.data.Len == 0 {
		return nil
	}
	data, err := src.Bytes(b.data)
	if err == nil {
		b.plain, err = compress.Decompress(nil, b.scheme, data)
	}
	return err
}

func (b *binary) read(src encoding.Loaded, r encoding.Range, out *encoding.Values) ([]bool, error) {
	offsets, nulls, err := b.offsets(src, r)
	if err != nil {
		return nil, err
	}
	var data []byte
	if b.compressed {
		if offsets[len(offsets)-1] > uint64(len(b.plain)) {
			return nil, encoding.Corruptf("strings that end at %d of %d bytes", offsets[len(offsets)-1], len(b.plain))
		}
		data = b.plain[offsets[0]:offsets[len(offsets)-1]]
	} else {
		span, err := b.bytesSpan(offsets)
		if err != nil {
			return nil, err
		}
		if data, err = src.Bytes(span); err != nil {
			return nil, err
		}
	}
	for i := len(offsets) - 1; i >= 0; i-- {
		offsets[i] -= offsets[0]
	}
	if out.Type.OffsetBits == 32 {
		return nulls, encoding.AppendSlices[int32](out, offsets, data)
	}
	return nulls, encoding.AppendSlices[int64](out, offsets, data)
}

// dictionary values are indexes into items. Where the indexes are bytes of a plain column, 0 is null and k is
// item k-1; in a column of Arrow dictionaries they count from 0 and nulls point at a null item.
type dictionary struct {
	indexes encoding.Span
	bits    int
	shifted bool
	items   *binary
	count   int64
	decoded *encoding.Values
	nulls   []bool // of the items
}

func (p *Page) openDictionary(d *pb20.Dictionary) (values, error) {
	v := &dictionary{count: int64(d.GetNumDictionaryItems()), shifted: p.typ.IndexBits == 0, bits: 8}
	if !v.shifted {
		v.bits = p.typ.IndexBits
	}
	var err error
	if v.indexes, err = p.plainNoNulls(d.GetIndices(), p.rows, uint64(v.bits)); err != nil {
		return nil, err
	}
	b, ok := d.GetItems().GetArrayEncoding().(*pb20.ArrayEncoding_Binary)
	if !ok {
		return nil, encoding.Unsupportedf("a dictionary of array encoding %s", name(d.GetItems()))
	}
	v.items, err = p.openBinary(b.Binary, v.count)
	return v, err
}

func (d *dictionary) release() {
	if d.decoded != nil {
		d.decoded.Release()
	}
}

func (d *dictionary) all() encoding.Range { return encoding.Range{From: 0, To: d.count} }

func (d *dictionary) prepare(r encoding.Range) []encoding.Span {
	spans := []encoding.Span{bitSpan(d.indexes, r.From, r.To-r.From, d.bits)}
	if d.decoded == nil && d.count > 0 {
		spans = append(spans, d.items.endsSpan(d.all()), d.items.data)
	}
	return spans
}

// locate decodes the items; there is nothing else to read.
func (d *dictionary) locate(src encoding.Loaded, _ encoding.Range) ([]encoding.Span, error) {
	if d.decoded != nil {
		return nil, nil
	}
	d.decoded = newValues(encoding.BytesType(64))
	if d.count == 0 {
		return nil, nil
	}
	if err := d.items.decompressIfNeeded(src); err != nil {
		return nil, err
	}
	var err error
	d.nulls, err = d.items.read(src, d.all(), d.decoded)
	return nil, err
}

func (b *binary) decompressIfNeeded(src encoding.Loaded) error {
	if b.compressed {
		return b.decompress(src)
	}
	return nil
}

func (d *dictionary) read(src encoding.Loaded, r encoding.Range, out *encoding.Values) ([]bool, error) {
	data, err := src.Bytes(bitSpan(d.indexes, r.From, r.To-r.From, d.bits))
	if err != nil {
		return nil, err
	}
	nulls := make([]bool, r.Len())
	for i := range nulls {
		item, isNull := d.item(data, i)
		switch {
		case isNull:
		case item >= uint64(d.decoded.Len):
			return nil, encoding.Corruptf("index %d of a dictionary of %d", item, d.decoded.Len)
		default:
			isNull = d.nulls != nil && d.nulls[item]
		}
		if isNull {
			nulls[i] = true
			out.AppendZero(1)
			continue
		}
		if err := out.AppendValue(d.decoded.Slice(int(item))); err != nil {
			return nil, err
		}
	}
	return nulls, nil
}

// item is the item that row i points at.
func (d *dictionary) item(data []byte, i int) (item uint64, isNull bool) {
	switch d.bits {
	case 8:
		item = uint64(data[i])
	case 16:
		item = uint64(encoding.Cast[uint16](data)[i])
	case 32:
		item = uint64(encoding.Cast[uint32](data)[i])
	default:
		item = encoding.Cast[uint64](data)[i]
	}
	if d.shifted {
		return item - 1, item == 0
	}
	return item, false
}
