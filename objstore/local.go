package objstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
)

// Local is a store in a directory of a local disk; a key is a path below it. Any number of processes
// may use one directory at the same time, and Lance engines may read and write beside them.
//
// An object is written to a temporary file in its own directory, synced, then linked (PutIfAbsent) or
// renamed (Put, Create) to its name, and the directory is synced. link(2) is what makes the conditional
// put atomic between processes, on network file systems too, where an exclusive rename is missing.
//
// Since keys are paths, "a/b" and "a/b/c" cannot both exist: the later one is ErrInvalidKey. Two keys
// that differ in case only are one object where the file system says so. Directories stay when
// their last object is deleted.
type Local struct {
	dir string

	mu    sync.Mutex
	ready map[string]struct{} // directories that exist durably and were swept, by path; at most maxReady
}

// maxReady bounds the memory of Local for directories it has written to; above it they are checked again.
const maxReady = 4096

var (
	_ Store   = (*Local)(nil)
	_ Locator = (*Local)(nil)
)

// OpenLocal opens the store in dir, which is made durably when it does not exist.
func OpenLocal(dir string) (*Local, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("objstore: open %q: %w", dir, err)
	}
	l := &Local{dir: abs, ready: map[string]struct{}{}}
	if err := l.prepareDir(abs); err != nil {
		return nil, fmt.Errorf("objstore: open %q: %w", dir, classifyWrite(err))
	}
	return l, nil
}

// Dir is the absolute path of the store's directory.
func (l *Local) Dir() string { return l.dir }

func (l *Local) path(key string) string { return filepath.Join(l.dir, filepath.FromSlash(key)) }

// Get implements [Store].
func (l *Local) Get(ctx context.Context, key string) ([]byte, error) {
	data, err := l.read(ctx, key, func(size int64) (int64, int64, error) {
		if size > MaxGetBytes {
			return 0, 0, fmt.Errorf("%w: %d bytes", ErrTooLarge, size)
		}
		return 0, size, nil
	})
	return data, opError("get", key, err)
}

// GetRange implements [Store].
func (l *Local) GetRange(ctx context.Context, key string, off, n int64) ([]byte, error) {
	data, err := l.read(ctx, key, func(size int64) (int64, int64, error) {
		return off, n, checkRange(off, n, size)
	})
	return data, opError("get range of", key, err)
}

// GetTail implements [Store].
func (l *Local) GetTail(ctx context.Context, key string, n int64) (data []byte, size int64, err error) {
	data, err = l.read(ctx, key, func(s int64) (int64, int64, error) {
		size = s
		return tailRange(n, s)
	})
	return data, size, opError("get tail of", key, err)
}

// read opens the file of a key and reads the range that choose derives from the file's size.
func (l *Local) read(ctx context.Context, key string, choose func(size int64) (off, n int64, err error)) ([]byte, error) {
	f, info, err := l.open(ctx, key)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // read only: nothing to lose
	off, n, err := choose(info.Size())
	if err != nil {
		return nil, err
	}
	data := make([]byte, n)
	if _, err := f.ReadAt(data, off); err != nil && n > 0 {
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%w: the file was cut while it was read", ErrRange)
		}
		return nil, classifyRead(err)
	}
	return data, nil
}

// open opens the regular file of a key for reading.
func (l *Local) open(ctx context.Context, key string) (*os.File, fs.FileInfo, error) {
	if err := ValidateKey(key); err != nil {
		return nil, nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	f, err := os.OpenFile(l.path(key), os.O_RDONLY|syscall.O_NONBLOCK, 0) // do not wait at a pipe's end
	if err != nil {
		return nil, nil, classifyRead(err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%w: not a regular file", ErrNotFound)
	}
	if err != nil {
		_ = f.Close() // the error at hand is the one to report
		return nil, nil, classifyRead(err)
	}
	return f, info, nil
}

// Stat implements [Store].
func (l *Local) Stat(ctx context.Context, key string) (Info, error) {
	if err := ValidateKey(key); err != nil {
		return Info{}, opError("stat", key, err)
	}
	if err := ctx.Err(); err != nil {
		return Info{}, opError("stat", key, err)
	}
	info, err := os.Stat(l.path(key))
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%w: not a regular file", ErrNotFound)
	}
	if err != nil {
		return Info{}, opError("stat", key, classifyRead(err))
	}
	return fileInfo(key, info), nil
}

// Delete implements [Store]. The removal is not synced: a crash of the machine soon after may bring the
// object back, which is harmless for objects that nothing names any more.
func (l *Local) Delete(ctx context.Context, key string) error {
	if err := ValidateKey(key); err != nil {
		return opError("delete", key, err)
	}
	if err := ctx.Err(); err != nil {
		return opError("delete", key, err)
	}
	err := syscall.Unlink(l.path(key)) // not os.Remove, which would remove an empty directory too
	switch {
	case err == nil, errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return nil
	case errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.EPERM) && isDir(l.path(key)):
		return nil // a directory is no object
	}
	return opError("delete", key, classifyWrite(err))
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// fileInfo describes a file. The tag is made of what changes when a file is replaced.
func fileInfo(key string, info fs.FileInfo) Info {
	tag := strconv.FormatInt(info.ModTime().UnixNano(), 36) + "-" + strconv.FormatInt(info.Size(), 36)
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		tag = strconv.FormatUint(st.Ino, 36) + "-" + tag
	}
	return Info{Key: key, Size: info.Size(), ModTime: info.ModTime(), ETag: tag}
}

// checkRange reports whether an object of the given size holds the range.
func checkRange(off, n, size int64) error {
	if err := validateRange(off, n); err != nil {
		return err
	}
	if off+n > size {
		return fmt.Errorf("%w: offset %d, length %d, object of %d bytes", ErrRange, off, n, size)
	}
	return nil
}

// tailRange is the range of the last n bytes of an object of the given size.
func tailRange(n, size int64) (off, length int64, err error) {
	if n < 0 {
		return 0, 0, fmt.Errorf("%w: tail of %d bytes", ErrRange, n)
	}
	n = min(n, size)
	return size - n, n, nil
}
