package lance

import (
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/objstore"
)

// BenchmarkScan reads the two columns of 1,000,000 rows, whole and with every tenth row deleted.
func BenchmarkScan(b *testing.B) {
	const rows = 1_000_000
	whole := newTestTable(b, objstore.NewMemory())
	whole = mustCommit(b, whole, &Append{Fragments: writeRows(b, whole, numbered(0, rows), WriteOptions{})}, CommitOptions{})
	tenth := roaring.New()
	for i := uint32(0); i < rows; i += 10 {
		tenth.Add(i)
	}
	updated, _, err := whole.DeleteRows(b.Context(), map[uint64]*roaring.Bitmap{0: tenth})
	require.NoError(b, err)
	holed := mustCommit(b, whole, &Delete{UpdatedFragments: updated}, CommitOptions{})
	for name, table := range map[string]*Table{"whole": whole, "holed": holed} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var n int64
				for rec, err := range table.Scan(b.Context(), ScanOptions{RowAddress: true}) {
					if err != nil {
						b.Fatal(err)
					}
					n += rec.NumRows()
					rec.Release()
				}
				if uint64(n) != table.Rows() {
					b.Fatal(n)
				}
			}
			b.ReportMetric(float64(table.Rows())*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

// BenchmarkCommit appends to a table of 1,000 fragments.
func BenchmarkCommit(b *testing.B) {
	table := newTestTable(b, objstore.NewMemory())
	fragments := make([]Fragment, 1000)
	for i := range fragments {
		fragments[i] = madeUp(10)
	}
	table = mustCommit(b, table, &Append{Fragments: fragments}, CommitOptions{})
	b.ReportAllocs()
	for b.Loop() {
		table = mustCommit(b, table, &UpdateConfig{}, CommitOptions{})
	}
}
