package objstore

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each error of the system has the class that tells a caller what to do, and keeps itself.
func TestSystemErrorsAreClassified(t *testing.T) {
	for _, c := range []struct {
		err         syscall.Errno
		read, write error
	}{
		{syscall.ENOENT, ErrNotFound, fs.ErrNotExist},
		{syscall.ENOTDIR, ErrNotFound, ErrInvalidKey},
		{syscall.EISDIR, ErrNotFound, ErrInvalidKey},
		{syscall.ENAMETOOLONG, syscall.ENAMETOOLONG, ErrInvalidKey},
		{syscall.ENOSPC, ErrBusy, ErrBusy},
		{syscall.EDQUOT, ErrBusy, ErrBusy},
		{syscall.EMFILE, ErrBusy, ErrBusy},
		{syscall.ENFILE, ErrBusy, ErrBusy},
		{syscall.EFBIG, syscall.EFBIG, ErrTooLarge},
		{syscall.EIO, syscall.EIO, syscall.EIO},
		{syscall.EROFS, syscall.EROFS, syscall.EROFS},
	} {
		wrapped := fmt.Errorf("op: %w", &fs.PathError{Op: "op", Path: "p", Err: c.err})
		for _, got := range []struct{ err, want error }{{classifyRead(wrapped), c.read}, {classifyWrite(wrapped), c.write}} {
			require.ErrorIs(t, got.err, got.want)
			require.ErrorIs(t, got.err, c.err)
		}
	}
	require.NoError(t, classifyRead(nil))
	require.NoError(t, classifyWrite(nil))
	require.ErrorIs(t, classifyPlace("", &os.LinkError{Op: "link", Err: syscall.EEXIST}), ErrExists)
	require.ErrorIs(t, classifyPlace("", &os.LinkError{Op: "link", Err: syscall.EPERM}), ErrUnsupported)
	require.ErrorIs(t, classifyPlace("", &os.LinkError{Op: "link", Err: syscall.EOPNOTSUPP}), ErrUnsupported)
}

// A write that the system cuts short, as a full disk does, is an error: the object stays what it was,
// and nothing half-written is left.
func TestLocalShortWrite(t *testing.T) {
	dir := t.TempDir()
	s, err := OpenLocal(dir)
	require.NoError(t, err)
	require.NoError(t, s.Put(t.Context(), "k", []byte("before")))

	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit))
	small := limit
	small.Cur = 64 << 10
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &small))
	defer func() { require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit)) }()

	data := make([]byte, 1<<20)
	require.ErrorIs(t, s.Put(t.Context(), "k", data), ErrTooLarge)
	require.ErrorIs(t, s.PutIfAbsent(t.Context(), "new", data), ErrTooLarge)
	u, err := s.Create(t.Context(), "k")
	require.NoError(t, err)
	_, err = u.Write(data)
	require.ErrorIs(t, err, ErrTooLarge)
	_, err = u.Commit()
	require.ErrorIs(t, err, ErrTooLarge)
	require.NoError(t, u.Abort())

	got, err := s.Get(t.Context(), "k")
	require.NoError(t, err)
	require.Equal(t, "before", string(got))
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(dir, "k")}, left)
	left, err = filepath.Glob(filepath.Join(dir, ".*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// A link whose answer got lost, as on a network file system, is recognised by the count of links of the
// temporary file.
func TestLinkThatWasMadeBefore(t *testing.T) {
	dir := t.TempDir()
	temp, path := filepath.Join(dir, "temp"), filepath.Join(dir, "path")
	require.NoError(t, os.WriteFile(temp, nil, 0o644))
	require.NoError(t, os.Link(temp, path))
	require.NoError(t, linkOnce(temp, path))

	other := filepath.Join(dir, "other")
	require.NoError(t, os.WriteFile(other, nil, 0o644))
	require.ErrorIs(t, linkOnce(other, path), fs.ErrExist)
}
