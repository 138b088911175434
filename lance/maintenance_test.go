package lance

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/foldline/foldline/objstore"
)

// folded commits upserts and deletes on the newest version.
func folded(t *testing.T, store objstore.Store, upserts map[string]int64, deletes []string, o CommitOptions) *Table {
	t.Helper()
	p := newPlan(t, store, "t.lance", upserts, deletes)
	o.Affected = p.affected
	r, err := p.table.Commit(t.Context(), p.tx, o)
	require.NoError(t, err)
	return r.Table
}

// TestCompactionRacesFolds is report C128, with C135: a compaction is planned, folds land, then it tries. It lands only when they left its fragments
// alone; what was deleted stays deleted and what was updated stays updated, whichever way it went. Folds are never held up.
func TestCompactionRacesFolds(t *testing.T) {
	landed, refused := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		store, model := objstore.NewMemory(), map[string]int64{}
		newTestTable(t, store)
		key := rapid.Custom(func(rt *rapid.T) string { return fmt.Sprint("k", rapid.IntRange(0, 15).Draw(rt, "key")) })
		for step := range int64(rapid.IntRange(1, 3).Draw(rt, "rounds")) {
			for i := range 3 {
				model[fmt.Sprint("k", 5*i)] = step
				folded(t, store, map[string]int64{fmt.Sprint("k", 5*i): step}, nil, CommitOptions{})
			}
			base := newRival(t, store)
			op, err := base.Compact(t.Context(), CompactOptions{MaxRows: int64(rapid.IntRange(0, 8).Draw(rt, "slice"))})
			require.NoError(t, err)
			for range rapid.IntRange(0, 2).Draw(rt, "folds") {
				up, gone := key.Draw(rt, "upsert"), key.Draw(rt, "delete")
				delete(model, gone)
				model[up] = step + 100
				folded(t, store, map[string]int64{up: step + 100}, without(gone, up), CommitOptions{})
			}
			if op != nil {
				switch _, err := base.Commit(t.Context(), NewTransaction(base, op), CommitOptions{}); {
				case err == nil:
					landed++
				case errors.Is(err, ErrConflict):
					refused++
				default:
					require.NoError(t, err)
				}
			}
			requireModel(t, newRival(t, store), model)
		}
	})
	require.Positive(t, landed)
	require.Positive(t, refused)
}

// without is a list of the key unless it is the other.
func without(key, other string) []string {
	if key == other {
		return nil
	}
	return []string{key}
}

// TestReaderMeetsCleanup is report C129: a version that is kept is read to its end, rows and all; one that is gone says so at its open, and a scan that
// was under way names the file.
func TestReaderMeetsCleanup(t *testing.T) {
	store := objstore.NewMemory()
	table, day := agedTable(t, store)
	v2, err := table.At(t.Context(), 2)
	require.NoError(t, err)
	o := CleanupOptions{OlderThan: day(100), Keep: func(v uint64) bool { return v == 2 }}
	read := 0
	for rec, err := range v2.Scan(t.Context(), ScanOptions{BatchRows: 1}) {
		require.NoError(t, err)
		read += int(rec.NumRows())
		rec.Release()
		_, err = Cleanup(t.Context(), store, "t.lance", o)
		require.NoError(t, err)
	}
	require.Equal(t, 20, read)
	o.Keep = nil
	_, err = Cleanup(t.Context(), store, "t.lance", o)
	require.NoError(t, err)
	_, err = table.At(t.Context(), 2)
	require.ErrorIs(t, err, ErrNotFound)
	require.ErrorContains(t, err, "version 2")
	for _, err := range v2.Scan(t.Context(), ScanOptions{}) {
		require.ErrorIs(t, err, ErrNotFound)
		require.ErrorContains(t, err, v2.Fragments()[0].m.GetFiles()[0].GetPath())
	}
}

