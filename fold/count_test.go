package fold

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/countstore"
)

// TestRequestsOfAFold gates the requests of a fold with its publish, which are
// exact and do not depend on history: per table a data file, a deletion file for
// each fragment that loses rows, a manifest and one list; beside them the record,
// the heads' data file and manifest, the record before it deleted, and the two
// lists of the heads. Nothing is read: finding rows costs no request, and the
// versions that were committed are not read back.
func TestRequestsOfAFold(t *testing.T) {
	for _, c := range []struct {
		name                string
		rows                func(fold int) []row
		files, keyFilesGone int // for each table
	}{
		{"new keys", func(fold int) []row {
			return []row{upsert(fmt.Sprint("k", fold), 1)}
		}, 0, 0},
		{"one fragment loses rows: a deletion file", func(fold int) []row {
			return []row{upsert(fmt.Sprint("k", fold), 1), upsert(fmt.Sprint("k", fold-1), 1)}
		}, 1, 0},
		{"one fragment goes, by deletes: a key file", func(fold int) []row {
			return []row{upsert(fmt.Sprint("k", fold), 1), remove(fmt.Sprint("k", fold-1))}
		}, 1, 1},
	} {
		for _, tables := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s, %d tables", c.name, tables), func(t *testing.T) {
				got := steadyCalls(t, tables, 6, c.rows)
				got.ReadBytes, got.WrittenBytes = 0, 0
				require.Equal(t, countstore.Counts{
					Upload: tables + 1, Put: tables * c.files, PutIfAbsent: tables + 2, List: tables + 2,
					Delete: 1 + tables*c.keyFilesGone,
				}, got)
			})
		}
	}
}

// steadyCalls folds the rows of one fold after the other into some tables and
// counts the last fold.
func steadyCalls(t *testing.T, tables, folds int, rows func(fold int) []row) countstore.Counts {
	inner := objstore.NewMemory()
	store := countstore.New(inner)
	specs := noteTables(tables)
	w := newWorld(t, inner, 1, specs...)
	defer w.close()
	w.claim(store)
	for fold := range folds {
		for _, s := range specs {
			w.write(s.Key, rows(fold)...)
		}
		store.Reset()
		_, err := w.folder.FoldOnce(w.ctx)
		require.NoError(t, err)
	}
	return store.Counts()
}

// TestNothingToFoldCostsOneList: an idle folder only looks whether the heads moved.
func TestNothingToFoldCostsOneList(t *testing.T) {
	inner := objstore.NewMemory()
	store := countstore.New(inner)
	w := newWorld(t, inner, 1, noteTable("node:T"))
	defer w.close()
	w.claim(store)
	for range 3 {
		_, err := w.folder.FoldOnce(w.ctx)
		require.NoError(t, err)
	}
	store.Reset()
	_, err := w.folder.FoldOnce(w.ctx)
	require.NoError(t, err)
	require.Equal(t, countstore.Counts{List: 1}, store.Counts())
}
