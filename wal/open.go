package wal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/cockroachdb/pebble/v2"
)

// Pebble's settings for a queue of synced batches, measured for this use: with
// a memtable of 16 MB an excise is cheap and what stays on disk after a release
// is small; the newest format is needed for Excise and for telling a torn tail
// of Pebble's log from damage in its middle.
const (
	memTableBytes       = 16 << 20
	memTablesStopWrites = 4
	l0Compact           = 8
	l0StopWrites        = 64
)

// Names in the log's directory.
const (
	lockName   = "LOCK"
	storeName  = "log"          // Pebble's directory, with the identity in it
	createName = "log.creating" // storeName before it is whole
)

// Open opens or creates the log in opts.Dir, replays what a crash left, and
// mints the incarnation of an empty directory. It fails with [ErrLocked]
// (naming the holder), [ErrFormat], [ErrIdentity], [ErrCorrupt], with [ErrInvalid]
// on a file system smaller than MinFreeBytes or, when it
// has no room for the replay, with [ErrBusy]. Nothing is deleted or changed
// before the identity is checked.
func Open(ctx context.Context, opts Options) (*Log, error) {
	opts.EnsureDefaults()
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := makeDir(opts.FS, opts.Dir); err != nil {
		return nil, fmt.Errorf("wal: create %s: %w", opts.Dir, err)
	}
	lock, err := lockDir(opts.FS, opts.Dir, opts.Clock())
	if err != nil {
		return nil, err
	}
	l, err := openLocked(ctx, opts, lock)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return l, nil
}

func newLog(opts Options, lock io.Closer) *Log {
	l := &Log{opts: opts, lock: lock, fault: newFault(), schemas: newSchemaCache()}
	l.queue.wake = make(chan struct{}, 1)
	l.space = spaceGuard{
		dir: opts.Dir, min: opts.MinFreeBytes, changed: l.spaceChanged,
		free: func() (int64, bool) { return freeBytes(opts.FS, opts.Dir) },
	}
	return l
}

func openLocked(ctx context.Context, opts Options, lock io.Closer) (*Log, error) {
	l := newLog(opts, lock)
	var err error
	if l.metrics, err = newInstruments(opts.Meter, l); err != nil {
		return nil, err
	}
	if err := checkCapacity(opts.FS, opts.Dir, opts.MinFreeBytes); err != nil {
		return nil, err
	}
	if err := l.settleIdentity(); err != nil {
		return nil, err
	}
	if err := l.makeReplaySpace(); err != nil {
		return nil, err
	}
	if l.db, err = l.openStore(l.storeDir()); err != nil {
		return nil, err
	}
	if err := l.recover(ctx); err != nil {
		return nil, errors.Join(err, l.db.Close())
	}
	l.armed.Store(true)
	l.keepBallast()
	return l, nil
}

// spaceChanged tells once what many producers would have to be asked for.
func (l *Log) spaceChanged(low bool, bytes int64) {
	if low {
		l.opts.Logger.Warn("wal free space too low; writes are answered busy", "dir", l.opts.Dir, "free", bytes, "minimum", l.opts.MinFreeBytes)
		return
	}
	l.opts.Logger.Info("wal free space sufficient again", "dir", l.opts.Dir, "free", bytes, "minimum", l.opts.MinFreeBytes)
}

func (l *Log) storeDir() string { return l.opts.FS.PathJoin(l.opts.Dir, storeName) }

// settleIdentity reads the identity, or creates the log in a directory that
// never held one.
func (l *Log) settleIdentity() error {
	fs, dir := l.opts.FS, l.storeDir()
	if _, err := fs.Stat(dir); isNotExist(err) {
		if err := l.create(); err != nil {
			return fmt.Errorf("wal: create %s: %w", dir, err)
		}
	} else if err != nil {
		return fmt.Errorf("wal: %w", err)
	}
	id, err := readIdentity(fs, dir)
	if err != nil {
		return err
	}
	if id.Graph != l.opts.Graph || id.Lane != l.opts.Lane {
		return wrapf(ErrIdentity, "wal: %s holds graph %q lane %d, want %q lane %d",
			l.opts.Dir, id.Graph, id.Lane, l.opts.Graph, l.opts.Lane)
	}
	l.id = id
	return nil
}

