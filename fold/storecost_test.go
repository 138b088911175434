package fold

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/countstore"
)

// TestReportC144SmallWritesToManyTables: 5,000 rows of 200 bytes, each a message of its own, over 100 tables, folded 12
// times: at most 12 commits a table, fewer writes of objects than rows, and less than 20 times the bytes.
func TestReportC144SmallWritesToManyTables(t *testing.T) {
	const tables, folds, rows = 100, 12, 5000
	inner := objstore.NewMemory()
	store := countstore.New(inner)
	specs := noteTables(tables)
	w := newWorld(t, inner, 1, specs...)
	defer w.close()
	w.claim(store)
	store.Reset()
	long := strings.Repeat("x", 190)
	raw := int64(0)
	for fold := range folds {
		for i := fold * rows / folds; i < (fold+1)*rows/folds; i++ {
			key := fmt.Sprintf("%08d%s", i%(rows/2), long)
			raw += int64(len(key)) + 8
			w.write(specs[i%tables].Key, upsert(key, i))
		}
		report, err := w.folder.FoldOnce(w.ctx)
		require.NoError(t, err)
		require.Equal(t, tables, report.Tables, "one commit a table")
	}
	counts := store.Counts()
	require.Less(t, counts.Upload+counts.Put+counts.PutIfAbsent, rows)
	require.Less(t, counts.WrittenBytes, 20*raw)
	t.Logf("%d rows, %d bytes: %d objects, %d bytes", rows, raw, counts.Upload+counts.Put+counts.PutIfAbsent, counts.WrittenBytes)
}

// TestReportC146ManyTablesInOnePublish: 200 tables change in one publish; each costs at most 6 requests, and all of them a
// constant.
func TestReportC146ManyTablesInOnePublish(t *testing.T) {
	const tables, constant = 200, 8
	counts := steadyCalls(t, tables, 2, func(fold int) []row {
		return []row{upsert(fmt.Sprint("k", fold), 1), upsert(fmt.Sprint("k", fold-1), 1)}
	})
	require.LessOrEqual(t, counts.Requests(), 6*tables+constant)
}
