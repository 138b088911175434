package lance

import (
	"encoding/hex"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/internal/keys"
)

// TestKeyReaderBytes compares with the engine's key bytes for every covered type.
func TestKeyReaderBytes(t *testing.T) {
	for _, c := range []struct {
		name  string
		build func(b array.Builder)
		typ   arrow.DataType
		want  string
	}{
		{"string", func(b array.Builder) { b.(*array.StringBuilder).Append("nk") }, arrow.BinaryTypes.String, "6e6b"},
		{"large string", func(b array.Builder) { b.(*array.LargeStringBuilder).Append("nk") }, arrow.BinaryTypes.LargeString, "6e6b"},
		{"binary", func(b array.Builder) { b.(*array.BinaryBuilder).Append([]byte{9, 8}) }, arrow.BinaryTypes.Binary, "0908"},
		{"large binary", func(b array.Builder) { b.(*array.BinaryBuilder).Append([]byte{9, 8}) }, arrow.BinaryTypes.LargeBinary, "0908"},
		{"int32", func(b array.Builder) { b.(*array.Int32Builder).Append(-42) }, arrow.PrimitiveTypes.Int32, "d6ffffffffffffff"},
		{"int64", func(b array.Builder) { b.(*array.Int64Builder).Append(42) }, arrow.PrimitiveTypes.Int64, "2a00000000000000"},
		{"uint32", func(b array.Builder) { b.(*array.Uint32Builder).Append(4000000000) }, arrow.PrimitiveTypes.Uint32, "00286bee00000000"},
		{"uint64", func(b array.Builder) { b.(*array.Uint64Builder).Append(42) }, arrow.PrimitiveTypes.Uint64, "2a00000000000000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := arrow.NewSchema([]arrow.Field{{Name: "k", Type: c.typ}}, nil)
			b := array.NewRecordBuilder(memory.DefaultAllocator, s)
			defer b.Release()
			c.build(b.Field(0))
			rec := b.NewRecord()
			defer rec.Release()
			k, err := NewKeyReader(s, []string{"k"})
			require.NoError(t, err)
			require.NoError(t, k.Bind(rec))
			require.Equal(t, c.want, hex.EncodeToString(k.Lance(0)))
			require.Equal(t, string(k.Lance(0)), k.Exact(0))
			require.False(t, k.Null(0))
		})
	}
}

func TestKeyReaderComposite(t *testing.T) {
	s := arrow.NewSchema([]arrow.Field{
		{Name: "n", Type: arrow.PrimitiveTypes.Int64}, {Name: "other", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
		{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
	}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, s)
	defer b.Release()
	b.Field(0).(*array.Int64Builder).AppendValues([]int64{7, 7}, nil)
	b.Field(1).AppendNull()
	b.Field(1).AppendNull()
	b.Field(2).(*array.StringBuilder).Append("b")
	b.Field(2).AppendNull()
	rec := b.NewRecord()
	defer rec.Release()
	k, err := NewKeyReader(s, []string{"s", "n"})
	require.NoError(t, err)
	require.NoError(t, k.Bind(rec))
	require.Equal(t, "6200070000000000000000", hex.EncodeToString(k.Lance(0)))
	require.Equal(t, uint64(0x51e528986a3178e0), keys.Hash(k.Lance(0)))
	require.True(t, k.Null(1))
	require.False(t, k.Null(0))
}

func TestKeyReaderRefuses(t *testing.T) {
	s := arrow.NewSchema([]arrow.Field{{Name: "f", Type: arrow.PrimitiveTypes.Float64}, {Name: "n", Type: arrow.PrimitiveTypes.Int64}}, nil)
	_, err := NewKeyReader(s, []string{"f"})
	require.ErrorIs(t, err, ErrUnsupported)
	_, err = NewKeyReader(s, []string{"missing"})
	require.ErrorIs(t, err, ErrInvalid)
	_, err = NewKeyReader(s, nil)
	require.ErrorIs(t, err, ErrInvalid)
	k, err := NewKeyReader(s, []string{"n"})
	require.NoError(t, err)
	other := arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int32}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, other)
	defer b.Release()
	rec := b.NewRecord()
	defer rec.Release()
	require.ErrorIs(t, k.Bind(rec), ErrInvalid)
}
