package v20

import (
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/foldline/foldline/lance/internal/encoding"
	"github.com/foldline/foldline/lance/internal/pb/pb20"
)

// Page decodes the rows of one page of one leaf column. Its methods are those of structural.Page.
type Page struct {
	typ     encoding.Type
	rows    int64
	buffers []encoding.Span

	allNull  bool
	validity encoding.Span // bitmap of the rows; empty when all are valid
	values   values
}

// values is how a page holds its values.
type values interface {
	// prepare and locate are the two steps of structural.Page.
	prepare(r encoding.Range) []encoding.Span
	locate(src encoding.Loaded, r encoding.Range) ([]encoding.Span, error)
	// read appends the values of rows r; it may find nulls of its own and then returns a flag per row.
	read(src encoding.Loaded, r encoding.Range, out *encoding.Values) (nulls []bool, err error)
	release()
}

// null is the definition level of a null leaf.
const null = 1

// Open makes a page of the given type. Errors are CorruptErrors or wrap encoding.ErrUnsupported.
func Open(enc *pb20.ArrayEncoding, rows int64, buffers []encoding.Span, t encoding.Type) (*Page, error) {
	p := &Page{typ: t, rows: rows, buffers: buffers}
	inner := enc
	if n, ok := enc.GetArrayEncoding().(*pb20.ArrayEncoding_Nullable); ok {
		switch n := n.Nullable.GetNullability().(type) {
		case *pb20.Nullable_AllNulls:
			p.allNull = true
			return p, nil
		case *pb20.Nullable_NoNulls:
			inner = n.NoNulls.GetValues()
		case *pb20.Nullable_SomeNulls:
			var err error
			if p.validity, err = p.bitmap(n.SomeNulls.GetValidity(), rows); err != nil {
				return nil, err
			}
			inner = n.SomeNulls.GetValues()
		default:
			return nil, encoding.Corruptf("nullable without a kind")
		}
	}
	var err error
	p.values, err = p.open(inner)
	return p, err
}

func (p *Page) open(enc *pb20.ArrayEncoding) (values, error) {
	switch e := enc.GetArrayEncoding().(type) {
	case *pb20.ArrayEncoding_Flat:
		return p.openFlat(e.Flat)
	case *pb20.ArrayEncoding_FixedSizeList:
		return p.openVector(e.FixedSizeList)
	case *pb20.ArrayEncoding_Binary:
		return p.openBinary(e.Binary, p.rows)
	case *pb20.ArrayEncoding_Dictionary:
		return p.openDictionary(e.Dictionary)
	}
	return nil, encoding.Unsupportedf("array encoding %s", name(enc))
}

// name names an encoding in messages.
func name(enc *pb20.ArrayEncoding) string {
	m := enc.ProtoReflect()
	d := m.WhichOneof(m.Descriptor().Oneofs().ByName("array_encoding"))
	if d == nil {
		return "that is not known"
	}
	return string(d.Name())
}

// buffer is the page buffer that a message names; it holds at least n values of the given width.
func (p *Page) buffer(f *pb20.Flat, n int64, bits uint64) (encoding.Span, error) {
	b := f.GetBuffer()
	if b.GetBufferType() != pb20.Buffer_PAGE {
		return encoding.Span{}, encoding.Unsupportedf("buffers outside of the page")
	}
	if uint64(b.GetBufferIndex()) >= uint64(len(p.buffers)) {
		return encoding.Span{}, encoding.Corruptf("buffer %d of %d", b.GetBufferIndex(), len(p.buffers))
	}
	span := p.buffers[b.GetBufferIndex()]
	if f.GetBitsPerValue() != bits {
		return span, encoding.Corruptf("values of %d bits instead of %d", f.GetBitsPerValue(), bits)
	}
	if f.GetCompression().GetScheme() == "" && uint64(n)*bits > uint64(span.Len)*8 {
		return span, encoding.Corruptf("%d values of %d bits in %d bytes", n, bits, span.Len)
	}
	return span, nil
}

