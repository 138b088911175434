package lance

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow/go/v17/arrow"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/lance/internal/pb"
	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/countstore"
	"github.com/foldline/foldline/objstore/faultstore"
)

func keyedSchema(t testing.TB) *Schema {
	t.Helper()
	s, err := NewSchema(arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.BinaryTypes.String}, {Name: "v", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	}, nil), []string{"id"})
	require.NoError(t, err)
	return s
}

// madeUp returns a fragment whose data file does not exist: commits never look into data files.
func madeUp(rows uint64) Fragment {
	return Fragment{&pb.DataFragment{PhysicalRows: rows, Files: []*pb.DataFile{{
		Path: dataFileName(), Fields: []int32{0, 1}, ColumnIndices: []int32{0, 1}, FileMajorVersion: 2, FileMinorVersion: 1,
	}}}}
}

func newTestTable(t testing.TB, store objstore.Store) *Table {
	t.Helper()
	table, err := Create(t.Context(), store, "t.lance", keyedSchema(t), CreateOptions{})
	require.NoError(t, err)
	return table
}

func mustCommit(t testing.TB, table *Table, op Operation, o CommitOptions) *Table {
	t.Helper()
	r, err := table.Commit(t.Context(), NewTransaction(table, op), o)
	require.NoError(t, err)
	return r.Table
}

func ids(t *Table) []uint64 { return fragmentIDs(t.Fragments()) }

func TestCreate(t *testing.T) {
	store := countstore.New(objstore.NewMemory())
	table, err := Create(t.Context(), store, "t.lance", keyedSchema(t), CreateOptions{
		Metadata: map[string]string{"m": "1"}, Config: map[string]string{"c": "2"}, Properties: map[string]string{"p": "3"},
	})
	require.NoError(t, err)
	require.Equal(t, 1, store.Counts().PutIfAbsent)
	require.Equal(t, 3, store.Counts().Requests())
	require.EqualValues(t, 1, table.Version())
	_, err = Create(t.Context(), store, "t.lance", keyedSchema(t), CreateOptions{})
	require.ErrorIs(t, err, ErrExists)

	back, err := Open(t.Context(), store, "t.lance")
	require.NoError(t, err)
	require.Equal(t, table.TransactionUUID(), back.TransactionUUID())
	require.Equal(t, map[string]string{"m": "1"}, back.Metadata())
	require.Equal(t, map[string]string{"c": "2"}, back.Config())
	require.Equal(t, []string{"id"}, back.Schema().PrimaryKey())
	require.EqualValues(t, flagConfig, back.m.pb.GetWriterFeatureFlags())
	tx, err := back.Transaction(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[string]string{"p": "3"}, tx.Properties)
	_, err = Open(t.Context(), store, "other.lance")
	require.ErrorIs(t, err, ErrNotFound)
}

// TestRequestCounts gates the cost of an open and of a commit without rivals.
func TestRequestCounts(t *testing.T) {
	store := countstore.New(objstore.NewMemory())
	table := newTestTable(t, store)
	store.Reset()
	table = mustCommit(t, table, &Append{Fragments: []Fragment{madeUp(10)}}, CommitOptions{})
	require.Equal(t, countstore.Counts{PutIfAbsent: 1, List: 1, WrittenBytes: table.ManifestSize()}, withoutReadBytes(store.Counts()))
	store.Reset()
	_, err := table.Commit(t.Context(), NewTransaction(table, &UpdateConfig{}), CommitOptions{AssumeLatest: true})
	require.NoError(t, err)
	require.Equal(t, 1, store.Counts().Requests())
	store.Reset()
	table, err = Open(t.Context(), store, "t.lance")
	require.NoError(t, err)
	require.Equal(t, countstore.Counts{List: 1, GetTail: 1}, withoutReadBytes(store.Counts()))
	store.Reset()
	_, _, err = table.DeleteRows(t.Context(), map[uint64]*roaring.Bitmap{0: roaring.BitmapOf(1, 2)})
	require.NoError(t, err)
	require.Equal(t, 1, store.Counts().Requests())
}

func withoutReadBytes(c countstore.Counts) countstore.Counts {
	c.ReadBytes = 0
	return c
}

