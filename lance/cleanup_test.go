package lance

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/faultstore"
)

// clockAt returns a clock that stands still.
func clockAt(at time.Time) func() time.Time { return func() time.Time { return at } }

// agedTable has a version per day: 1 empty, 2 rows, 3 a deletion, 4 compacted; the newest is 5.
func agedTable(t *testing.T, store objstore.Store) (table *Table, day func(int) time.Time) {
	t.Helper()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	day = func(n int) time.Time { return start.AddDate(0, 0, n) }
	table, err := Create(t.Context(), store, "t.lance", keyedSchema(t), CreateOptions{Clock: clockAt(day(1))})
	require.NoError(t, err)
	o := func(n int) CommitOptions { return CommitOptions{Clock: clockAt(day(n))} }
	table = mustCommit(t, table, &Append{Fragments: writeRows(t, table, numbered(0, 20), WriteOptions{MaxRowsPerFile: 10})}, o(2))
	table = mustCommit(t, table, planDelete(t, table, rows{0: roaring.BitmapOf(1)}), o(3))
	op, err := table.Compact(t.Context(), CompactOptions{})
	require.NoError(t, err)
	table = mustCommit(t, table, op, o(4))
	return mustCommit(t, table, &UpdateConfig{}, o(5)), day
}

func keysUnder(t *testing.T, store objstore.Store, prefix string) int {
	t.Helper()
	infos, err := store.List(t.Context(), prefix, "", 0)
	require.NoError(t, err)
	return len(infos)
}

func TestCleanup(t *testing.T) {
	store := objstore.NewMemory()
	table, day := agedTable(t, store)
	want, _ := readRows(t, table, ScanOptions{})
	require.NoError(t, store.Put(t.Context(), "t.lance/data/orphan.lance", []byte("x")))
	require.NoError(t, store.Put(t.Context(), "t.lance/data/notes.md", []byte("x")))
	require.Equal(t, 5, keysUnder(t, store, "t.lance/data/"))

	report, err := Cleanup(t.Context(), store, "t.lance", CleanupOptions{OlderThan: day(4), DryRun: true})
	require.NoError(t, err)
	require.Equal(t, []uint64{1, 2, 3}, report.Versions)
	require.Equal(t, 3, report.Files, "two data files and a deletion file")
	require.Equal(t, 5, keysUnder(t, store, "t.lance/_versions/"))

	report, err = Cleanup(t.Context(), store, "t.lance", CleanupOptions{OlderThan: day(4), Keep: func(v uint64) bool { return v == 2 }})
	require.NoError(t, err)
	require.Equal(t, []uint64{1, 3}, report.Versions)
	require.Equal(t, 1, report.Files, "version 2 keeps its data files")
	v2, err := table.At(t.Context(), 2)
	require.NoError(t, err)
	rows, _ := readRows(t, v2, ScanOptions{})
	require.Len(t, rows, 20)

	report, err = Cleanup(t.Context(), store, "t.lance", CleanupOptions{OlderThan: day(100), UnverifiedAge: time.Hour, Clock: clockAt(time.Now().Add(2 * time.Hour))})
	require.NoError(t, err)
	require.Equal(t, []uint64{2, 4}, report.Versions, "the newest version stays at any age")
	require.Equal(t, 3, report.Files, "two data files and the orphan")
	require.Equal(t, 2, keysUnder(t, store, "t.lance/data/"), "a file of an unknown kind stays")
	rows, _ = readRows(t, newRival(t, store), ScanOptions{})
	require.Equal(t, want, rows)
}