// bitmap is a validity bitmap of n rows or items.
func (p *Page) bitmap(enc *pb20.ArrayEncoding, n int64) (encoding.Span, error) {
	return p.plain(enc, n, 1)
}

// plain is a buffer of uncompressed values.
func (p *Page) plain(enc *pb20.ArrayEncoding, n int64, bits uint64) (encoding.Span, error) {
	f, ok := enc.GetArrayEncoding().(*pb20.ArrayEncoding_Flat)
	if !ok {
		return encoding.Span{}, encoding.Unsupportedf("array encoding %s inside of another", name(enc))
	}
	if f.Flat.GetCompression().GetScheme() != "" {
		return encoding.Span{}, encoding.Unsupportedf("compressed values")
	}
	return p.buffer(f.Flat, n, bits)
}

// plainNoNulls is a buffer of uncompressed values inside of a nullable without nulls.
func (p *Page) plainNoNulls(enc *pb20.ArrayEncoding, n int64, bits uint64) (encoding.Span, error) {
	if nullable, ok := enc.GetArrayEncoding().(*pb20.ArrayEncoding_Nullable); ok {
		inner, ok := nullable.Nullable.GetNullability().(*pb20.Nullable_NoNulls)
		if !ok {
			return encoding.Span{}, encoding.Unsupportedf("offsets or indexes with nulls")
		}
		enc = inner.NoNulls.GetValues()
	}
	return p.plain(enc, n, bits)
}

// bitSpan covers n values of the given width from value `from` on.
func bitSpan(s encoding.Span, from, n int64, bits int) encoding.Span {
	first, last := from*int64(bits)/8, (from+n)*int64(bits)+7
	return encoding.Span{Off: s.Off + first, Len: last/8 - first}
}

// Release frees what the page holds.
func (p *Page) Release() {
	if p.values != nil {
		p.values.release()
	}
}

// Prepare returns the bytes that Locate needs to find rows.
func (p *Page) Prepare(rows []encoding.Range) []encoding.Span {
	if p.allNull {
		return nil
	}
	var spans []encoding.Span
	for _, r := range rows {
		if p.validity.Len > 0 {
			spans = append(spans, bitSpan(p.validity, r.From, r.To-r.From, 1))
		}
		spans = append(spans, p.values.prepare(r)...)
	}
	return spans
}

// Locate returns the bytes that Read needs for rows, given those of Prepare.
func (p *Page) Locate(src encoding.Loaded, rows []encoding.Range) ([]encoding.Span, error) {
	if p.allNull {
		return nil, nil
	}
	var spans []encoding.Span
	for _, r := range rows {
		s, err := p.values.locate(src, r)
		if err != nil {
			return nil, err
		}
		spans = append(spans, s...)
	}
	return spans, nil
}

// Read appends the rows r, which Locate was asked for, to out.
func (p *Page) Read(src encoding.Loaded, r encoding.Range, out *encoding.Leaf) error {
	n := r.Len()
	if p.allNull {
		fill(out.ExtendDef(n), null)
		out.Entries += n
		out.Values.AppendZero(n)
		return nil
	}
	nulls, err := p.values.read(src, r, out.Values)
	if err != nil {
		return err
	}
	var def []uint16
	if p.validity.Len > 0 {
		span := bitSpan(p.validity, r.From, r.To-r.From, 1)
		bits, err := src.Bytes(span)
		if err != nil {
			return err
		}
		def = out.ExtendDef(n)
		for i := range def {
			at := int(r.From%8) + i
			def[i] = null - uint16(bits[at/8]>>(at%8)&1)
		}
	}
	if nulls != nil {
		if def == nil {
			def = out.ExtendDef(n)
			clear(def)
		}
		for i, isNull := range nulls {
			if isNull {
				def[i] = null
			}
		}
	}
	if def == nil && len(out.Def) > 0 {
		clear(out.ExtendDef(n))
	}
	out.Entries += n
	return nil
}

func fill(def []uint16, level uint16) {
	for i := range def {
		def[i] = level
	}
}

func newValues(t encoding.Type) *encoding.Values {
	return encoding.NewValues(t, memory.DefaultAllocator)
}
