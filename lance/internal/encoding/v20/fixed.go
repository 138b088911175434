package v20

import (
	"github.com/foldline/foldline/lance/internal/encoding"
	"github.com/foldline/foldline/lance/internal/pb/pb20"
)

// flat values stand back to back, vectors with the validity of their items in a buffer of their own.
type flat struct {
	typ   encoding.Type
	data  encoding.Span
	items encoding.Span // item validity; empty when all items are valid
	// allItemsNull tells that no item of any vector is valid; there is no data then.
	allItemsNull bool
}

func (p *Page) openFlat(f *pb20.Flat) (values, error) {
	if p.typ.Kind != encoding.Fixed || f.GetCompression().GetScheme() != "" {
		return nil, encoding.Unsupportedf("flat values in a column of %s", p.typ)
	}
	data, err := p.buffer(f, p.rows, uint64(p.typ.ValueBits()))
	return &flat{typ: p.typ, data: data}, err
}

func (p *Page) openVector(l *pb20.FixedSizeList) (values, error) {
	if p.typ.Kind != encoding.Fixed || uint64(l.GetDimension()) != uint64(p.typ.Dim) {
		return nil, encoding.Unsupportedf("vectors of %d items in a column of %s", l.GetDimension(), p.typ)
	}
	v := &flat{typ: p.typ}
	items := p.rows * int64(p.typ.Dim)
	enc := l.GetItems()
	if n, ok := enc.GetArrayEncoding().(*pb20.ArrayEncoding_Nullable); ok {
		switch n := n.Nullable.GetNullability().(type) {
		case *pb20.Nullable_AllNulls:
			v.allItemsNull = true
			return v, nil
		case *pb20.Nullable_NoNulls:
			enc = n.NoNulls.GetValues()
		case *pb20.Nullable_SomeNulls:
			var err error
			if v.items, err = p.bitmap(n.SomeNulls.GetValidity(), items); err != nil {
				return nil, err
			}
			enc = n.SomeNulls.GetValues()
		}
	}
	var err error
	v.data, err = p.plain(enc, items, uint64(p.typ.Bits))
	return v, err
}

func (f *flat) release() {}

func (f *flat) prepare(r encoding.Range) []encoding.Span {
	if f.allItemsNull {
		return nil
	}
	spans := []encoding.Span{bitSpan(f.data, r.From, r.To-r.From, f.typ.ValueBits())}
	if f.items.Len > 0 {
		spans = append(spans, bitSpan(f.items, r.From, r.To-r.From, f.typ.Dim))
	}
	return spans
}

func (f *flat) locate(encoding.Loaded, encoding.Range) ([]encoding.Span, error) { return nil, nil }

func (f *flat) read(src encoding.Loaded, r encoding.Range, out *encoding.Values) ([]bool, error) {
	n := r.Len()
	if f.allItemsNull {
		out.AppendFixed(make([]byte, f.typ.Size(n)), 0, n, make([]byte, (n*f.typ.Dim+7)/8), 0)
		return nil, nil
	}
	spans := f.prepare(r)
	data, err := src.Bytes(spans[0])
	if err != nil {
		return nil, err
	}
	var valid []byte
	if f.items.Len > 0 {
		if valid, err = src.Bytes(spans[1]); err != nil {
			return nil, err
		}
	}
	bits := int64(f.typ.ValueBits())
	out.AppendFixed(data, int(r.From*bits%8), n, valid, int(r.From*int64(f.typ.Dim)%8))
	return nil, nil
}