// TestCleanupLeavesNoOrphans is report C130: with an old version tagged, what is on the store afterwards is what that version and the newest name,
// whatever came between.
func TestCleanupLeavesNoOrphans(t *testing.T) {
	store := objstore.NewMemory()
	newTestTable(t, store)
	tagged := folded(t, store, map[string]int64{"k0": 0}, nil, CommitOptions{})
	require.NoError(t, tagged.CreateTag(t.Context(), "first", time.Now()))
	for i := range int64(50) {
		folded(t, store, map[string]int64{fmt.Sprint("k", i%7): i}, nil, CommitOptions{})
	}
	latest := newRival(t, store)
	op, err := latest.Compact(t.Context(), CompactOptions{})
	require.NoError(t, err)
	latest = mustCommit(t, latest, op, CommitOptions{})
	_, err = Cleanup(t.Context(), store, "t.lance", CleanupOptions{OlderThan: time.Now().Add(time.Hour)})
	require.NoError(t, err)
	named := map[string]bool{tagged.m.object: true, latest.m.object: true, "t.lance/_refs/tags/first.json": true}
	for _, version := range []*Table{tagged, latest} {
		for _, f := range version.Fragments() {
			named[join("t.lance", dataFolder, f.m.GetFiles()[0].GetPath())] = true
			if d := f.m.GetDeletionFile(); d != nil {
				named[join("t.lance", deletionPath(f.ID(), d))] = true
			}
		}
	}
	infos, err := store.List(t.Context(), "", "", 0)
	require.NoError(t, err)
	for _, info := range infos {
		require.True(t, named[info.Key], "%s is left, and no kept version names it", info.Key)
	}
	require.Len(t, infos, len(named))
}

// TestCleanupSparesWhatIsOnItsWay is report C131: files that no version names yet survive a cleanup that keeps nothing else, and the commit that names them
// reads.
func TestCleanupSparesWhatIsOnItsWay(t *testing.T) {
	store := objstore.NewMemory()
	table := newTestTable(t, store)
	for i := range int64(10) {
		p := newPlan(t, store, "t.lance", map[string]int64{fmt.Sprint("k", i): i, "hot": i}, nil)
		_, err := Cleanup(t.Context(), store, "t.lance", CleanupOptions{OlderThan: time.Now().Add(time.Hour)})
		require.NoError(t, err)
		r, err := p.table.Commit(t.Context(), p.tx, CommitOptions{Affected: p.affected})
		require.NoError(t, err)
		table = r.Table
	}
	live, _ := readRows(t, table, ScanOptions{})
	require.Len(t, live, 11)
}

// TestCompactionHasATarget is report C132: no fragment grows above the target, full ones are left alone, and over 100 appends with a compaction after every
// tenth all that is written is less than five times what is appended.
func TestCompactionHasATarget(t *testing.T) {
	const target, step, appends = 1000, 20, 100
	table := newTestTable(t, objstore.NewMemory())
	written := uint64(0)
	for i := range appends {
		table = mustCommit(t, table, &Append{Fragments: writeRows(t, table, numbered(i*step, (i+1)*step), WriteOptions{})}, CommitOptions{})
		written += step
		if i%10 != 9 {
			continue
		}
		op, err := table.Compact(t.Context(), CompactOptions{TargetRows: target})
		require.NoError(t, err)
		for _, g := range op.Groups {
			for _, f := range g.Old {
				require.Less(t, f.PhysicalRows(), uint64(target), "a full fragment is rewritten")
			}
			for _, f := range g.New {
				written += f.PhysicalRows()
				require.LessOrEqual(t, f.PhysicalRows(), uint64(target))
			}
		}
		table = mustCommit(t, table, op, CommitOptions{})
	}
	require.EqualValues(t, appends*step, table.Rows())
	require.Less(t, written, uint64(5*appends*step), "write amplification")
}

// TestSmallTableStaysSmall is report C133 in little: 64 rows, 300 folds of one row, maintenance every 20 of them. Fragments, versions and bytes are bounded, and
// what a fold asks for does not grow.
func TestSmallTableStaysSmall(t *testing.T) {
	store, clock := objstore.NewMemory(), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	o := CommitOptions{Clock: func() time.Time { clock = clock.Add(time.Second); return clock }}
	_, err := Create(t.Context(), store, "t.lance", keyedSchema(t), CreateOptions{Clock: o.Clock})
	require.NoError(t, err)
	model := map[string]int64{}
	for i := range int64(300) {
		key := fmt.Sprint("k", i%64)
		model[key] = i
		table := folded(t, store, map[string]int64{key: i}, nil, o)
		require.LessOrEqual(t, len(table.Fragments()), 64)
		if i%20 != 19 {
			continue
		}
		op, err := table.Compact(t.Context(), CompactOptions{})
		require.NoError(t, err)
		mustCommit(t, table, op, o)
		_, err = Cleanup(t.Context(), store, "t.lance", CleanupOptions{OlderThan: clock.Add(-10 * time.Second)})
		require.NoError(t, err)
		require.LessOrEqual(t, keysUnder(t, store, "t.lance/_versions/"), 25)
		require.LessOrEqual(t, keysUnder(t, store, ""), 100)
		require.Less(t, sizeUnder(t, store, ""), int64(256<<10))
	}
	requireModel(t, newRival(t, store), model)
}
