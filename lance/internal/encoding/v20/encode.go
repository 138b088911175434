package v20

import (
	"github.com/foldline/foldline/lance/internal/encoding"
	"github.com/foldline/foldline/lance/internal/pb/pb20"
)

// Encoded is one page: the description of its encoding and the buffers that it counts, in their order. Buffers may share the
// memory of what was encoded.
type Encoded struct {
	Encoding *pb20.ArrayEncoding
	Buffers  [][]byte
	Rows     int
}

// EncodeLeaf encodes a leaf whose path has no other layer, so that its definition levels tell nulls alone: one page, or several
// when the values of a dictionary column, which must be strings or bytes, are too many for its indexes. Values are stored plain, as
// the engine does by default. Errors wrap encoding.ErrUnsupported.
func EncodeLeaf(leaf *encoding.Leaf) ([]Encoded, error) {
	v := leaf.Values
	switch {
	case v.Type.Kind == encoding.Null, v.Type.IndexBits == 0 && countNulls(leaf.Def) == leaf.Entries:
		return []Encoded{{Encoding: allNull(), Rows: leaf.Entries}}, nil
	case v.Type.IndexBits > 0:
		return encodeDictionary(v, leaf.Def, 0, leaf.Entries)
	case v.Type.Kind == encoding.Bytes:
		p := pageWriter{rows: leaf.Entries}
		return []Encoded{p.page(p.strings(v, leaf.Def))}, nil
	}
	p := pageWriter{rows: leaf.Entries}
	validity := p.validity(leaf.Def)
	return []Encoded{p.page(nullableOf(validity, p.fixed(v)))}, nil
}

// EncodeStructs is the only page of a struct's column: structs have no bytes, and no nulls either.
func EncodeStructs(rows int) Encoded {
	return Encoded{Rows: rows, Encoding: &pb20.ArrayEncoding{
		ArrayEncoding: &pb20.ArrayEncoding_Struct{Struct: &pb20.SimpleStruct{}},
	}}
}

// EncodeLists encodes a page of lists, each given by the end of its items within the page, and null where nulls says so; nulls is
// nil when none is. The ends are overwritten.
func EncodeLists(ends []uint64, nulls []bool) Encoded {
	items := uint64(0)
	if len(ends) > 0 {
		items = ends[len(ends)-1]
	}
	adjustment := items + 1
	for i := range nulls {
		if nulls[i] {
			ends[i] += adjustment
		}
	}
	p := pageWriter{rows: len(ends)}
	return p.page(&pb20.ArrayEncoding{ArrayEncoding: &pb20.ArrayEncoding_List{List: &pb20.List{
		Offsets: nullableOf(nil, p.flat(64, encoding.CastBytes(ends))), NullOffsetAdjustment: adjustment, NumItems: items,
	}}})
}

// pageWriter collects the buffers of a page while its description is built.
type pageWriter struct {
	rows    int
	buffers [][]byte
}

func (p *pageWriter) page(enc *pb20.ArrayEncoding) Encoded {
	return Encoded{Encoding: enc, Buffers: p.buffers, Rows: p.rows}
}

// flat adds a buffer of values of the given width.
func (p *pageWriter) flat(bits int, data []byte) *pb20.ArrayEncoding {
	p.buffers = append(p.buffers, data)
	return &pb20.ArrayEncoding{ArrayEncoding: &pb20.ArrayEncoding_Flat{Flat: &pb20.Flat{
		BitsPerValue: uint64(bits), Buffer: &pb20.Buffer{BufferIndex: uint32(len(p.buffers) - 1)},
	}}}
}

// validity adds a bitmap of the rows that are not null; nil when all are.
func (p *pageWriter) validity(def []uint16) *pb20.ArrayEncoding {
	if countNulls(def) == 0 {
		return nil
	}
	bits := make([]byte, (len(def)+7)/8)
	for i, level := range def {
		if level == 0 {
			bits[i/8] |= 1 << (i % 8)
		}
	}
	return p.flat(1, bits)
}

// fixed adds plain values, or vectors with the validity of their items before them.
func (p *pageWriter) fixed(v *encoding.Values) *pb20.ArrayEncoding {
	if !v.Type.Vector {
		return p.flat(v.Type.ValueBits(), v.Data.Bytes())
	}
	var validity *pb20.ArrayEncoding
	if v.HasItemNulls() {
		validity = p.flat(1, v.ItemValid.Bytes())
	}
	return &pb20.ArrayEncoding{ArrayEncoding: &pb20.ArrayEncoding_FixedSizeList{FixedSizeList: &pb20.FixedSizeList{
		Dimension: uint32(v.Type.Dim), Items: nullableOf(validity, p.flat(v.Type.Bits, v.Data.Bytes())),
	}}}
}

// strings adds the ends and the bytes of strings. A null is told by its end, to which the adjustment is added.
func (p *pageWriter) strings(v *encoding.Values, def []uint16) *pb20.ArrayEncoding {
	adjustment := uint64(v.Data.Len()) + 1
	ends := make([]uint64, v.Len)
	if v.Type.OffsetBits == 32 {
		copyEnds(ends, encoding.Cast[int32](v.Offsets.Bytes()))
	} else {
		copyEnds(ends, encoding.Cast[int64](v.Offsets.Bytes()))
	}
	for i, level := range def {
		if level != 0 {
			ends[i] += adjustment
		}
	}
	return &pb20.ArrayEncoding{ArrayEncoding: &pb20.ArrayEncoding_Binary{Binary: &pb20.Binary{
		Indices: nullableOf(nil, p.flat(64, encoding.CastBytes(ends))), Bytes: p.flat(8, v.Data.Bytes()),
		NullAdjustment: adjustment,
	}}}
}

func copyEnds[T encoding.Offset](dst []uint64, offsets []T) {
	for i := range dst {
		dst[i] = uint64(offsets[i+1])
	}
}

func countNulls(def []uint16) int {
	n := 0
	for _, level := range def {
		if level != 0 {
			n++
		}
	}
	return n
}

func allNull() *pb20.ArrayEncoding {
	return &pb20.ArrayEncoding{ArrayEncoding: &pb20.ArrayEncoding_Nullable{Nullable: &pb20.Nullable{
		Nullability: &pb20.Nullable_AllNulls{AllNulls: &pb20.Nullable_AllNull{}},
	}}}
}

// nullableOf wraps values, with a validity bitmap when there is one.
func nullableOf(validity, values *pb20.ArrayEncoding) *pb20.ArrayEncoding {
	n := &pb20.Nullable{Nullability: &pb20.Nullable_NoNulls{NoNulls: &pb20.Nullable_NoNull{Values: values}}}
	if validity != nil {
		n.Nullability = &pb20.Nullable_SomeNulls{SomeNulls: &pb20.Nullable_SomeNull{Validity: validity, Values: values}}
	}
	return &pb20.ArrayEncoding{ArrayEncoding: &pb20.ArrayEncoding_Nullable{Nullable: n}}
}
