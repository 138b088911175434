package file_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/lance/internal/file"
	"github.com/foldline/foldline/lance/internal/schema"
)

// Every field of a file of version 2.0 owns a column, parents too.
func TestVersion20ListsEveryField(t *testing.T) {
	item := arrow.StructOf(nullable("x", arrow.PrimitiveTypes.Int64), nullable("y", arrow.BinaryTypes.String))
	s := arrow.NewSchema([]arrow.Field{nullable("l", arrow.ListOfField(nullable("item", item))), nullable("v", arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float32))}, nil)
	data, sum := writeFile(t, file.WriterOptions{Version: file.V20}, s)
	want := []file.ColumnRef{{FieldID: 0, Index: 0}, {FieldID: 1, Index: 1}, {FieldID: 2, Index: 2}, {FieldID: 3, Index: 3}, {FieldID: 4, Index: 4}}
	require.Equal(t, want, sum.Columns)
	_, r, _ := openFile(t, data, file.ReaderOptions{})
	require.Equal(t, file.V20, r.Version())
}

// A null struct has no place in version 2.0: it is refused and named, never written as a struct of nulls.
func TestVersion20RefusesNullStructs(t *testing.T) {
	st := arrow.StructOf(nullable("x", arrow.PrimitiveTypes.Int64))
	for name, typ := range map[string]arrow.DataType{"s": st, "l.item": arrow.ListOfField(nullable("item", st))} {
		s := arrow.NewSchema([]arrow.Field{nullable(name[:1], typ)}, nil)
		rows := map[string]string{"s": `[{"s":{"x":1}},{"s":null}]`, "l.item": `[{"l":[{"x":1},null]}]`}[name]
		rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, s, strings.NewReader(rows))
		require.NoError(t, err)
		fields, err := schema.FromArrow(s)
		require.NoError(t, err)
		w, err := file.NewWriter(&bytes.Buffer{}, fields, file.WriterOptions{Version: file.V20})
		require.NoError(t, err)
		err = w.Write(rec)
		require.ErrorIs(t, err, file.ErrUnsupported)
		require.ErrorContains(t, err, fmt.Sprintf("field %q, value 1: a null struct", name))
	}
}

// A dictionary with more values than its indexes can tell apart takes several pages.
func TestVersion20SplitsDictionaries(t *testing.T) {
	typ := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}
	s := arrow.NewSchema([]arrow.Field{nullable("d", typ)}, nil)
	var recs []arrow.Record
	for batch := range 4 {
		b := array.NewDictionaryBuilder(memory.DefaultAllocator, typ).(*array.BinaryDictionaryBuilder)
		for i := range 100 {
			require.NoError(t, b.AppendString(fmt.Sprintf("value %d", batch*100+i)))
		}
		b.AppendNull()
		recs = append(recs, array.NewRecord(s, []arrow.Array{b.NewArray()}, 101))
	}
	data, _ := writeFile(t, file.WriterOptions{Version: file.V20}, s, recs...)
	_, r, cols := openFile(t, data, file.ReaderOptions{})
	lines := scanText(t, r, cols, 50)
	require.Len(t, lines, 404)
	require.Equal(t, []string{`"value 99"`, "N", `"value 100"`}, lines[99:102])
	require.Equal(t, []string{`"value 399"`, "N"}, lines[402:])
}

// Types that we cannot lay out are refused before a byte is written.
func TestVersion20RefusesTypes(t *testing.T) {
	for _, typ := range []arrow.DataType{
		arrow.FixedSizeListOf(2, arrow.FixedSizeListOf(3, arrow.PrimitiveTypes.Float64)),
		&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int16, ValueType: arrow.PrimitiveTypes.Int64},
		arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64),
	} {
		fields, err := schema.FromArrow(arrow.NewSchema([]arrow.Field{nullable("c", typ)}, nil))
		if err == nil {
			_, err = file.NewWriter(&bytes.Buffer{}, fields, file.WriterOptions{Version: file.V20})
		}
		require.Error(t, err, typ)
		require.True(t, errors.Is(err, file.ErrUnsupported) || errors.Is(err, schema.ErrUnsupportedType), err)
	}
}
