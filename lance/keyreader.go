package lance

import (
	"unsafe"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"

	"github.com/foldline/foldline/internal/keys"
)

// KeyReader reads the key of each row of a record: as the bytes that Lance hashes and as an exact map key. It belongs to
// one goroutine; the record that is bound must outlive its use.
type KeyReader struct {
	columns []string
	types   []arrow.DataType
	schema  *arrow.Schema // of the record bound last
	at      []int
	parts   []keyPart
	nulls   bool // some part of the bound record has one
	lance   []byte
	exact   *keys.Exact
}

// keyPart reads one key column of the bound record.
type keyPart struct {
	array  arrow.Array
	lance  func(dst []byte, row int) []byte
	append func(e *keys.Exact, row int)
	// raw is the value itself where it is its own encoding as a key of one column, else nil.
	raw func(row int) []byte
}

// NewKeyReader prepares to read the key columns, in key order, of records that hold columns of these names and types.
// ErrInvalid: no column, or one that is not there exactly once. ErrUnsupported: a type that a Lance key filter does not cover
// (it covers utf8, large_utf8, binary, large_binary, int32, int64, uint32, uint64).
func NewKeyReader(s *arrow.Schema, columns []string) (*KeyReader, error) {
	if len(columns) == 0 {
		return nil, invalid("a key needs at least one column")
	}
	k := &KeyReader{columns: columns, exact: keys.NewExact(len(columns)), parts: make([]keyPart, len(columns))}
	for _, name := range columns {
		at := s.FieldIndices(name)
		if len(at) != 1 {
			return nil, invalid("key column %q: not exactly one column of that name", name)
		}
		t := s.Field(at[0]).Type
		if !KeyType(t) {
			return nil, unsupported("key column %q of type %s", name, t)
		}
		k.types = append(k.types, t)
	}
	return k, nil
}

// KeyType reports whether a column of type t may be part of a key: whether a Lance key filter covers it.
func KeyType(t arrow.DataType) bool {
	switch t.ID() {
	case arrow.STRING, arrow.LARGE_STRING, arrow.BINARY, arrow.LARGE_BINARY, arrow.INT32, arrow.INT64, arrow.UINT32, arrow.UINT64:
		return true
	}
	return false
}

// Bind chooses the record whose rows are read next. It may hold other columns too, in any order.
func (k *KeyReader) Bind(rec arrow.Record) error {
	if s := rec.Schema(); s != k.schema {
		k.schema, k.at = nil, k.at[:0]
		for i, name := range k.columns {
			at := s.FieldIndices(name)
			if len(at) != 1 || !arrow.TypeEqual(s.Field(at[0]).Type, k.types[i]) {
				return invalid("key column %q: not exactly one of type %s in the record", name, k.types[i])
			}
			k.at = append(k.at, at[0])
		}
		k.schema = s
	}
	k.nulls = false
	for i, at := range k.at {
		k.parts[i] = newKeyPart(rec.Column(at))
		k.nulls = k.nulls || k.parts[i].array.NullN() > 0
	}
	return nil
}

// newKeyPart knows the types that KeyType allows.
func newKeyPart(a arrow.Array) keyPart {
	switch a := a.(type) {
	case *array.String:
		return textPart(a, a.Value)
	case *array.LargeString:
		return textPart(a, a.Value)
	case *array.Binary:
		return bytesPart(a, a.Value)
	case *array.LargeBinary:
		return bytesPart(a, a.Value)
	case *array.Int32:
		return intPart(a, func(row int) int64 { return int64(a.Value(row)) })
	case *array.Int64:
		return intPart(a, a.Value)
	case *array.Uint32:
		return uintPart(a, func(row int) uint64 { return uint64(a.Value(row)) })
	case *array.Uint64:
		return uintPart(a, a.Value)
	}
	return keyPart{array: a}
}

func textPart(a arrow.Array, value func(int) string) keyPart {
	return keyPart{
		array:  a,
		lance:  func(dst []byte, row int) []byte { return keys.AppendString(dst, value(row)) },
		append: func(e *keys.Exact, row int) { e.AppendString(value(row)) },
		raw:    func(row int) []byte { return unsafeBytes(value(row)) },
	}
}

func bytesPart(a arrow.Array, value func(int) []byte) keyPart {
	return keyPart{
		array:  a,
		lance:  func(dst []byte, row int) []byte { return keys.AppendBytes(dst, value(row)) },
		append: func(e *keys.Exact, row int) { e.AppendBytes(value(row)) },
		raw:    value,
	}
}

func intPart(a arrow.Array, value func(int) int64) keyPart {
	return keyPart{
		array:  a,
		lance:  func(dst []byte, row int) []byte { return keys.AppendInt(dst, value(row)) },
		append: func(e *keys.Exact, row int) { e.AppendInt(value(row)) },
	}
}

func uintPart(a arrow.Array, value func(int) uint64) keyPart {
	return keyPart{
		array:  a,
		lance:  func(dst []byte, row int) []byte { return keys.AppendUint(dst, value(row)) },
		append: func(e *keys.Exact, row int) { e.AppendUint(value(row)) },
	}
}

// Lance returns the bytes that a Lance key filter hashes for the row; valid until the next call. The row's key must not be
// null.
func (k *KeyReader) Lance(row int) []byte {
	k.lance = k.lance[:0]
	for _, p := range k.parts {
		k.lance = p.lance(k.lance, row)
		if len(k.parts) > 1 {
			k.lance = keys.AppendSeparator(k.lance)
		}
	}
	return k.lance
}

// Exact returns the row's key as an unambiguous map key: equal strings are equal keys. The row's key must not be null.
func (k *KeyReader) Exact(row int) string {
	k.exact.Reset()
	for _, p := range k.parts {
		p.append(k.exact, row)
	}
	return k.exact.String()
}

// ExactBytes is Exact without a copy, to be read only; valid until the next call.
func (k *KeyReader) ExactBytes(row int) []byte {
	if len(k.parts) == 1 && k.parts[0].raw != nil {
		return k.parts[0].raw(row)
	}
	k.exact.Reset()
	for _, p := range k.parts {
		p.append(k.exact, row)
	}
	return k.exact.Bytes()
}

// Values returns the exact encodings of all rows at once, where they lie in the bound record as they are: row i is
// values[offsets[i]:offsets[i+1]]. ok is false unless the key is one column of utf8 or binary without a null.
func (k *KeyReader) Values() (offsets []int32, values []byte, ok bool) {
	if len(k.parts) != 1 || k.nulls {
		return nil, nil, false
	}
	data := k.parts[0].array.Data()
	if id := data.DataType().ID(); id != arrow.STRING && id != arrow.BINARY || data.Len() == 0 {
		return nil, nil, false
	}
	offsets = arrow.Int32Traits.CastFromBytes(data.Buffers()[1].Bytes())[data.Offset() : data.Offset()+data.Len()+1]
	if buffer := data.Buffers()[2]; buffer != nil {
		values = buffer.Bytes()
	}
	return offsets, values, true
}

// Null reports whether a part of the row's key is null.
func (k *KeyReader) Null(row int) bool {
	if !k.nulls {
		return false
	}
	for _, p := range k.parts {
		if p.array.IsNull(row) {
			return true
		}
	}
	return false
}

// unsafeBytes are the bytes of a value in an Arrow buffer, not to be written.
func unsafeBytes(v string) []byte { return unsafe.Slice(unsafe.StringData(v), len(v)) }
