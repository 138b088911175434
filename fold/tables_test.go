package fold

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/countstore"
	"github.com/foldline/foldline/publisher"
)

// manyTables is a world of n tables behind a store that counts, each of the first touched ones folded often enough that a further fold costs what
// all later ones cost.
func manyTables(t *testing.T, n, touched int) (*world, *countstore.Store) {
	inner := objstore.NewMemory()
	store := countstore.New(inner)
	specs := noteTables(n)
	w := newWorld(t, store, 1, specs...)
	w.store = inner // what others do is not counted
	for fold := range 3 {
		w.foldInto(touched, fold)
	}
	return w, store
}

// foldInto folds a new key and a new version of the last one into each of the first tables, in one fold.
func (w *world) foldInto(touched, fold int) {
	w.t.Helper()
	for _, s := range w.specs[:touched] {
		w.write(s.Key, upsert(fmt.Sprint("k", fold), 1), upsert(fmt.Sprint("k", fold-1), 2))
	}
	before := len(w.events)
	report, err := w.folder.FoldOnce(w.ctx)
	require.NoError(w.t, err)
	require.Equal(w.t, touched, report.Tables)
	require.Len(w.t, w.events, before+1, "one publish")
}

// plain are counts without bytes, which differ by a digit of a name.
func plain(c countstore.Counts) countstore.Counts {
	c.ReadBytes, c.WrittenBytes = 0, 0
	return c
}

// TestReportC125ConflictInOneOfManyTables: 250 tables, folds of 10 of them, and a foreign commit to one between plan and commit. That one is done again,
// in the same fold; every other table costs what it costs without it. What a fold costs is of the tables that it touches: with 20 in the graph it is
// the same. A claim's cost is a constant, and the same for every table, because each gets a barrier: it reads no rows, and nothing of their history.
func TestReportC125ConflictInOneOfManyTables(t *testing.T) {
	const touched, hit = 10, 7
	claims, folds := map[int]int{}, map[int]countstore.Counts{}
	for _, tables := range []int{20, 40, 250} {
		w, store := manyTables(t, tables, touched)
		store.Reset()
		w.foldInto(touched, 3)
		folds[tables] = plain(store.Counts())
		if tables == 250 {
			w.checkConflict(store, touched, hit)
		}
		store.Reset()
		_, err := publisher.Claim(w.ctx, publisher.Options{Store: store}, "successor")
		require.NoError(t, err)
		claims[tables] = store.Counts().Requests()
		require.Zero(t, store.Under(w.table("node:T0").Path+"/data/"), "no rows")
		w.close()
	}
	require.Equal(t, folds[20], folds[40])
	require.Equal(t, folds[20], folds[250])
	each := (claims[40] - claims[20]) / 20
	require.LessOrEqual(t, each, 5, "requests for each table")
	require.Equal(t, claims[40]+210*each, claims[250])
	require.LessOrEqual(t, claims[20]-20*each, 20, "and the constant")
	t.Logf("a claim: %d requests, and %d for each table; a fold of %d tables: %d", claims[20]-20*each, each, touched, folds[250].Requests())
}

// checkConflict holds a fold that meets a foreign commit to one table against the fold before it.
func (w *world) checkConflict(store *countstore.Store, touched, hit int) {
	w.t.Helper()
	var paths []string
	for _, table := range w.heads().Tables {
		if table.Enrolled {
			paths = append(paths, table.Path+"/")
		}
	}
	at := slices.Index(paths, w.table(w.specs[hit].Key).Path+"/")
	count := func(fold int) (each []countstore.Counts, sum int) {
		store.Reset()
		w.foldInto(touched, fold)
		for _, p := range paths {
			each = append(each, plain(store.Under(p)))
			sum += store.Under(p).Requests()
		}
		return each, store.Counts().Requests() - sum
	}
	before, rest := count(4)
	step := w.folder.opts.Step
	w.folder.opts.Step = func(s string) {
		if s == "prepared" {
			w.foreign(w.specs[hit].Key, true, map[string]int64{"k5": 100, "theirs": 100})
		}
	}
	then, restThen := count(5)
	w.folder.opts.Step = step
	w.t.Logf("one table again: %d requests in place of %d", then[at].Requests(), before[at].Requests())
	require.Greater(w.t, then[at].Requests(), before[at].Requests())
	require.Less(w.t, then[at].Requests(), 50)
	then[at] = before[at]
	require.Equal(w.t, before, then)
	require.Equal(w.t, rest+3, restThen, "the heads, the record, and a look at who owns the graph")
	require.Contains(w.t, w.scan(w.specs[hit].Key), "theirs=100")
	require.Contains(w.t, w.scan(w.specs[hit].Key), "k5=1")
}
