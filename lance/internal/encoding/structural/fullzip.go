package structural

import (
	"encoding/binary"
	"math/bits"

	"github.com/foldline/foldline/lance/internal/encoding"
	"github.com/foldline/foldline/lance/internal/encoding/compress"
	"github.com/foldline/foldline/lance/internal/encoding/fsst"
	"github.com/foldline/foldline/lance/internal/encoding/levels"
	"github.com/foldline/foldline/lance/internal/pb/pb21"
)

// fullZip is a page of wide values: entry by entry a control word with the levels, and the value.
type fullZip struct {
	levelMap
	typ           encoding.Type
	rows          int64
	repBits       int
	defBits       int
	control       int // bytes of a control word
	offsetBytes   int // bytes of a value's length; 0 for fixed width
	valueBytes    int // bytes of a fixed-width value, item validity included
	validityBytes int // bytes of item validity in front of the items
	decoder       valueDecoder
	data, index   encoding.Span
	indexWidth    int64 // bytes of an index entry; 0 without an index
}

// valueDecoder turns the stored bytes of a variable-width value into the value.
type valueDecoder interface {
	appendValue(stored []byte, out *encoding.Values) error
}

func openFullZip(l *pb21.FullZipLayout, rows int64, buffers []encoding.Span, leaf *levels.LeafPath) (Page, error) {
	f := &fullZip{typ: leaf.Type, rows: rows, repBits: int(l.GetBitsRep()), defBits: int(l.GetBitsDef())}
	var err error
	if f.levelMap, err = newLevelMap(leaf.Path, l.GetLayers()); err != nil {
		return nil, err
	}
	wantRep := bits.Len16(f.path.MaxRep())
	if f.repBits > 16 || f.defBits > 16 || f.repBits < wantRep || f.defBits == 0 && f.hasDef() {
		return nil, encoding.Corruptf("control words of %d and %d bits", f.repBits, f.defBits)
	}
	f.control = controlBytes(f.repBits + f.defBits)
	variable := false
	switch d := l.GetDetails().(type) {
	case *pb21.FullZipLayout_BitsPerValue:
		err = f.setFixed(d.BitsPerValue, l.GetValueCompression())
	case *pb21.FullZipLayout_BitsPerOffset:
		variable = true
		err = f.setVariable(d.BitsPerOffset, l.GetValueCompression())
	default:
		err = encoding.Corruptf("full-zip page without a value width")
	}
	if err != nil {
		return nil, err
	}
	return f, f.setBuffers(buffers, variable || f.path.HasLists())
}

func controlBytes(bits int) int {
	switch {
	case bits == 0:
		return 0
	case bits <= 8:
		return 1
	case bits <= 16:
		return 2
	}
	return 4
}

func (f *fullZip) setBuffers(buffers []encoding.Span, indexed bool) error {
	want := 1
	if indexed {
		want = 2
	}
	if len(buffers) != want {
		return encoding.Corruptf("%d buffers instead of %d", len(buffers), want)
	}
	f.data = buffers[0]
	if !indexed {
		if need := f.rows * int64(f.control+f.valueBytes); need > f.data.Len {
			return encoding.Corruptf("%d rows in %d bytes", f.rows, f.data.Len)
		}
		return nil
	}
	f.index = buffers[1]
	f.indexWidth = f.index.Len / (f.rows + 1)
	switch f.indexWidth {
	case 1, 2, 4, 8:
	default:
		return encoding.Corruptf("index of %d bytes for %d rows", f.index.Len, f.rows)
	}
	return nil
}

func (f *fullZip) setFixed(bits uint32, enc *pb21.CompressiveEncoding) error {
	switch c := enc.GetCompression().(type) {
	case *pb21.CompressiveEncoding_Flat:
		if _, err := newFlat(c.Flat, f.typ); err != nil {
			return err
		}
	case *pb21.CompressiveEncoding_FixedSizeList:
		v, err := newVector(c.FixedSizeList, f.typ)
		if err != nil {
			return err
		}
		if v.validity {
			f.validityBytes = (f.typ.Dim + 7) / 8
		}
	default:
		return encoding.Unsupportedf("full-zip encoding %s", encodingName(enc))
	}
	if f.typ.ValueBits()%8 != 0 {
		return encoding.Unsupportedf("full-zip values of %d bits", f.typ.ValueBits())
	}
	f.valueBytes = f.validityBytes + f.typ.ValueBytes()
	if uint64(f.valueBytes)*8 != uint64(bits) {
		return encoding.Corruptf("values of %d bits in a column of %s", bits, f.typ)
	}
	return nil
}

