package objstore_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/objstore"
)

func tempFiles(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, ".tmp-*"))
	require.NoError(t, err)
	return found
}

func TestLocalLeavesNoTemporaryFiles(t *testing.T) {
	dir := t.TempDir()
	s, err := objstore.OpenLocal(dir)
	require.NoError(t, err)
	require.NoError(t, s.Put(t.Context(), "a", []byte("x")))
	require.NoError(t, s.PutIfAbsent(t.Context(), "b", []byte("x")))
	require.ErrorIs(t, s.PutIfAbsent(t.Context(), "b", []byte("y")), objstore.ErrExists)
	u, err := s.Create(t.Context(), "c")
	require.NoError(t, err)
	require.Len(t, tempFiles(t, dir), 1)
	require.NoError(t, u.Abort())
	require.Empty(t, tempFiles(t, dir))
}

// A process that died leaves its temporary files: no listing shows them, and the next process that
// writes to the directory removes those that are old enough not to be in use.
func TestLocalSweepsWhatDeadProcessesLeft(t *testing.T) {
	dir := t.TempDir()
	versions := filepath.Join(dir, "t", "_versions")
	require.NoError(t, os.MkdirAll(versions, 0o755))
	old, fresh := filepath.Join(versions, ".tmp-old"), filepath.Join(versions, ".tmp-fresh")
	for _, f := range []string{old, fresh} {
		require.NoError(t, os.WriteFile(f, []byte("half"), 0o644))
	}
	past := time.Now().Add(-2 * time.Hour)
	require.NoError(t, os.Chtimes(old, past, past))

	s, err := objstore.OpenLocal(dir)
	require.NoError(t, err)
	infos, err := s.List(t.Context(), "", "", 0)
	require.NoError(t, err)
	require.Empty(t, infos)
	require.NoError(t, s.PutIfAbsent(t.Context(), "t/_versions/1", nil))
	require.Equal(t, []string{fresh}, tempFiles(t, versions))
}

func TestLocalKeyInTheWayOfADirectory(t *testing.T) {
	s, err := objstore.OpenLocal(t.TempDir())
	require.NoError(t, err)
	ctx := t.Context()
	require.NoError(t, s.Put(ctx, "file", []byte("x")))
	require.NoError(t, s.Put(ctx, "dir/file", []byte("x")))
	require.ErrorIs(t, s.Put(ctx, "file/below", nil), objstore.ErrInvalidKey)
	require.ErrorIs(t, s.PutIfAbsent(ctx, "file/below", nil), objstore.ErrInvalidKey)
	_, err = s.Create(ctx, "file/below")
	require.ErrorIs(t, err, objstore.ErrInvalidKey)
	require.ErrorIs(t, s.Put(ctx, "dir", nil), objstore.ErrInvalidKey)
	require.ErrorIs(t, s.PutIfAbsent(ctx, "dir", nil), objstore.ErrInvalidKey)
	require.NoError(t, s.Delete(ctx, "dir"), "a directory is no object, and stays")
	_, err = s.Get(ctx, "dir/file")
	require.NoError(t, err)
}

func TestLocalDirectoryRemovedBehindItsBack(t *testing.T) {
	dir := t.TempDir()
	s, err := objstore.OpenLocal(dir)
	require.NoError(t, err)
	require.NoError(t, s.Put(t.Context(), "t/data/1", []byte("x")))
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "t")))
	require.NoError(t, s.Put(t.Context(), "t/data/2", []byte("x")))
	infos, err := s.List(t.Context(), "t/", "", 0)
	require.NoError(t, err)
	require.Len(t, infos, 1)
}

// Listing the versions of a table must not touch the rest: a directory beside it may be unreadable, huge
// or, as here, lead in a circle.
func TestLocalListReadsOnlyWhatThePrefixNeeds(t *testing.T) {
	dir := t.TempDir()
	s, err := objstore.OpenLocal(dir)
	require.NoError(t, err)
	for _, key := range []string{"t/_versions/1", "t/_versions/2", "t/data/x"} {
		require.NoError(t, s.Put(t.Context(), key, nil))
	}
	require.NoError(t, os.Symlink(filepath.Join(dir, "t"), filepath.Join(dir, "t", "circle")))
	infos, err := s.List(t.Context(), "t/_versions/", "", 1)
	require.NoError(t, err)
	require.Len(t, infos, 1)
	require.Equal(t, "t/_versions/1", infos[0].Key)
}

func TestLocalFollowsSymbolicLinks(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	require.NoError(t, os.Symlink(other, filepath.Join(dir, "table")))
	require.NoError(t, os.Symlink(filepath.Join(dir, "nowhere"), filepath.Join(dir, "dangling")))
	s, err := objstore.OpenLocal(dir)
	require.NoError(t, err)
	require.NoError(t, s.PutIfAbsent(t.Context(), "table/data/x", []byte("x")))
	infos, err := s.List(t.Context(), "", "", 0)
	require.NoError(t, err)
	require.Len(t, infos, 1)
	require.Equal(t, "table/data/x", infos[0].Key)
	require.FileExists(t, filepath.Join(other, "data", "x"))
}

// A name that is no regular file is no object, and opening it must not block.
func TestLocalIgnoresWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644))
	s, err := objstore.OpenLocal(dir)
	require.NoError(t, err)
	_, err = s.Get(t.Context(), "pipe")
	require.ErrorIs(t, err, objstore.ErrNotFound)
	infos, err := s.List(t.Context(), "", "", 0)
	require.NoError(t, err)
	require.Empty(t, infos)
}

func TestLocalTagChangesWithTheContent(t *testing.T) {
	s, err := objstore.OpenLocal(t.TempDir())
	require.NoError(t, err)
	seen := map[string]bool{}
	for i := range 5 {
		require.NoError(t, s.Put(t.Context(), "k", []byte{byte(i)}))
		info, err := s.Stat(t.Context(), "k")
		require.NoError(t, err)
		require.False(t, seen[info.ETag])
		seen[info.ETag] = true
	}
}

func TestLocalErrorsNameOperationAndKey(t *testing.T) {
	s, err := objstore.OpenLocal(t.TempDir())
	require.NoError(t, err)
	_, err = s.Get(t.Context(), "t/none")
	require.ErrorContains(t, err, `objstore: get "t/none"`)
	require.Equal(t, 1, strings.Count(err.Error(), "t/none\""), "the key is named once: %v", err)
}

func TestOpenLocalRefusesAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(path, nil, 0o644))
	_, err := objstore.OpenLocal(path)
	require.ErrorIs(t, err, objstore.ErrInvalidKey)
}
