package objstore

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/google/uuid"
)

const (
	// sweepAge is how old a temporary file must be to count as left behind by a process that died.
	sweepAge = time.Hour
	// uploadBuffer is the memory of one streaming put, in bytes.
	uploadBuffer = 256 << 10
)

// Put implements [Store].
func (l *Local) Put(ctx context.Context, key string, data []byte) error {
	return opError("put", key, l.put(ctx, key, data, os.Rename))
}

// PutIfAbsent implements [Store].
func (l *Local) PutIfAbsent(ctx context.Context, key string, data []byte) error {
	return opError("put if absent", key, l.put(ctx, key, data, linkOnce))
}

// put writes data to a temporary file and gives it its name by place.
func (l *Local) put(ctx context.Context, key string, data []byte, place func(temp, path string) error) error {
	u, err := l.create(ctx, key)
	if err != nil {
		return err
	}
	defer func() { _ = u.Abort() }() // does nothing once the file has its name
	if _, err := u.file.Write(data); err != nil {
		return classifyWrite(err)
	}
	return u.finish(place)
}

// Create implements [Store]. It holds one open file and 256 KiB.
func (l *Local) Create(ctx context.Context, key string) (Upload, error) {
	u, err := l.create(ctx, key)
	if err != nil {
		return nil, opError("create", key, err)
	}
	u.buf = uploadBuffers.Get().(*bufio.Writer)
	u.buf.Reset(u.file)
	return u, nil
}

// uploadBuffers are for use again: most uploads are far smaller than their buffer.
var uploadBuffers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, uploadBuffer) }}

// release gives the buffer back, once.
func (u *localUpload) release() {
	if u.buf != nil {
		u.buf.Reset(nil)
		uploadBuffers.Put(u.buf)
		u.buf = nil
	}
}

// localUpload is a temporary file beside the place of its object.
type localUpload struct {
	ctx   context.Context // of Create: an upload is one call that is spread over several methods
	store *Local
	key   string
	path  string
	temp  string
	file  *os.File
	buf   *bufio.Writer
	ended bool
}

func (l *Local) create(ctx context.Context, key string) (*localUpload, error) {
	if err := ValidateKey(key); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	u := &localUpload{ctx: ctx, store: l, key: key, path: l.path(key)}
	err := u.openTemp()
	if errors.Is(err, fs.ErrNotExist) { // the directory was removed behind our back
		l.forgetDir(filepath.Dir(u.path))
		err = u.openTemp()
	}
	if err != nil {
		return nil, classifyWrite(err)
	}
	return u, nil
}

