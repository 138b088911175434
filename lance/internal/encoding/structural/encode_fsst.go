package structural

import (
	"github.com/foldline/foldline/lance/internal/encoding"
	"github.com/foldline/foldline/lance/internal/encoding/fsst"
	"github.com/foldline/foldline/lance/internal/pb/pb21"
)

const (
	// minSymbolBytes is the size of a page's strings from which a symbol table of 2.3 KB can pay.
	minSymbolBytes = 32 << 10
	// minSymbolLength is the length of the longest string below which there is nothing to find.
	minSymbolLength = 5
	// codeBytes of codes are collected before they are added to a column.
	codeBytes = 64 << 10
)

// fsstPage is a page of FSST-compressed strings.
type fsstPage struct {
	encoder *fsst.Encoder
	coded   *encoding.Values
}

// newFSST compresses the strings, or returns nil when that saves less than a tenth.
func newFSSTPage(v *encoding.Values, longest int) *fsstPage {
	if v.Data.Len() < minSymbolBytes || longest < minSymbolLength {
		return nil
	}
	e := fsst.Train(v.Len, v.Slice)
	if !pays(e, v) {
		return nil
	}
	p := &fsstPage{encoder: e, coded: encoding.NewValues(v.Type, v.Allocator())}
	p.coded.Data.Reserve(v.Data.Len())
	code := codeStrings[int32]
	if v.Type.OffsetBits == 64 {
		code = codeStrings[int64]
	}
	if !code(e, p.coded, v) {
		p.coded.Release()
		return nil
	}
	return p
}

// codeStrings adds the codes of all values of v to coded, which is empty; it stops where T cannot hold them.
func codeStrings[T encoding.Offset](e *fsst.Encoder, coded, v *encoding.Values) bool {
	offsets, data := encoding.Cast[T](v.Offsets.Bytes()), v.Data.Bytes()
	ends := encoding.ExtendSlices[T](coded, v.Len)
	room := make([]byte, 0, 2*codeBytes)
	for i := range ends {
		room = e.Append(room, data[offsets[i]:offsets[i+1]])
		end := coded.Data.Len() + len(room)
		if ends[i] = T(end); int(ends[i]) != end {
			return false
		}
		if len(room) >= codeBytes {
			coded.Data.Append(room)
			room = room[:0]
		}
	}
	coded.Data.Append(room)
	return true
}

// pays tries the table on some of the strings.
func pays(e *fsst.Encoder, v *encoding.Values) bool {
	plain, coded := 0, 0
	var room []byte
	step := max(v.Len/512, 1)
	for i := 0; i < v.Len && plain < minSymbolBytes; i += step {
		room = e.Append(room[:0], v.Slice(i))
		plain, coded = plain+len(v.Slice(i)), coded+len(room)
	}
	return coded*10 < plain*9
}

// message describes the strings, with offsets or lengths of the type's width.
func (p *fsstPage) message() *pb21.CompressiveEncoding {
	return &pb21.CompressiveEncoding{Compression: &pb21.CompressiveEncoding_Fsst{
		Fsst: &pb21.Fsst{SymbolTable: p.encoder.Table(), Values: variableMessage(p.coded.Type.OffsetBits)},
	}}
}

// fsstEncoder writes the compressed strings into chunks.
type fsstEncoder struct {
	variableEncoder
	page *fsstPage
}

func (e *fsstEncoder) message() *pb21.CompressiveEncoding { return e.page.message() }