// TestCleanupKeepsWhatIsNeeded: a version that heads name, that a reader may still have open, that is tagged, or that a branch stands on
// stays with its files, in the main history and in that of a branch; all others go.
func TestCleanupKeepsWhatIsNeeded(t *testing.T) {
	branchOn := func(version int) []byte {
		return fmt.Appendf(nil, `{"parentBranch":null,"identifier":{"version_mapping":[[%d,"00"]]},"parentVersion":%d,"createAt":1,"manifestSize":1,"metadata":{}}`, version, version)
	}
	for name, need := range map[string]func(t *testing.T, v2 *Table, day func(int) time.Time, o *CleanupOptions){
		"head": func(_ *testing.T, _ *Table, _ func(int) time.Time, o *CleanupOptions) {
			o.Keep = func(v uint64) bool { return v == 2 }
		},
		"reader": func(_ *testing.T, _ *Table, day func(int) time.Time, o *CleanupOptions) { o.OlderThan = day(2) },
		"tag": func(t *testing.T, v2 *Table, day func(int) time.Time, _ *CleanupOptions) {
			require.NoError(t, v2.CreateTag(t.Context(), "first", day(5)))
		},
		"branch": func(t *testing.T, v2 *Table, _ func(int) time.Time, _ *CleanupOptions) {
			require.NoError(t, v2.Store().Put(t.Context(), "t.lance/_refs/branches/a%2Fb.json", branchOn(2)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := objstore.NewMemory()
			table, day := agedTable(t, store)
			v2, err := table.At(t.Context(), 2)
			require.NoError(t, err)
			o := CleanupOptions{OlderThan: day(100)}
			need(t, v2, day, &o)
			_, err = Cleanup(t.Context(), store, "t.lance", o)
			require.NoError(t, err)
			kept, err := Open(t.Context(), store, "t.lance")
			require.NoError(t, err)
			v2, err = kept.At(t.Context(), 2)
			require.NoError(t, err)
			rows, _ := readRows(t, v2, ScanOptions{})
			require.Len(t, rows, 20)
			_, err = kept.At(t.Context(), 1)
			require.ErrorIs(t, err, ErrNotFound)
		})
	}
}

// TestCleanupOfABranch: the refs of all branches stand at the main root, and hold versions of a branch too.
func TestCleanupOfABranch(t *testing.T) {
	store := objstore.NewMemory()
	agedTable(t, store)
	infos, err := store.List(t.Context(), "t.lance/", "", 0)
	require.NoError(t, err)
	for _, info := range infos { // the branch is a table of the same history
		data, err := store.Get(t.Context(), info.Key)
		require.NoError(t, err)
		require.NoError(t, store.Put(t.Context(), strings.Replace(info.Key, "t.lance/", BranchRoot("t.lance", "x/y")+"/", 1), data))
	}
	tag := `{"branch":"x/y","version":3,"manifestSize":1,"metadata":{}}`
	require.NoError(t, store.Put(t.Context(), "t.lance/_refs/tags/there.json", []byte(tag)))
	report, err := Cleanup(t.Context(), store, BranchRoot("t.lance", "x/y"), CleanupOptions{OlderThan: time.Now()})
	require.NoError(t, err)
	require.Equal(t, []uint64{1, 2, 4}, report.Versions)
}

// TestCleanupStopsAtDamage: a manifest that cannot be read may name any file, so nothing goes.
func TestCleanupStopsAtDamage(t *testing.T) {
	store := objstore.NewMemory()
	table, day := agedTable(t, store)
	v3, err := table.At(t.Context(), 3)
	require.NoError(t, err)
	require.NoError(t, store.Put(t.Context(), v3.m.object, []byte("damaged")))
	files := keysUnder(t, store, "")
	_, err = Cleanup(t.Context(), store, "t.lance", CleanupOptions{OlderThan: day(100)})
	require.ErrorIs(t, err, ErrCorrupt)
	require.Equal(t, files, keysUnder(t, store, ""))
}

// TestCleanupCrashes cuts a cleanup off at each of its deletions: kept versions read, and a second run finishes.
func TestCleanupCrashes(t *testing.T) {
	for k := 1; ; k++ {
		inner := objstore.NewMemory()
		table, day := agedTable(t, inner)
		want, _ := readRows(t, table, ScanOptions{})
		store := faultstore.New(inner, faultstore.FromCall(k, faultstore.Ops(faultstore.Delete), nil))
		o := CleanupOptions{OlderThan: day(100)}
		_, err := Cleanup(t.Context(), store, "t.lance", o)
		done := err == nil
		_, err = Cleanup(t.Context(), inner, "t.lance", o)
		require.NoError(t, err)
		rows, _ := readRows(t, newRival(t, inner), ScanOptions{})
		require.Equal(t, want, rows)
		require.Equal(t, 1, keysUnder(t, inner, "t.lance/data/"))
		require.Equal(t, 1, keysUnder(t, inner, "t.lance/_versions/"))
		if done {
			require.Greater(t, k, 5)
			return
		}
	}
}

func TestTags(t *testing.T) {
	store := objstore.NewMemory()
	table, day := agedTable(t, store)
	require.NoError(t, table.CreateTag(t.Context(), "v1.0", day(5)))
	require.ErrorIs(t, table.CreateTag(t.Context(), "v1.0", day(6)), ErrExists)
	data, err := store.Get(t.Context(), "t.lance/_refs/tags/v1.0.json")
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(data), "{\n  \"branch\": null,\n  \"version\": 5,\n  \"createdAt\": \"2026-01-06T00:00:00Z\","), string(data))
	tags, err := table.Tags(t.Context())
	require.NoError(t, err)
	require.Equal(t, []Tag{{Name: "v1.0", Version: 5}}, tags)
	tagged, err := OpenTag(t.Context(), store, "t.lance", "v1.0")
	require.NoError(t, err)
	require.EqualValues(t, 5, tagged.Version())
	require.NoError(t, table.DeleteTag(t.Context(), "v1.0"))
	_, err = OpenTag(t.Context(), store, "t.lance", "v1.0")
	require.ErrorIs(t, err, ErrNotFound)
	for _, name := range []string{"", ".a", "a.", "a..b", "a/b", "x.lock", "é"} {
		require.ErrorIs(t, table.CreateTag(t.Context(), name, day(1)), ErrInvalid, name)
	}
	lost := faultstore.New(store, faultstore.Lose(1, faultstore.Ops(faultstore.PutIfAbsent)))
	again, err := Open(t.Context(), lost, "t.lance")
	require.NoError(t, err)
	require.NoError(t, again.CreateTag(t.Context(), "lost", day(5)))
}

func TestOpenAsOf(t *testing.T) {
	store := objstore.NewMemory()
	_, day := agedTable(t, store)
	for n := 1; n <= 6; n++ {
		table, err := OpenAsOf(t.Context(), store, "t.lance", day(n).Add(time.Hour))
		require.NoError(t, err)
		require.EqualValues(t, min(n, 5), table.Version())
	}
	_, err := OpenAsOf(t.Context(), store, "t.lance", day(0))
	require.ErrorIs(t, err, ErrNotFound)
	versions, err := newRival(t, store).Versions(t.Context(), 99)
	require.NoError(t, err)
	require.Equal(t, []uint64{1, 2, 3, 4, 5}, versions)
}