func TestFragmentIDsNeverReturn(t *testing.T) {
	store := objstore.NewMemory()
	v1 := newTestTable(t, store)
	v2 := mustCommit(t, v1, &Append{Fragments: []Fragment{madeUp(10), madeUp(10)}}, CommitOptions{})
	require.Equal(t, []uint64{0, 1}, ids(v2))
	v3 := mustCommit(t, v2, &Delete{DeletedFragmentIDs: []uint64{1}}, CommitOptions{})
	v4 := mustCommit(t, v3, &Append{Fragments: []Fragment{madeUp(10)}}, CommitOptions{})
	require.Equal(t, []uint64{0, 2}, ids(v4))
	v5 := mustCommit(t, v4, &ReserveFragments{Count: 5}, CommitOptions{})
	v6 := mustCommit(t, v5, &Overwrite{Schema: v5.Schema(), Fragments: []Fragment{madeUp(3)}}, CommitOptions{})
	require.Equal(t, []uint64{8}, ids(v6))
	v7 := mustCommit(t, v6, &Restore{Version: 2}, CommitOptions{})
	require.Equal(t, []uint64{0, 1}, ids(v7))
	v8 := mustCommit(t, v7, &Append{Fragments: []Fragment{madeUp(3)}}, CommitOptions{})
	require.Equal(t, []uint64{0, 1, 9}, ids(v8))
	require.EqualValues(t, 23, v8.Rows())
}

func TestDeletionVectorsAndFlags(t *testing.T) {
	store := objstore.NewMemory()
	v2 := mustCommit(t, newTestTable(t, store), &Append{Fragments: []Fragment{madeUp(10), madeUp(10)}}, CommitOptions{})
	updated, removed, err := v2.DeleteRows(t.Context(), map[uint64]*roaring.Bitmap{0: roaring.BitmapOf(1, 2), 1: roaring.New()})
	require.NoError(t, err)
	require.Empty(t, removed)
	v3 := mustCommit(t, v2, &Delete{UpdatedFragments: updated}, CommitOptions{})
	require.EqualValues(t, 18, v3.Rows())
	require.EqualValues(t, flagDeletions, v3.m.pb.GetReaderFeatureFlags())
	deleted, err := v3.Deletions(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, []uint32{1, 2}, deleted.ToArray())
	_, _, err = v3.DeleteRows(t.Context(), map[uint64]*roaring.Bitmap{0: roaring.BitmapOf(2)})
	require.ErrorIs(t, err, ErrInvalid)
	_, _, err = v3.DeleteRows(t.Context(), map[uint64]*roaring.Bitmap{0: roaring.BitmapOf(10)})
	require.ErrorIs(t, err, ErrInvalid)
	_, _, err = v3.DeleteRows(t.Context(), map[uint64]*roaring.Bitmap{7: roaring.BitmapOf(1)})
	require.ErrorIs(t, err, ErrInvalid)
	rest := roaring.New()
	rest.AddRange(3, 10)
	rest.Add(0)
	updated, removed, err = v3.DeleteRows(t.Context(), map[uint64]*roaring.Bitmap{0: rest})
	require.NoError(t, err)
	require.Equal(t, []uint64{0}, removed)
	require.Empty(t, updated)
	v4 := mustCommit(t, v3, &Update{RemovedFragmentIDs: removed, NewFragments: []Fragment{madeUp(4)}}, CommitOptions{})
	require.Equal(t, []uint64{1, 2}, ids(v4))
	require.Zero(t, v4.m.pb.GetReaderFeatureFlags(), "the flag goes with the last deletion file")
}

func TestMetadataIsCarried(t *testing.T) {
	store := objstore.NewMemory()
	v2 := mustCommit(t, newTestTable(t, store), &Append{Fragments: []Fragment{madeUp(1)}}, CommitOptions{SetMetadata: map[string]string{"a": "1", "b": "1"}})
	v3 := mustCommit(t, v2, &UpdateConfig{
		TableMetadata: &MapUpdate{Set: map[string]string{"a": "2"}, Remove: []string{"b"}}, Config: &MapUpdate{Set: map[string]string{"k": "v"}},
		SchemaMetadata: &MapUpdate{Set: map[string]string{"s": "1"}}, FieldMetadata: map[int32]*MapUpdate{1: {Set: map[string]string{"f": "1"}}},
	}, CommitOptions{})
	v4 := mustCommit(t, v3, &Append{Fragments: []Fragment{madeUp(1)}}, CommitOptions{SetMetadata: map[string]string{"c": "3"}})
	require.Equal(t, map[string]string{"a": "2", "c": "3"}, v4.Metadata())
	require.Equal(t, map[string]string{"k": "v"}, v4.Config())
	s := v4.Schema().Arrow()
	require.Equal(t, "1", s.Metadata().ToMap()["s"])
	require.Equal(t, "1", s.Field(1).Metadata.ToMap()["f"])
	v5 := mustCommit(t, v4, &Restore{Version: 2}, CommitOptions{})
	require.Equal(t, map[string]string{"a": "1", "b": "1"}, v5.Metadata())
	key := map[int32]*MapUpdate{1: {Set: map[string]string{"lance-schema:unenforced-primary-key": "true"}}}
	_, err := v5.Commit(t.Context(), NewTransaction(v5, &UpdateConfig{FieldMetadata: key}), CommitOptions{})
	require.ErrorIs(t, err, ErrInvalid)
}

