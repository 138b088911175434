package lance

import (
	"context"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/foldline/foldline/lance/internal/pb"
	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/countstore"
)

// cloned puts a shallow clone of t at root as the engine does: the same version number, all files under base 0, which is at address.
func cloned(t *testing.T, source *Table, root, address string) *Table {
	t.Helper()
	m := shallow(source.m.pb)
	m.BasePaths = []*pb.BasePath{{Id: 0, IsDatasetRoot: true, Path: address}}
	m.Branch = proto.String("b")
	m.Fragments = nil
	for _, f := range source.m.pb.GetFragments() {
		f = proto.CloneOf(f)
		for _, d := range f.GetFiles() {
			d.BaseId = proto.Uint32(0)
		}
		if f.GetDeletionFile() != nil {
			f.DeletionFile.BaseId = proto.Uint32(0)
		}
		m.Fragments = append(m.Fragments, f)
	}
	m.WriterVersion = &pb.WriterVersion{Library: "lance", Version: "10.0.0"}
	setFlags(m)
	tx, err := marshal(&pb.Transaction{ReadVersion: source.Version(), Uuid: "clone", Operation: &pb.Transaction_Clone_{
		Clone: &pb.Transaction_Clone{IsShallow: true, RefVersion: source.Version(), RefPath: address},
	}})
	require.NoError(t, err)
	data, err := encodeManifest(m, tx, nil)
	require.NoError(t, err)
	require.NoError(t, source.Store().Put(t.Context(), join(root, versionsFolder, namingV2.manifestName(source.Version())), data))
	table, err := Open(t.Context(), source.Store(), root)
	require.NoError(t, err)
	return table
}

// localTable is a table on disk with two fragments and a deletion.
func localTable(t *testing.T) (*Table, *syncRecorder, string) {
	t.Helper()
	dir := t.TempDir()
	local, err := objstore.OpenLocal(dir)
	require.NoError(t, err)
	store := &syncRecorder{Local: local, synced: make(map[string]bool)}
	table := newTestTable(t, store)
	table = mustCommit(t, table, &Append{Fragments: writeRows(t, table, numbered(0, 20), WriteOptions{MaxRowsPerFile: 10})}, CommitOptions{})
	return mustCommit(t, table, planDelete(t, table, rows{0: roaring.BitmapOf(1)}), CommitOptions{}), store, dir
}

// TestBranch reads a branch, whose files are its parent's, commits to it, and leaves the parent alone: new files, also deletion
// files of inherited fragments, go below the branch.
func TestBranch(t *testing.T) {
	parent, store, dir := localTable(t)
	branch := cloned(t, parent, BranchRoot("t.lance", "b"), "file://"+dir+"/t.lance")
	want, _ := readRows(t, parent, ScanOptions{})
	got, _ := readRows(t, branch, ScanOptions{})
	require.Equal(t, want, got)
	require.NoError(t, branch.CheckWritable())
	rec, err := branch.Take(t.Context(), []RowAddress{NewRowAddress(1, 3)}, nil)
	require.NoError(t, err)
	require.Equal(t, []pair{{"k000013", 13}}, pairsOf(rec))
	rec.Release()

	next := mustCommit(t, branch, planDelete(t, branch, rows{0: roaring.BitmapOf(2)}), CommitOptions{})
	require.True(t, store.synced["t.lance/data/"+parent.Fragments()[0].Files()[0].Path], "inherited files are made durable too")
	require.Nil(t, next.m.pb.GetFragments()[0].GetDeletionFile().BaseId)
	require.Equal(t, "b", next.m.pb.GetBranch())
	next = mustCommit(t, next, &Append{Fragments: writeRows(t, next, numbered(30, 31), WriteOptions{})}, CommitOptions{})
	rows, _ := readRows(t, next, ScanOptions{})
	require.Len(t, rows, 19)
	unchanged, _ := readRows(t, newRival(t, store), ScanOptions{})
	require.Equal(t, want, unchanged)

	op, err := next.Compact(t.Context(), CompactOptions{})
	require.NoError(t, err)
	compacted := mustCommit(t, next, op, CommitOptions{})
	again, _ := readRows(t, compacted, ScanOptions{})
	require.Equal(t, rows, again)
	report, err := Cleanup(t.Context(), store, compacted.Root(), CleanupOptions{OlderThan: compacted.Timestamp()})
	require.NoError(t, err)
	require.NotEmpty(t, report.Versions)
	unchanged, _ = readRows(t, parent, ScanOptions{})
	require.Equal(t, want, unchanged, "a cleanup of the branch touches nothing of the parent")
}