func (u *localUpload) openTemp() error {
	dir := filepath.Dir(u.path)
	if err := u.store.prepareDir(dir); err != nil {
		return err
	}
	u.temp = filepath.Join(dir, tempPrefix+uuid.NewString())
	f, err := os.OpenFile(u.temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	u.file = f
	return err
}

// Write implements io.Writer.
func (u *localUpload) Write(p []byte) (int, error) {
	if u.ended {
		return 0, opError("write", u.key, ErrClosed)
	}
	if err := u.ctx.Err(); err != nil {
		return 0, opError("write", u.key, err)
	}
	n, err := u.buf.Write(p)
	return n, opError("write", u.key, classifyWrite(err))
}

// Commit implements [Upload].
func (u *localUpload) Commit() (Info, error) {
	if u.ended {
		return Info{}, opError("commit", u.key, ErrClosed)
	}
	defer u.release()
	defer func() { _ = u.Abort() }() // does nothing once the file has its name
	if err := u.ctx.Err(); err != nil {
		return Info{}, opError("commit", u.key, err)
	}
	if err := u.buf.Flush(); err != nil {
		return Info{}, opError("commit", u.key, classifyWrite(err))
	}
	info, err := u.file.Stat()
	if err != nil {
		return Info{}, opError("commit", u.key, err)
	}
	if err := u.finish(os.Rename); err != nil {
		return Info{}, opError("commit", u.key, err)
	}
	return fileInfo(u.key, info), nil
}

// finish syncs the temporary file, gives it its name and syncs the directory. Once the name is given an
// error leaves the outcome open: the object is visible, but may be gone after a crash of the machine.
func (u *localUpload) finish(place func(temp, path string) error) error {
	if err := u.file.Sync(); err != nil {
		return classifyWrite(err)
	}
	if err := u.file.Close(); err != nil {
		return classifyWrite(err)
	}
	if err := place(u.temp, u.path); err != nil {
		return classifyPlace(u.path, err)
	}
	_ = os.Remove(u.temp) // after a link; after a rename it is gone. A leftover is swept later.
	u.ended = true
	if err := syncDir(filepath.Dir(u.path)); err != nil {
		return fmt.Errorf("%w: sync of the directory: %w", ErrUnknownOutcome, err)
	}
	return nil
}

// Abort implements [Upload].
func (u *localUpload) Abort() error {
	if u.ended {
		return nil
	}
	u.ended = true
	u.release()
	_ = u.file.Close() // its content is dropped
	if err := os.Remove(u.temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return opError("abort", u.key, err)
	}
	return nil
}

// linkOnce links temp to path, which fails when path exists. On a network file system the answer of a
// link that was made can get lost and the repeated request finds our own link; the count of links of
// the temporary file tells.
func linkOnce(temp, path string) error {
	err := os.Link(temp, path)
	if err == nil {
		return nil
	}
	if info, serr := os.Lstat(temp); serr == nil && linkCount(info) == 2 {
		return nil
	}
	return err
}

func linkCount(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink) //nolint:unconvert // narrower on other systems
	}
	return 0
}

// classifyPlace classifies the error of giving a file the name path.
func classifyPlace(path string, err error) error {
	switch {
	case isDir(path):
		return fmt.Errorf("%w: it names a directory: %w", ErrInvalidKey, err)
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%w: %w", ErrExists, err)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the temporary file was removed: %w", err)
	case errors.Is(err, syscall.EPERM), errors.Is(err, errors.ErrUnsupported):
		return fmt.Errorf("%w: the file system has no hard links: %w", ErrUnsupported, err)
	}
	return classifyWrite(err)
}

// prepareDir makes dir and its missing parents durably, and removes what dead processes left in it.
// It works once per directory and store.
func (l *Local) prepareDir(dir string) error {
	l.mu.Lock()
	_, ok := l.ready[dir]
	l.mu.Unlock()
	if ok {
		return nil
	}
	if err := makeDir(dir); err != nil {
		return err
	}
	sweep(dir)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.ready) >= maxReady {
		clear(l.ready)
	}
	l.ready[dir] = struct{}{}
	return nil
}

func (l *Local) forgetDir(dir string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.ready, dir)
}

// makeDir makes dir and its missing parents and syncs each parent that got a new entry. The parent of
// a directory that exists is synced too: another process may have made it and not have come that far.
func makeDir(dir string) error {
	parent := filepath.Dir(dir)
	if info, err := os.Stat(dir); err == nil {
		if !info.IsDir() {
			return fmt.Errorf("%s: %w", dir, syscall.ENOTDIR)
		}
		return syncParent(parent, dir)
	}
	if parent != dir {
		if err := makeDir(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncParent(parent, dir)
}

// syncParent syncs a parent directory, unless we may not open it: then the directory below was made by
// somebody with other rights, who has long synced it.
func syncParent(parent, dir string) error {
	if parent == dir {
		return nil
	}
	if err := syncDir(parent); err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		_ = f.Close() // the error at hand is the one to report
		return err
	}
	return f.Close()
}

// sweep removes temporary files in dir that have not been written to for sweepAge. It is housekeeping:
// what cannot be read or removed now is met again by the next process.
func sweep(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), tempPrefix) || !e.Type().IsRegular() {
			continue
		}
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > sweepAge {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}