func (f *fullZip) setVariable(bits uint32, enc *pb21.CompressiveEncoding) (err error) {
	if bits != 32 && bits != 64 || f.typ.Kind != encoding.Bytes {
		return encoding.Corruptf("lengths of %d bits in a column of %s", bits, f.typ)
	}
	f.offsetBytes = int(bits / 8)
	f.decoder, err = newValueDecoder(enc, f.typ)
	return err
}

func newValueDecoder(enc *pb21.CompressiveEncoding, t encoding.Type) (valueDecoder, error) {
	switch c := enc.GetCompression().(type) {
	case *pb21.CompressiveEncoding_Variable:
		_, err := newVariable(c.Variable, t)
		return plainValue{}, err
	case *pb21.CompressiveEncoding_Fsst:
		v, err := newFSST(c.Fsst, t)
		if err != nil {
			return nil, err
		}
		return fsstValue{v.symbols}, nil
	case *pb21.CompressiveEncoding_General:
		inner, err := newValueDecoder(c.General.GetValues(), t)
		return &generalValue{scheme: c.General.GetCompression().GetScheme(), inner: inner}, err
	}
	return nil, encoding.Unsupportedf("full-zip encoding %s", encodingName(enc))
}

type plainValue struct{}

func (plainValue) appendValue(stored []byte, out *encoding.Values) error {
	return out.AppendValue(stored)
}

type fsstValue struct{ symbols *fsst.Decoder }

func (v fsstValue) appendValue(stored []byte, out *encoding.Values) error {
	if err := out.AppendValue(nil); err != nil {
		return err
	}
	base := out.Data.Len()
	n, err := v.symbols.Decode(out.Data.Extend(len(stored)*fsst.Expand+fsst.Slack), stored)
	if err != nil {
		return err
	}
	out.Data.Truncate(base + n)
	return out.SetLastEnd()
}

type generalValue struct {
	scheme pb21.CompressionScheme
	inner  valueDecoder
	room   []byte
}

func (v *generalValue) appendValue(stored []byte, out *encoding.Values) error {
	plain, err := compress.Decompress(v.room, v.scheme, stored)
	if err != nil {
		return err
	}
	if cap(plain) <= maxKeptRoom {
		v.room = plain
	}
	return v.inner.appendValue(plain, out)
}

func (f *fullZip) Release() {}

func (f *fullZip) Prepare(rows []encoding.Range) []encoding.Span {
	if f.indexWidth == 0 {
		return nil
	}
	spans := make([]encoding.Span, 0, len(rows))
	for _, r := range rows {
		spans = append(spans, f.indexSpan(r))
	}
	return spans
}

// indexSpan covers the starts of the rows and the end of the last.
func (f *fullZip) indexSpan(r encoding.Range) encoding.Span {
	return encoding.Span{Off: f.index.Off + r.From*f.indexWidth, Len: (r.To - r.From + 1) * f.indexWidth}
}

func (f *fullZip) Locate(src encoding.Loaded, rows []encoding.Range) ([]encoding.Span, error) {
	spans := make([]encoding.Span, 0, len(rows))
	for _, r := range rows {
		span, err := f.place(src, r)
		if err != nil {
			return nil, encoding.At(err, "row index", f.index.Off)
		}
		spans = append(spans, span)
	}
	return spans, nil
}

// place finds the bytes of rows.
func (f *fullZip) place(src encoding.Loaded, r encoding.Range) (encoding.Span, error) {
	if f.indexWidth == 0 {
		entry := int64(f.control + f.valueBytes)
		return f.data.Sub(r.From*entry, (r.To-r.From)*entry)
	}
	span := f.indexSpan(r)
	data, err := src.Bytes(span)
	if err != nil {
		return encoding.Span{}, err
	}
	from, to := f.indexEntry(data, 0), f.indexEntry(data, r.To-r.From)
	if from > to || to > uint64(f.data.Len) {
		return encoding.Span{}, encoding.Corruptf("rows at %d to %d in %d bytes", from, to, f.data.Len)
	}
	return f.data.Sub(int64(from), int64(to-from))
}

