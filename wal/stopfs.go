package wal

import (
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// stopFS is the file system Pebble gets. Pebble answers an error of its log's
// files (a full disk, a failed fsync, a log that cannot be created) in ways
// that cannot be lived with: it panics with a lock half released, or goes on.
// So such an error never reaches it: stopFS records the fault and stops the
// goroutine that met it, for good. Nothing is acknowledged after that, readers
// go on, and the process restarts. While a store opens or closes, errors are
// returned as usual.
type stopFS struct {
	vfs.FS
	fault *fault
	armed *atomic.Bool
}

func (s stopFS) check(what, path string, err error) {
	if err != nil && s.armed.Load() {
		s.fault.stop(fmt.Errorf("%s %s: %w", what, path, err))
	}
}

func isStoreLog(path string) bool { return strings.HasSuffix(path, ".log") }

// Create implements vfs.FS.
func (s stopFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := s.FS.Create(name, c)
	return s.wrapLog("create", name, f, &ahead{}, err)
}

// ReuseForWrite implements vfs.FS.
func (s stopFS) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := s.FS.ReuseForWrite(old, name, c)
	return s.wrapLog("reuse", name, f, nil, err) // it has been written before
}

// OpenDir implements vfs.FS. Without a directory's sync a new file may vanish,
// so its failure counts like one of the log.
func (s stopFS) OpenDir(name string) (vfs.File, error) {
	f, err := s.FS.OpenDir(name)
	if err != nil {
		return f, err
	}
	return &stopFile{File: f, fs: s, path: name}, nil
}

// Unwrap implements vfs.FS.
func (s stopFS) Unwrap() vfs.FS { return s.FS }

func (s stopFS) wrapLog(what, name string, f vfs.File, a *ahead, err error) (vfs.File, error) {
	if !isStoreLog(name) {
		return f, err
	}
	s.check(what, name, err)
	if err != nil {
		return f, err
	}
	return &stopFile{File: f, fs: s, path: name, ahead: a}, nil
}

// stopFile is a file of Pebble's log, or a directory.
type stopFile struct {
	vfs.File
	fs    stopFS
	path  string
	ahead *ahead // nil of a directory and of a file that is used again
}

// Write implements vfs.File.
func (f *stopFile) Write(p []byte) (int, error) {
	err := f.ahead.write(f.File, len(p), f.fs.armed.Load())
	f.fs.check("write", f.path, err)
	if err != nil {
		return 0, err
	}
	n, err := f.File.Write(p)
	f.fs.check("write", f.path, err)
	return n, err
}

// Sync implements vfs.File.
func (f *stopFile) Sync() error {
	f.ahead.synced()
	err := f.File.Sync()
	f.fs.check("sync", f.path, err)
	return err
}

// SyncData implements vfs.File.
func (f *stopFile) SyncData() error {
	f.ahead.synced()
	err := f.File.SyncData()
	f.fs.check("sync", f.path, err)
	return err
}

// SyncTo implements vfs.File.
func (f *stopFile) SyncTo(length int64) (bool, error) {
	full, err := f.File.SyncTo(length)
	f.fs.check("sync", f.path, err)
	return full, err
}

// Close implements vfs.File.
func (f *stopFile) Close() error {
	err := f.File.Close()
	f.fs.check("close", f.path, err)
	return err
}
