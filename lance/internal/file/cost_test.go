package file_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/lance/internal/file"
)

// wideFile has 50,000 rows of a string, a number and a vector of 512 bytes: about 25 MB, nearly all of it
// vectors.
func wideFile(t *testing.T) []byte {
	t.Helper()
	const rows, dim = 50_000, 128
	s := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.BinaryTypes.String}, {Name: "n", Type: arrow.PrimitiveTypes.Int64},
		{Name: "v", Type: arrow.FixedSizeListOf(dim, arrow.PrimitiveTypes.Float32)},
	}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, s)
	defer b.Release()
	vector := make([]float32, dim)
	for i := range rows {
		b.Field(0).(*array.StringBuilder).Append(fmt.Sprintf("k%08d", i*7919%rows))
		b.Field(1).(*array.Int64Builder).Append(int64(i) * 1_000_003 % (1 << 40))
		list := b.Field(2).(*array.FixedSizeListBuilder)
		list.Append(true)
		vector[i%dim]++
		list.ValueBuilder().(*array.Float32Builder).AppendValues(vector, nil)
	}
	rec := b.NewRecord()
	defer rec.Release()
	data, _ := writeFile(t, file.WriterOptions{}, s, rec)
	require.Greater(t, len(data), 24<<20)
	return data
}

// A scan of narrow columns reads their pages and no others: one request per page and column. A take reads page
// indexes, then the chunks that hold its rows. The counts are exact, so they are gates.
func TestReadCosts(t *testing.T) {
	data := wideFile(t)
	ctx := context.Background()
	src, r, cols := openFile(t, data, file.ReaderOptions{Size: int64(len(data))})
	cost := func(f func()) (requests, bytes int64) {
		before, beforeBytes := src.requests.Load(), src.bytes.Load()
		f()
		return src.requests.Load() - before, src.bytes.Load() - beforeBytes
	}
	require.EqualValues(t, 1, src.requests.Load(), "opening a file is one request")

	requests, bytes := cost(func() {
		for rec, err := range r.Scan(ctx, cols[:2], 0, r.Rows(), 0) {
			require.NoError(t, err)
			rec.Release()
		}
	})
	require.EqualValues(t, 2, requests, "one page of each column")
	require.Less(t, bytes, int64(1<<20))

	requests, bytes = cost(func() {
		rec, err := r.Take(ctx, cols[:2], []uint32{5, 25_000, 49_999})
		require.NoError(t, err)
		rec.Release()
	})
	require.EqualValues(t, 2+5, requests, "an index and three chunks of each column; the last of one is next to the first of the other")
	require.Less(t, bytes, int64(64<<10))

	requests, bytes = cost(func() {
		rec, err := r.Take(ctx, cols[2:], []uint32{5, 25_000, 25_001})
		require.NoError(t, err)
		rec.Release()
	})
	require.EqualValues(t, 2, requests, "vectors have a place by arithmetic, neighbours share a request")
	require.EqualValues(t, 3*512, bytes)
}