// create makes an empty store with a new identity under another name and
// renames it when it is whole, so that a crash leaves all of it or nothing.
func (l *Log) create() error {
	fs, temp := l.opts.FS, l.opts.FS.PathJoin(l.opts.Dir, createName)
	if err := fs.RemoveAll(temp); err != nil && !isNotExist(err) {
		return err
	}
	db, err := l.openStore(temp)
	if err != nil {
		return err
	}
	if err := db.Close(); err != nil {
		return err
	}
	if err := writeIdentity(fs, temp, newIdentity(l.opts.Graph, l.opts.Lane, l.opts.Clock())); err != nil {
		return err
	}
	if err := fs.Rename(temp, l.storeDir()); err != nil {
		return err
	}
	return syncDir(fs, l.opts.Dir)
}

func (l *Log) pebbleOptions() *pebble.Options {
	o := &pebble.Options{
		FS:                          stopFS{FS: l.opts.FS, fault: l.fault, armed: &l.armed},
		FormatMajorVersion:          pebble.FormatNewest,
		MemTableSize:                l.opts.memTableBytes,
		MemTableStopWritesThreshold: memTablesStopWrites,
		L0CompactionThreshold:       l0Compact,
		L0StopWritesThreshold:       l0StopWrites,
		ReadOnly:                    l.readOnly,
		Logger:                      storageLogger{logger: l.opts.Logger, fault: l.fault},
		EventListener:               l.listener(),
	}
	// What is worth it in a value is packed already.
	o.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionNone })
	// Tables of values hold nothing else. One that began at a dedupe group would overlap all values after it, and
	// compactions would rewrite them; alone they follow each other, and an excise drops whole files.
	o.Experimental.SpanPolicyFunc = pebble.MakeStaticSpanPolicyFunc(pebble.DefaultComparer.Compare,
		pebble.KeyRange{Start: spanStart(kindValue), End: spanEnd(kindValue)}, pebble.SpanPolicy{})
	return o
}

// openStore opens Pebble. A fatal event inside the open stops the goroutine it
// happens on, so the open has one of its own; damaged files can also make the
// replay panic.
func (l *Log) openStore(dir string) (db *pebble.DB, err error) {
	err = l.fault.attempt(func() (err error) {
		defer func() {
			if cause := recover(); cause != nil {
				err = &CorruptError{File: dir, Key: "store", Err: fmt.Errorf("replay: %v", cause)}
			}
		}()
		db, err = pebble.Open(dir, l.pebbleOptions())
		return err
	})
	if err == nil {
		return db, nil
	}
	if errors.Is(err, ErrCorrupt) {
		return nil, err
	}
	// Comparer and merger are the same in every log: another name in the options file is damage, and Pebble has no
	// error of its own for it.
	if pebble.IsCorruptionError(err) || strings.Contains(err.Error(), " name from file ") {
		return nil, &CorruptError{File: dir, Key: "store", Err: err}
	}
	return nil, fmt.Errorf("wal: open %s: %w", dir, err)
}

// makeReplaySpace is checkReplaySpace, once more without the ballast.
func (l *Log) makeReplaySpace() error {
	err := l.checkReplaySpace()
	if !errors.Is(err, ErrBusy) {
		return err
	}
	if dropped, dropErr := l.dropBallast(); !dropped {
		return errors.Join(err, dropErr)
	}
	return l.checkReplaySpace()
}

// checkReplaySpace refuses to open a store whose volume has no room to write
// out what its log replays: Pebble would retry that without end.
func (l *Log) checkReplaySpace() error {
	if l.opts.MinFreeBytes < 0 {
		return nil
	}
	fs, dir := l.opts.FS, l.storeDir()
	names, err := fs.List(dir)
	if err != nil {
		return fmt.Errorf("wal: list %s: %w", dir, err)
	}
	need := int64(0)
	for _, name := range names {
		if !strings.HasSuffix(name, ".log") {
			continue
		}
		info, err := fs.Stat(fs.PathJoin(dir, name))
		if err != nil {
			return fmt.Errorf("wal: %w", err)
		}
		need += info.Size()
	}
	if free, ok := freeBytes(fs, dir); ok && free < need {
		return fmt.Errorf("wal: %s: %d bytes free, replay may need %d: %w",
			dir, free, need, &BusyError{Reason: "free space", RetryAfter: retryDisk})
	}
	return nil
}
