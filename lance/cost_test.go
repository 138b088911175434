package lance

import (
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/countstore"
)

// sizeUnder is what the objects below a prefix take.
func sizeUnder(t *testing.T, store objstore.Store, prefix string) (bytes int64) {
	t.Helper()
	infos, err := store.List(t.Context(), prefix, "", 0)
	require.NoError(t, err)
	for _, info := range infos {
		bytes += info.Size
	}
	return bytes
}

// TestBytesOfACommit: a keyed update writes its data file, a deletion file for each fragment that it touches, and a manifest, and nothing twice.
func TestBytesOfACommit(t *testing.T) {
	store := countstore.New(objstore.NewMemory())
	table := newTestTable(t, store)
	table = mustCommit(t, table, &Append{Fragments: writeRows(t, table, numbered(0, 3000), WriteOptions{MaxRowsPerFile: 1000})}, CommitOptions{})
	before := sizeUnder(t, store, "")
	store.Reset()
	gone := rows{0: roaring.BitmapOf(1, 2), 2: roaring.BitmapOf(7)}
	update := &Update{NewFragments: writeRows(t, table, numbered(5000, 5100), WriteOptions{}), Filter: testFilter(1)}
	var err error
	update.UpdatedFragments, update.RemovedFragmentIDs, err = table.DeleteRows(t.Context(), gone)
	require.NoError(t, err)
	table = mustCommit(t, table, update, CommitOptions{Affected: gone})
	counts := store.Counts()
	require.Equal(t, countstore.Counts{Upload: 1, Put: 2, PutIfAbsent: 1, List: 1}, withoutBytes(counts), "%v", store.Calls())
	require.Zero(t, counts.ReadBytes)
	require.Equal(t, sizeUnder(t, store, "")-before, counts.WrittenBytes)
	require.Equal(t, table.ManifestSize(), store.Under("t.lance/_versions/").WrittenBytes)
}

// TestRequestsOfALostRace: it costs a refused put, a read of who is there instead (it may be ours, X3), a LIST, and the manifest of each rival, which
// holds its transaction.
func TestRequestsOfALostRace(t *testing.T) {
	for rivals := range 4 {
		store := countstore.New(objstore.NewMemory())
		ours := newTestTable(t, store)
		latest := ours
		for range rivals {
			latest = mustCommit(t, latest, &Append{Fragments: []Fragment{madeUp(1)}}, CommitOptions{})
		}
		store.Reset()
		mustCommit(t, ours, &Append{Fragments: []Fragment{madeUp(1)}}, CommitOptions{})
		want := countstore.Counts{PutIfAbsent: 1, List: 1}
		if rivals > 0 {
			want.PutIfAbsent, want.List, want.GetTail = 2, 2, 1+rivals
		}
		require.Equal(t, want, withoutBytes(store.Counts()), "%d rivals: %v", rivals, store.Calls())
	}
}

// TestBytesOfAnOpen: a manifest of up to 64 KiB is one read of just its bytes, a larger one is a second read of just the rest.
func TestBytesOfAnOpen(t *testing.T) {
	for _, fragments := range []int{1, 1000} {
		store := countstore.New(objstore.NewMemory())
		made := make([]Fragment, fragments)
		for i := range made {
			made[i] = madeUp(10)
		}
		size := mustCommit(t, newTestTable(t, store), &Append{Fragments: made}, CommitOptions{}).ManifestSize()
		store.Reset()
		_, err := Open(t.Context(), store, "t.lance")
		require.NoError(t, err)
		counts := store.Counts()
		want := countstore.Counts{List: 1, GetTail: 1}
		if size > 64<<10 {
			want.GetRange = 1
		}
		require.Equal(t, want, withoutBytes(counts), "%d bytes: %v", size, store.Calls())
		require.Equal(t, size, counts.ReadBytes)
	}
}

// TestBytesOfReads: a scan reads each wanted column once and not the others, a take reads pages of the wanted rows and not the rest.
func TestBytesOfReads(t *testing.T) {
	const total = 400_000 // more than is fetched by one read of a small file
	store := countstore.New(objstore.NewMemory())
	table := newTestTable(t, store)
	table = mustCommit(t, table, &Append{Fragments: writeRows(t, table, numbered(0, total), WriteOptions{})}, CommitOptions{})
	size := sizeUnder(t, store, "t.lance/data/")
	scanned := func(columns ...string) int64 {
		store.Reset()
		for rec, err := range table.Scan(t.Context(), ScanOptions{Columns: columns}) {
			require.NoError(t, err)
			rec.Release()
		}
		require.Zero(t, store.Counts().Writes()+store.Counts().List, "%v", store.Calls())
		return store.Counts().ReadBytes
	}
	both, id, v := scanned("id", "v"), scanned("id"), scanned("v")
	require.LessOrEqual(t, both, size+64<<10, "nothing but the tail, which is read to find the columns, is read twice")
	require.LessOrEqual(t, id+v, both+2*(64<<10), "a column is read for itself")
	require.Less(t, max(id, v), both)

	store.Reset()
	rec, err := table.Take(t.Context(), []RowAddress{NewRowAddress(0, 5), NewRowAddress(0, total/2), NewRowAddress(0, total-1)}, []string{"id"})
	require.NoError(t, err)
	rec.Release()
	require.Less(t, store.Counts().ReadBytes, id/2, "%v", store.Calls())
}

// TestCostOfACompaction: every live row is read once and written once, in one upload a group; the commit is a put and a LIST.
func TestCostOfACompaction(t *testing.T) {
	store := countstore.New(objstore.NewMemory())
	table := newTestTable(t, store)
	table = mustCommit(t, table, &Append{Fragments: writeRows(t, table, numbered(0, 1000), WriteOptions{MaxRowsPerFile: 100})}, CommitOptions{})
	read := sizeUnder(t, store, "t.lance/data/")
	store.Reset()
	op, err := table.Compact(t.Context(), CompactOptions{TargetRows: 500})
	require.NoError(t, err)
	require.Len(t, op.Groups, 2)
	counts := store.Counts()
	require.Equal(t, countstore.Counts{GetRange: 10, Upload: 2}, withoutBytes(counts), "%v", store.Calls())
	require.Equal(t, read, counts.ReadBytes)
	require.Equal(t, sizeUnder(t, store, "t.lance/data/")-read, counts.WrittenBytes)
	store.Reset()
	mustCommit(t, table, op, CommitOptions{})
	require.Equal(t, countstore.Counts{PutIfAbsent: 1, List: 1}, withoutBytes(store.Counts()), "%v", store.Calls())
}
