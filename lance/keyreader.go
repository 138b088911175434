package lance

import (
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
	lance   []byte
	exact   *keys.Exact
}

// keyPart reads one key column of the bound record.
type keyPart struct {
	array  arrow.Array
	lance  func(dst []byte, row int) []byte
	append func(e *keys.Exact, row int)
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
	for i, at := range k.at {
		k.parts[i] = newKeyPart(rec.Column(at))
	}
	return nil
}

// newKeyPart knows the types that KeyType allows.
func newKeyPart(a arrow.Array) keyPart {
	p := keyPart{array: a}
	switch a := a.(type) {
	case *array.String:
		p.lance = func(dst []byte, row int) []byte { return keys.AppendString(dst, a.Value(row)) }
		p.append = func(e *keys.Exact, row int) { e.AppendString(a.Value(row)) }
	case *array.LargeString:
		p.lance = func(dst []byte, row int) []byte { return keys.AppendString(dst, a.Value(row)) }
		p.append = func(e *keys.Exact, row int) { e.AppendString(a.Value(row)) }
	case *array.Binary:
		p.lance = func(dst []byte, row int) []byte { return keys.AppendBytes(dst, a.Value(row)) }
		p.append = func(e *keys.Exact, row int) { e.AppendBytes(a.Value(row)) }
	case *array.LargeBinary:
		p.lance = func(dst []byte, row int) []byte { return keys.AppendBytes(dst, a.Value(row)) }
		p.append = func(e *keys.Exact, row int) { e.AppendBytes(a.Value(row)) }
	case *array.Int32:
		p.lance = func(dst []byte, row int) []byte { return keys.AppendInt(dst, int64(a.Value(row))) }
		p.append = func(e *keys.Exact, row int) { e.AppendInt(int64(a.Value(row))) }
	case *array.Int64:
		p.lance = func(dst []byte, row int) []byte { return keys.AppendInt(dst, a.Value(row)) }
		p.append = func(e *keys.Exact, row int) { e.AppendInt(a.Value(row)) }
	case *array.Uint32:
		p.lance = func(dst []byte, row int) []byte { return keys.AppendUint(dst, uint64(a.Value(row))) }
		p.append = func(e *keys.Exact, row int) { e.AppendUint(uint64(a.Value(row))) }
	case *array.Uint64:
		p.lance = func(dst []byte, row int) []byte { return keys.AppendUint(dst, a.Value(row)) }
		p.append = func(e *keys.Exact, row int) { e.AppendUint(a.Value(row)) }
	}
	return p
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

// ExactBytes is Exact without a copy; valid until the next call.
func (k *KeyReader) ExactBytes(row int) []byte {
	k.exact.Reset()
	for _, p := range k.parts {
		p.append(k.exact, row)
	}
	return k.exact.Bytes()
}

// Null reports whether a part of the row's key is null.
func (k *KeyReader) Null(row int) bool {
	for _, p := range k.parts {
		if p.array.IsNull(row) {
			return true
		}
	}
	return false
}
