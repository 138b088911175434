package publisher

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
)

var errKeyParts = errors.New("publisher: not the exact encoding of a key of this table")

// keyRecord turns exact encodings of primary keys back into a record of the key columns. The caller releases it.
func keyRecord(fields *arrow.Schema, primaryKey, keys []string) (arrow.Record, error) {
	columns := make([]arrow.Field, len(primaryKey))
	for i, name := range primaryKey {
		at := fields.FieldIndices(name)
		if len(at) != 1 {
			return nil, fmt.Errorf("%w: no column %q", errKeyParts, name)
		}
		columns[i] = fields.Field(at[0])
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(columns, nil))
	defer b.Release()
	for _, key := range keys {
		parts, err := keyParts([]byte(key), len(columns))
		if err != nil {
			return nil, err
		}
		for i, part := range parts {
			if err := appendKeyPart(b.Field(i), part); err != nil {
				return nil, err
			}
		}
	}
	return b.NewRecord(), nil
}

// keyParts splits an exact encoding: a key of one column is its bytes, one of several has each part's length in front.
func keyParts(key []byte, columns int) ([][]byte, error) {
	if columns == 1 {
		return [][]byte{key}, nil
	}
	parts := make([][]byte, columns)
	for i := range parts {
		n, width := binary.Uvarint(key)
		if width <= 0 || n > uint64(len(key)-width) {
			return nil, errKeyParts
		}
		parts[i], key = key[width:width+int(n)], key[width+int(n):]
	}
	if len(key) > 0 {
		return nil, errKeyParts
	}
	return parts, nil
}

func appendKeyPart(b array.Builder, part []byte) error {
	switch b := b.(type) {
	case *array.StringBuilder:
		b.Append(string(part))
		return nil
	case *array.LargeStringBuilder:
		b.Append(string(part))
		return nil
	case *array.BinaryBuilder: // of large_binary too
		b.Append(part)
		return nil
	}
	if len(part) != 8 {
		return errKeyParts
	}
	v := binary.LittleEndian.Uint64(part)
	switch b := b.(type) {
	case *array.Int64Builder:
		b.Append(int64(v))
	case *array.Uint64Builder:
		b.Append(v)
	case *array.Int32Builder:
		b.Append(int32(int64(v)))
	case *array.Uint32Builder:
		b.Append(uint32(v))
	default:
		return fmt.Errorf("%w: column type %s", errKeyParts, b.Type())
	}
	return nil
}
