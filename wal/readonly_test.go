package wal

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"
)

// Issue 6: a log on a file system that is read-only, whole or new, is not opened; the error says so and is none that blames the log or another process. Nothing
// is changed: on a writable one all is there, and it goes on. What a log says that meets it while it runs, TestCrashC3StorageFailureEndsTheLog shows.
func TestOpenOnAReadOnlyFileSystem(t *testing.T) {
	for name, mem := range map[string]*vfs.MemFS{"filled": filledLog(t), "new": vfs.NewMem()} {
		t.Run(name, func(t *testing.T) {
			readOnly := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
				if isWrite(op) {
					return &os.PathError{Op: "write", Path: op.Path, Err: syscall.EROFS}
				}
				return nil
			}))
			for range 2 {
				_, err := Open(t.Context(), testOptions(readOnly))
				require.ErrorIs(t, err, syscall.EROFS)
				for _, not := range []error{ErrLocked, ErrCorrupt, ErrFormat, ErrIdentity} {
					require.False(t, errors.Is(err, not), "%v", err)
				}
			}
			r := openLog(t, testOptions(mem))
			if name == "filled" {
				require.Len(t, readAll(t, r, r.requestAll(NewSeq(1, 10))), 20)
			}
			r.put(entryOf("after", 100, 1))
			require.NoError(t, r.stop())
		})
	}
}

// A lock whose file cannot be made is held by nobody.
func TestALockThatCannotBeMadeIsNotHeld(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, lockName), 0o755))
	_, err := Open(t.Context(), Options{Dir: dir, Graph: "demo", MinFreeBytes: -1})
	require.ErrorIs(t, err, syscall.EISDIR)
	require.NotErrorIs(t, err, ErrLocked)
}