func (f *fullZip) indexEntry(data []byte, i int64) uint64 {
	p := data[i*f.indexWidth:]
	switch f.indexWidth {
	case 1:
		return uint64(p[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(p))
	case 4:
		return uint64(binary.LittleEndian.Uint32(p))
	}
	return binary.LittleEndian.Uint64(p)
}

func (f *fullZip) Read(src encoding.Loaded, r encoding.Range, out *encoding.Leaf) error {
	span, err := f.place(src, r)
	if err != nil {
		return encoding.At(err, "row index", f.index.Off)
	}
	data, err := src.Bytes(span)
	if err != nil {
		return err
	}
	switch {
	case f.control == 0 && f.offsetBytes == 0 && f.validityBytes == 0:
		n := r.Len()
		if len(data) < n*f.valueBytes {
			return encoding.At(encoding.Corruptf("%d values in %d bytes", n, len(data)), "values", span.Off)
		}
		out.Values.AppendFixed(data, 0, n, nil, 0)
		out.AppendEntries(n, nil, nil)
		return nil
	default:
		return encoding.At(f.walk(data, r.Len(), out), "entries", span.Off)
	}
}

// walk decodes entry by entry until the bytes of the n rows are used up.
func (f *fullZip) walk(data []byte, n int, out *encoding.Leaf) error {
	rows := 0
	before := out.Entries
	lists := f.path.HasLists()
	for len(data) > 0 {
		rep, def, rest, err := f.controlWord(data)
		if err != nil {
			return err
		}
		data = rest
		if rep == f.path.MaxRep() {
			rows++
		}
		if rows > n || rows == 0 {
			return encoding.Corruptf("entries of more than %d rows, or of none", n)
		}
		f.addLevels(out, rep, def, lists)
		if def > f.path.MaxVisible() {
			continue
		}
		if data, err = f.value(data, def, out.Values); err != nil {
			return err
		}
	}
	if rows != n || !lists && out.Entries-before != n {
		return encoding.Corruptf("entries of %d rows instead of %d", rows, n)
	}
	return nil
}

func (f *fullZip) addLevels(out *encoding.Leaf, rep, def uint16, lists bool) {
	if def != 0 || len(out.Def) > 0 {
		out.ExtendDef(1)[0] = def
	}
	if lists {
		out.Rep = append(out.Rep, rep)
	}
	out.Entries++
}

func (f *fullZip) controlWord(data []byte) (rep, def uint16, rest []byte, err error) {
	if len(data) < f.control {
		return 0, 0, nil, encoding.Corruptf("entry of %d bytes", len(data))
	}
	var word uint32
	switch f.control {
	case 1:
		word = uint32(data[0])
	case 2:
		word = uint32(binary.LittleEndian.Uint16(data))
	case 4:
		word = binary.LittleEndian.Uint32(data)
	}
	d := word & (1<<f.defBits - 1)
	r := word >> f.defBits & (1<<f.repBits - 1)
	if int(d) >= len(f.table) || r > uint32(f.path.MaxRep()) {
		return 0, 0, nil, encoding.Corruptf("levels %d and %d beyond the page's layers", r, d)
	}
	return uint16(r), f.table[d], data[f.control:], nil
}

// value appends the value of a visible entry and returns what follows it.
func (f *fullZip) value(data []byte, def uint16, out *encoding.Values) ([]byte, error) {
	if f.offsetBytes == 0 {
		if len(data) < f.valueBytes {
			return nil, encoding.Corruptf("value of %d bytes", len(data))
		}
		var valid []byte
		if f.validityBytes > 0 {
			valid = data[:f.validityBytes]
		}
		out.AppendFixed(data[f.validityBytes:f.valueBytes], 0, 1, valid, 0)
		return data[f.valueBytes:], nil
	}
	if def != 0 {
		out.AppendZero(1)
		return data, nil
	}
	if len(data) < f.offsetBytes {
		return nil, encoding.Corruptf("value of %d bytes", len(data))
	}
	size := uint64(binary.LittleEndian.Uint32(data))
	if f.offsetBytes == 8 {
		size = binary.LittleEndian.Uint64(data)
	}
	data = data[f.offsetBytes:]
	if size > uint64(len(data)) {
		return nil, encoding.Corruptf("value of %d bytes in %d", size, len(data))
	}
	return data[size:], f.decoder.appendValue(data[:size], out)
}
