package wal

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The ballast is a file that holds room for the next open: a volume that others have filled to its last byte while the log was stopped could not be
// replayed, and so not be folded and released, which is what frees it. An open that finds too little room removes the file; it comes back with the
// first open or release that finds room for it beside the minimum that has to be free.
const ballastName = "BALLAST"

// ballastBytes is the most that a replay writes out: every memtable that Pebble holds back before it stops writes, and the one that is filled.
func (l *Log) ballastBytes() int64 { return (memTablesStopWrites + 1) * int64(l.opts.memTableBytes) }

func (l *Log) ballastPath() string { return l.opts.FS.PathJoin(l.opts.Dir, ballastName) }

// keepBallast makes the ballast when it is missing and there is room for it. Without it the log works as well, so a failure is only logged. It belongs to whoever
// opens or releases.
func (l *Log) keepBallast() {
	free, known := freeBytes(l.opts.FS, l.opts.Dir)
	if l.ballast || l.opts.MinFreeBytes < 0 || !known {
		return
	}
	size := l.ballastBytes()
	if info, err := l.opts.FS.Stat(l.ballastPath()); err == nil && info.Size() == size {
		l.ballast = true
		return
	}
	if free < l.opts.MinFreeBytes+size {
		return
	}
	if err := l.makeBallast(size); err != nil {
		l.opts.Logger.Warn("wal ballast not kept", "dir", l.opts.Dir, "bytes", size, "error", err)
		return
	}
	l.ballast = true
}

func (l *Log) makeBallast(size int64) error {
	f, err := l.opts.FS.Create(l.ballastPath(), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if err = errors.Join(occupy(f, size), f.Close()); err != nil {
		return errors.Join(err, l.opts.FS.Remove(l.ballastPath()))
	}
	return nil
}

// occupy makes f size bytes long, none of them a hole. Nothing is synced: a crash may leave it short, and the next open makes it again. Elsewhere than on Linux, and where a file system cannot reserve, that takes writing them.
func occupy(f vfs.File, size int64) error {
	if runtime.GOOS == "linux" && f.Preallocate(0, size) == nil {
		_, err := f.WriteAt([]byte{0}, size-1)
		return err
	}
	for at := int64(0); at < size; at += aheadBytes {
		if _, err := f.WriteAt(zeros[:min(aheadBytes, size-at)], at); err != nil {
			return err
		}
	}
	return nil
}

// dropBallast gives the room of the ballast to the open that is under way, and tells whether there was any.
func (l *Log) dropBallast() (bool, error) {
	err := l.opts.FS.Remove(l.ballastPath())
	if isNotExist(err) {
		return false, nil
	}
	if err = errors.Join(err, syncDir(l.opts.FS, l.opts.Dir)); err != nil {
		return false, fmt.Errorf("wal: remove the ballast: %w", err)
	}
	l.opts.Logger.Warn("wal volume full; the ballast is given up for the replay", "dir", l.opts.Dir)
	return true, nil
}
