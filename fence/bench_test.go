package fence

import (
	"fmt"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
)

// BenchmarkFindRows looks for 10,000 keys, half of them there, among 1,000,000.
func BenchmarkFindRows(b *testing.B) {
	const rows, wanted = 1_000_000, 10_000
	table := newTable(b, objstore.NewMemory())
	w := table.NewFragmentWriter(b.Context(), lance.WriteOptions{})
	for from := 0; from < rows; from += 10_000 {
		require.NoError(b, w.Write(numberedKeys(from, 10_000, 1)))
	}
	fragments, err := w.Finish()
	require.NoError(b, err)
	done, err := table.Commit(b.Context(), lance.NewTransaction(table, &lance.Append{Fragments: fragments}), lance.CommitOptions{})
	require.NoError(b, err)
	set := KeySet{}
	require.NoError(b, set.AddRecord(numberedKeys(0, wanted, 2*rows/wanted), []string{"id"}))
	b.ReportAllocs()
	for b.Loop() {
		found, err := FindRows(b.Context(), done.Table, set)
		require.NoError(b, err)
		require.Len(b, found, wanted/2)
	}
	b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

// numberedKeys is count rows of keys a step apart.
func numberedKeys(from, count, step int) arrow.Record {
	b := array.NewRecordBuilder(memory.DefaultAllocator, fields(arrow.BinaryTypes.String))
	defer b.Release()
	for i := range count {
		b.Field(0).(*array.StringBuilder).Append(fmt.Sprintf("F%07d", from+i*step))
		b.Field(1).AppendNull()
	}
	return b.NewRecord()
}
