package structural

import (
	"github.com/foldline/foldline/lance/internal/encoding"
	"github.com/foldline/foldline/lance/internal/pb/pb21"
)

// flat values stand back to back; booleans as a bitmap.
type flat struct{ bits int }

func newFlat(f *pb21.Flat, t encoding.Type) (flat, error) {
	if f.GetData() != nil {
		return flat{}, encoding.Unsupportedf("flat values with buffer compression")
	}
	if t.Kind != encoding.Fixed || f.GetBitsPerValue() != uint64(t.ValueBits()) {
		return flat{}, encoding.Corruptf("flat values of %d bits in a column of %s", f.GetBitsPerValue(), t)
	}
	return flat{bits: t.ValueBits()}, nil
}

func (f flat) buffers() int { return 1 }

func (f flat) decode(bufs [][]byte, n int, out *encoding.Values) error {
	return f.decodeBlock(bufs[0], n, out)
}

func (f flat) decodeBlock(data []byte, n int, out *encoding.Values) error {
	if uint64(n)*uint64(f.bits) > uint64(len(data))*8 {
		return encoding.Corruptf("%d flat values of %d bits in %d bytes", n, f.bits, len(data))
	}
	out.AppendFixed(data, 0, n, nil, 0)
	return nil
}

// vector values are fixed-size lists: the items flat, before them the items' validity if it is kept.
type vector struct {
	typ      encoding.Type
	validity bool
}

// newVector accepts nested lists as long as only the outermost keeps validity.
func newVector(f *pb21.FixedSizeList, t encoding.Type) (*vector, error) {
	v := &vector{typ: t, validity: f.GetHasValidity()}
	dim := uint64(1)
	for depth := 0; ; depth++ {
		if f.GetItemsPerValue() == 0 || f.GetItemsPerValue() > uint64(t.Dim) || depth > 0 && f.GetHasValidity() {
			return nil, encoding.Unsupportedf("vectors of %d items in a column of %s", f.GetItemsPerValue(), t)
		}
		dim *= f.GetItemsPerValue()
		inner, ok := f.GetValues().GetCompression().(*pb21.CompressiveEncoding_FixedSizeList)
		if !ok {
			break
		}
		f = inner.FixedSizeList
	}
	items, ok := f.GetValues().GetCompression().(*pb21.CompressiveEncoding_Flat)
	if !ok {
		return nil, encoding.Unsupportedf("vectors of encoding %s", encodingName(f.GetValues()))
	}
	if items.Flat.GetData() != nil {
		return nil, encoding.Unsupportedf("flat values with buffer compression")
	}
	if t.Kind != encoding.Fixed || dim != uint64(t.Dim) || items.Flat.GetBitsPerValue() != uint64(t.Bits) {
		return nil, encoding.Corruptf("vectors of %d items of %d bits in a column of %s", dim, items.Flat.GetBitsPerValue(), t)
	}
	return v, nil
}

func (v *vector) buffers() int {
	if v.validity {
		return 2
	}
	return 1
}

func (v *vector) decode(bufs [][]byte, n int, out *encoding.Values) error {
	var valid []byte
	if v.validity {
		valid = bufs[0]
		if len(valid) < (n*v.typ.Dim+7)/8 {
			return encoding.Corruptf("validity of %d items in %d bytes", n*v.typ.Dim, len(valid))
		}
	}
	items := bufs[len(bufs)-1]
	if len(items) < v.typ.Size(n) {
		return encoding.Corruptf("%d vectors in %d bytes", n, len(items))
	}
	out.AppendFixed(items, 0, n, valid, 0)
	return nil
}