// TestIndexSectionIsCarried: a commit that knows nothing of indexes keeps them, byte for byte.
func TestIndexSectionIsCarried(t *testing.T) {
	store := objstore.NewMemory()
	v1 := newTestTable(t, store)
	index := []byte{10, 5, 26, 3, 'i', 'd', 'x'}
	next := shallow(v1.m.pb)
	next.Version = 2
	data, err := encodeManifest(next, v1.m.tx, index)
	require.NoError(t, err)
	require.NoError(t, store.PutIfAbsent(t.Context(), "t.lance/_versions/"+namingV2.manifestName(2), data))
	v2, err := Open(t.Context(), store, "t.lance")
	require.NoError(t, err)
	mustCommit(t, v2, &Append{Fragments: []Fragment{madeUp(1)}}, CommitOptions{})
	v3, err := Open(t.Context(), store, "t.lance")
	require.NoError(t, err)
	require.Equal(t, index, v3.m.index)
	indexes, err := v3.Indexes()
	require.NoError(t, err)
	require.Equal(t, "idx", indexes[0].Name)
}

// TestOldNamingScheme reads and goes on in a folder with names of the first scheme.
func TestOldNamingScheme(t *testing.T) {
	store := objstore.NewMemory()
	v1 := newTestTable(t, store)
	data, err := store.Get(t.Context(), v1.m.object)
	require.NoError(t, err)
	require.NoError(t, store.PutIfAbsent(t.Context(), "old.lance/_versions/1.manifest", data))
	old, err := Open(t.Context(), store, "old.lance")
	require.NoError(t, err)
	for range 11 {
		old = mustCommit(t, old, &UpdateConfig{}, CommitOptions{})
	}
	newest, err := LatestVersion(t.Context(), store, "old.lance")
	require.NoError(t, err)
	require.EqualValues(t, 12, newest)
	again, err := OpenVersion(t.Context(), store, "old.lance", 9)
	require.NoError(t, err)
	require.EqualValues(t, 9, again.Version())
	_, err = OpenVersion(t.Context(), store, "old.lance", 99)
	require.ErrorIs(t, err, ErrNotFound)
	require.NoError(t, store.PutIfAbsent(t.Context(), "old.lance/_versions/"+namingV2.manifestName(13), data))
	_, err = Open(t.Context(), store, "old.lance")
	require.ErrorIs(t, err, ErrCorrupt, "two schemes in one folder")
}

func TestDeleteVersions(t *testing.T) {
	store := objstore.NewMemory()
	table := newTestTable(t, store)
	for range 3 {
		table = mustCommit(t, table, &UpdateConfig{}, CommitOptions{})
	}
	require.ErrorIs(t, table.DeleteVersions(t.Context(), []uint64{1, 4}), ErrInvalid)
	require.NoError(t, table.DeleteVersions(t.Context(), []uint64{1, 2, 2}))
	_, err := OpenVersion(t.Context(), store, "t.lance", 1)
	require.ErrorIs(t, err, ErrNotFound)
	_, err = OpenVersion(t.Context(), store, "t.lance", 3)
	require.NoError(t, err)
}

