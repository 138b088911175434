package structural

import (
	"encoding/binary"
	"math/bits"

	"github.com/apache/arrow/go/v17/arrow/bitutil"

	"github.com/foldline/foldline/lance/internal/encoding"
	"github.com/foldline/foldline/lance/internal/encoding/compress"
	"github.com/foldline/foldline/lance/internal/pb/pb21"
)

// encodeFullZip makes a page of entries: control word, then the value of a visible entry. A null takes the full
// width of a fixed-width value and nothing of a variable one.
func (p *page) encodeFullZip() Encoded {
	layout := &pb21.FullZipLayout{
		BitsRep: uint32(bits.Len16(p.leaf.Path.MaxRep())), BitsDef: uint32(bits.Len(uint(p.levels))),
		NumItems: uint32(p.in.Entries), NumVisibleItems: uint32(p.in.Values.Len), Layers: p.layers,
	}
	z := &zipper{page: p, values: p.in.Values, control: controlBytes(int(layout.BitsRep + layout.BitsDef)), defBits: int(layout.BitsDef)}
	if p.leaf.Type.Kind == encoding.Bytes {
		layout.Details = &pb21.FullZipLayout_BitsPerOffset{BitsPerOffset: uint32(p.leaf.Type.OffsetBits)}
		layout.ValueCompression = variableMessage(p.leaf.Type.OffsetBits)
		if coded, message := compressValues(z.values); coded != nil {
			defer coded.Release()
			z.values, layout.ValueCompression = coded, message
		}
	} else {
		z.items = itemNulls(p.in.Values)
		layout.ValueCompression = flatMessage(p.leaf.Type, z.items != nil)
		layout.Details = &pb21.FullZipLayout_BitsPerValue{BitsPerValue: uint32(z.fixedBytes() * 8)}
	}
	data, starts := z.run()
	out := Encoded{Rows: p.rows, Layout: &pb21.PageLayout{Layout: &pb21.PageLayout_FullZipLayout{FullZipLayout: layout}}}
	out.Buffers = [][]byte{data}
	if p.leaf.Type.Kind == encoding.Bytes || p.leaf.Path.HasLists() {
		out.Buffers = append(out.Buffers, fullZipIndex(starts))
	}
	return out
}

// zstdValueBytes is the length of a string from which Zstandard finds more than a symbol table.
const zstdValueBytes = 32 << 10

// compressValues compresses the strings of a full-zip page each on its own; it returns nil when that does not
// pay.
func compressValues(v *encoding.Values) (*encoding.Values, *pb21.CompressiveEncoding) {
	longest := longestString(v)
	if longest > zstdValueBytes {
		if coded := zstdValues(v); coded != nil {
			return coded, generalMessage(pb21.CompressionScheme_ZSTD, variableMessage(v.Type.OffsetBits))
		}
	}
	if p := newFSSTPage(v, longest); p != nil {
		return p.coded, p.message()
	}
	return nil, nil
}

func zstdValues(v *encoding.Values) *encoding.Values {
	coded := encoding.NewValues(v.Type, v.Allocator())
	var room []byte
	for i := range v.Len {
		var err error
		if room, err = compress.Compress(room[:0], pb21.CompressionScheme_ZSTD, v.Slice(i)); err == nil {
			err = coded.AppendValue(room)
		}
		if err != nil || coded.Data.Len() > v.Data.Len() {
			coded.Release()
			return nil
		}
	}
	if coded.Data.Len()*10 > v.Data.Len()*9 {
		coded.Release()
		return nil
	}
	return coded
}

// zipper writes the entries of a full-zip page.
type zipper struct {
	*page
	values           *encoding.Values // compressed, if that pays
	control, defBits int
	items            []byte // item validity; nil when all items are valid
}

func (z *zipper) fixedBytes() int {
	n := z.leaf.Type.ValueBytes()
	if z.items != nil {
		n += (z.leaf.Type.Dim + 7) / 8
	}
	return n
}

// run returns the entries and where each row starts, with the end as the last.
func (z *zipper) run() (data []byte, starts []uint64) {
	values := z.values
	data = make([]byte, 0, values.Bytes()+z.in.Entries*(z.control+values.Type.OffsetBits/8))
	if z.control == 0 && z.items == nil && values.Type.Kind == encoding.Fixed {
		return append(data, values.Data.Bytes()...), nil
	}
	starts = make([]uint64, 0, z.rows+1)
	slot := 0
	for i := range z.in.Entries {
		rep, def := uint16(0), uint16(0)
		if len(z.in.Rep) > 0 {
			rep = z.in.Rep[i]
		}
		if z.def != nil {
			def = z.def[i]
		}
		if rep == z.leaf.Path.MaxRep() {
			starts = append(starts, uint64(len(data)))
		}
		data = z.appendControl(data, uint32(rep)<<z.defBits|uint32(def))
		if z.visible(i) {
			data = z.appendValue(data, slot, def)
			slot++
		}
	}
	return data, append(starts, uint64(len(data)))
}

func (z *zipper) appendControl(dst []byte, word uint32) []byte {
	switch z.control {
	case 1:
		return append(dst, byte(word))
	case 2:
		return binary.LittleEndian.AppendUint16(dst, uint16(word))
	case 4:
		return binary.LittleEndian.AppendUint32(dst, word)
	}
	return dst
}

func (z *zipper) appendValue(dst []byte, slot int, def uint16) []byte {
	values := z.values
	if values.Type.Kind == encoding.Fixed {
		if z.items != nil {
			dim := values.Type.Dim
			dst = append(dst, make([]byte, (dim+7)/8)...)
			bitutil.CopyBitmap(z.items, slot*dim, dim, dst[len(dst)-(dim+7)/8:], 0)
		}
		w := values.Type.ValueBytes()
		return append(dst, values.Data.Bytes()[slot*w:(slot+1)*w]...)
	}
	if def != 0 {
		return dst
	}
	value := values.Slice(slot)
	if values.Type.OffsetBits == 32 {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(value)))
	} else {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(len(value)))
	}
	return append(dst, value...)
}

// itemNulls is the item validity of vectors, nil when all items are valid.
func itemNulls(v *encoding.Values) []byte {
	if !v.HasItemNulls() || bitutil.CountSetBits(v.ItemValid.Bytes(), 0, v.Len*v.Type.Dim) == v.Len*v.Type.Dim {
		return nil
	}
	return v.ItemValid.Bytes()
}