// TestBaseElsewhere: a base path outside of the table's store is not read, and nothing is committed on top of it.
func TestBaseElsewhere(t *testing.T) {
	parent, _, _ := localTable(t)
	for _, address := range []string{t.TempDir(), "s3://bucket/t.lance", "t.lance", ""} {
		clone := cloned(t, parent, "clone.lance", address)
		require.ErrorIs(t, clone.CheckWritable(), ErrUnsupported)
		for _, err := range clone.Scan(t.Context(), ScanOptions{}) {
			require.ErrorIs(t, err, ErrUnsupported)
		}
		_, err := clone.Deletions(t.Context(), 0)
		require.ErrorIs(t, err, ErrUnsupported)
		_, err = clone.Commit(t.Context(), NewTransaction(clone, &UpdateConfig{}), CommitOptions{})
		require.ErrorIs(t, err, ErrUnsupported)
		newest, err := LatestVersion(t.Context(), clone.Store(), "clone.lance")
		require.NoError(t, err)
		require.Equal(t, clone.Version(), newest)
	}
	clone := cloned(t, parent, "clone.lance", "/x")
	m := shallow(clone.m.pb)
	m.BasePaths = nil
	lost, err := newTable(clone.store, clone.root, clone.naming, newManifest("m", m, nil, nil, 0))
	require.NoError(t, err)
	require.ErrorIs(t, lost.CheckWritable(), ErrCorrupt, "a base id without an entry")
}

// TestUnknownWriterFlagHasNoEffect holds L4: on a table that needs what we do not know, no file is written, not only no version.
func TestUnknownWriterFlagHasNoEffect(t *testing.T) {
	store := countstore.New(objstore.NewMemory())
	table := newTestTable(t, store)
	table = mustCommit(t, table, &Append{Fragments: writeRows(t, table, numbered(0, 20), WriteOptions{MaxRowsPerFile: 10})}, CommitOptions{})
	m := shallow(table.m.pb)
	m.WriterFeatureFlags |= 1 << 20
	later, err := newTable(store, table.root, table.naming, newManifest(table.m.object, m, table.m.tx, nil, 0))
	require.NoError(t, err)
	rec := record(t, table.Schema(), numbered(0, 1))
	defer rec.Release()
	store.Reset()
	for name, try := range map[string]func(context.Context) error{
		"write rows": func(ctx context.Context) error { return later.NewFragmentWriter(ctx, WriteOptions{}).Write(rec) },
		"delete rows": func(ctx context.Context) error {
			_, _, err := later.DeleteRows(ctx, rows{0: roaring.BitmapOf(1)})
			return err
		},
		"compact": func(ctx context.Context) error { _, err := later.Compact(ctx, CompactOptions{}); return err },
		"check":   func(context.Context) error { return later.CheckWritable() },
		"commit": func(ctx context.Context) error {
			_, err := later.Commit(ctx, NewTransaction(later, &UpdateConfig{}), CommitOptions{})
			return err
		},
	} {
		require.ErrorIs(t, try(t.Context()), ErrUnsupported, name)
	}
	counts := store.Counts()
	require.Zero(t, counts.Put+counts.PutIfAbsent+counts.Upload, "%v", store.Calls())
}