// TestRacingAppends holds L1 and L3: every commit that returned nil is there exactly once.
func TestRacingAppends(t *testing.T) {
	const writers, each = 8, 6
	store := objstore.NewMemory()
	newTestTable(t, store)
	var wg sync.WaitGroup
	errs := make([]error, writers)
	for w := range writers {
		wg.Go(func() {
			for range each {
				table, err := Open(t.Context(), store, "t.lance")
				if err == nil {
					_, err = table.Commit(t.Context(), NewTransaction(table, &Append{Fragments: []Fragment{madeUp(1)}}), CommitOptions{MaxAttempts: 1000})
				}
				errs[w] = errors.Join(errs[w], err)
			}
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	table, err := Open(t.Context(), store, "t.lance")
	require.NoError(t, err)
	require.EqualValues(t, writers*each, table.Rows())
	require.EqualValues(t, writers*each+1, table.Version())
}

// TestLostAnswers loses the answer of the k-th put: the commit settles it by the uuid and lands exactly once (X3).
func TestLostAnswers(t *testing.T) {
	for k := 1; k <= 4; k++ {
		inner := objstore.NewMemory()
		newTestTable(t, inner)
		store := faultstore.New(inner, faultstore.Lose(k, faultstore.Ops(faultstore.PutIfAbsent)))
		table, err := Open(t.Context(), store, "t.lance")
		require.NoError(t, err)
		for range 4 {
			table = mustCommit(t, table, &Append{Fragments: []Fragment{madeUp(1)}}, CommitOptions{})
		}
		require.EqualValues(t, 5, table.Version())
		require.EqualValues(t, 4, table.Rows())
	}
	store := faultstore.New(objstore.NewMemory(), faultstore.Lose(1, faultstore.Ops(faultstore.PutIfAbsent)))
	newTestTable(t, store)
}

// TestDelayedPut: a put that never arrived is repeated in the same slot.
func TestDelayedPut(t *testing.T) {
	inner := objstore.NewMemory()
	newTestTable(t, inner)
	store := faultstore.New(inner, faultstore.OnCall(1, faultstore.Ops(faultstore.PutIfAbsent), objstore.ErrUnknownOutcome))
	table, err := Open(t.Context(), store, "t.lance")
	require.NoError(t, err)
	table = mustCommit(t, table, &Append{Fragments: []Fragment{madeUp(1)}}, CommitOptions{})
	require.EqualValues(t, 2, table.Version())
}

// TestEveryCallFails fails each call of a commit once, before or after it was done, and holds the answer to what is there:
// nil means landed, an error that is not ErrUnknownOutcome means it did not.
func TestEveryCallFails(t *testing.T) {
	faults := map[string]faultstore.Fault{
		"refused": {Before: faultstore.ErrInjected}, "unsent": {Before: objstore.ErrUnknownOutcome}, "lost": {After: objstore.ErrUnknownOutcome},
	}
	for name, fault := range faults {
		for k := 1; ; k++ {
			inner := objstore.NewMemory()
			newTestTable(t, inner)
			n := 0
			store := faultstore.New(inner, func(context.Context, faultstore.Call) faultstore.Fault {
				if n++; n == k {
					return fault
				}
				return faultstore.Fault{}
			})
			base, err := OpenVersion(t.Context(), inner, "t.lance", 1)
			require.NoError(t, err)
			base.store = store
			// A rival makes the first attempt lose, so that the whole loop is walked.
			mustCommit(t, newRival(t, inner), &UpdateConfig{}, CommitOptions{})
			tx := NewTransaction(base, &Append{Fragments: []Fragment{madeUp(1)}})
			_, err = base.Commit(t.Context(), tx, CommitOptions{})
			latest := newRival(t, inner)
			landed := latest.TransactionUUID() == tx.UUID
			switch {
			case err == nil:
				require.True(t, landed, "%s %d", name, k)
			case !errors.Is(err, ErrUnknownOutcome):
				require.False(t, landed, "%s %d: %v", name, k, err)
			}
			require.LessOrEqual(t, latest.Rows(), uint64(1), "%s %d: landed twice", name, k)
			if store.Calls() < k {
				require.NoError(t, err)
				break
			}
		}
	}
}

func newRival(t testing.TB, store objstore.Store) *Table {
	t.Helper()
	table, err := Open(t.Context(), store, "t.lance")
	require.NoError(t, err)
	return table
}

func TestCheckSeesTheirs(t *testing.T) {
	store := objstore.NewMemory()
	base := newTestTable(t, store)
	mustCommit(t, base, &Append{Fragments: []Fragment{madeUp(1)}}, CommitOptions{SetMetadata: map[string]string{"epoch": "7"}})
	var seen []string
	_, err := base.Commit(t.Context(), NewTransaction(base, &UpdateConfig{}), CommitOptions{Check: func(_ context.Context, a Attempt) error {
		seen = append(seen, fmt.Sprintf("%d %d %d %q", a.Number, a.Latest.Version(), len(a.Theirs), a.Latest.MetadataValue("epoch")))
		if a.Number == 2 {
			require.Equal(t, KindAppend, a.Theirs[0].Tx.Op.Kind())
			return fmt.Errorf("fenced")
		}
		return nil
	}})
	require.ErrorContains(t, err, "fenced")
	require.Equal(t, []string{`1 1 0 ""`, `2 2 1 "7"`}, seen)
}
