package file_test

import (
	"context"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/lance/internal/file"
)

// TestReportC99NestedNulls: each shape of null in a list of structs is read as it was written, alone, beside the others and behind a page of nulls, in every version that can hold it.
func TestReportC99NestedNulls(t *testing.T) {
	shapes := []string{`null`, `[]`, `[null]`, `[{"a":null,"b":null}]`, `[{"a":1,"b":"x"},null]`}
	item := arrow.StructOf(nullable("a", arrow.PrimitiveTypes.Int32), nullable("b", arrow.BinaryTypes.String))
	typ := arrow.ListOfField(nullable("item", item))
	many := strings.Repeat(`null,`, 1000)
	rows := map[string]string{"all": "[" + strings.Join(shapes, ",") + "]", "behind nulls": "[" + many + strings.Join(shapes, ",") + "]", "only nulls": "[" + many + "null]"}
	for _, s := range shapes {
		rows[s] = "[" + s + "]"
	}
	for name, text := range rows {
		arr, _, err := array.FromJSON(memory.DefaultAllocator, typ, strings.NewReader(text))
		require.NoError(t, err)
		sc := arrow.NewSchema([]arrow.Field{nullable("l", typ)}, nil)
		rec := array.NewRecord(sc, []arrow.Array{arr}, int64(arr.Len()))
		for _, version := range []file.Version{file.V21, file.V22} {
			for _, page := range []int64{4 << 10, 0} {
				data, _ := writeFile(t, file.WriterOptions{Version: version, PageBytes: page}, sc, rec)
				_, r, cols := openFile(t, data, file.ReaderOptions{})
				got, err := r.Take(context.Background(), cols, upTo(arr.Len()))
				require.NoError(t, err, "%s, version %v", name, version)
				requireRows(t, arr, got.Column(0), upTo(arr.Len()))
				got.Release()
			}
		}
	}
}
