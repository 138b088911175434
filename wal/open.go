package wal

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
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

// Open opens or creates the log in opts.Dir, replays what a crash left, and
// mints the incarnation of an empty directory. It fails with [ErrLocked]
// (naming the holder), [ErrFormat], [ErrIdentity], [ErrCorrupt] or, when the
// volume has no room for the replay, [ErrBusy]. Nothing is deleted or changed
// before the identity is checked.
func Open(ctx context.Context, opts Options) (*Log, error) {
	opts.EnsureDefaults()
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := makeDir(opts.FS, opts.FS.PathJoin(opts.Dir, storeName)); err != nil {
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

func openLocked(ctx context.Context, opts Options, lock *pebble.Lock) (*Log, error) {
	id, err := settleIdentity(opts)
	if err != nil {
		return nil, err
	}
	l := &Log{opts: opts, id: id, lock: lock, schemas: newSchemaCache()}
	l.fault.done = make(chan struct{})
	l.queue.wake = make(chan struct{}, 1)
	l.space = spaceGuard{min: opts.MinFreeBytes, free: func() (int64, bool) { return freeBytes(opts.FS, opts.Dir) }}
	if l.metrics, err = newInstruments(opts.Meter, l); err != nil {
		return nil, err
	}
	if err := checkReplaySpace(opts); err != nil {
		return nil, err
	}
	if err := l.openStore(); err != nil {
		return nil, err
	}
	if err := l.recover(ctx); err != nil {
		return nil, errors.Join(err, l.db.Close())
	}
	return l, nil
}

// settleIdentity reads the directory's identity, or mints it when the directory
// never held a log.
func settleIdentity(opts Options) (identity, error) {
	id, ok, err := readIdentity(opts.FS, opts.Dir)
	if err != nil {
		return id, err
	}
	if ok {
		if id.Graph != opts.Graph || id.Lane != opts.Lane {
			return id, wrapf(ErrIdentity, "wal: %s holds graph %q lane %d, want %q lane %d",
				opts.Dir, id.Graph, id.Lane, opts.Graph, opts.Lane)
		}
		return id, nil
	}
	used, err := holdsStore(opts.FS, opts.FS.PathJoin(opts.Dir, storeName))
	if err != nil {
		return id, err
	}
	if used {
		return id, &CorruptError{
			File: opts.FS.PathJoin(opts.Dir, identityName), Key: "identity",
			Err: errors.New("missing beside a store"),
		}
	}
	id = newIdentity(opts.Graph, opts.Lane, opts.Clock())
	return id, writeIdentity(opts.FS, opts.Dir, id)
}

// holdsStore tells whether a directory has files of a store beside its lock.
func holdsStore(fs vfs.FS, dir string) (bool, error) {
	names, err := fs.List(dir)
	if err != nil {
		return false, err
	}
	for _, name := range names {
		if name != "LOCK" {
			return true, nil
		}
	}
	return false, nil
}

func (l *Log) pebbleOptions() *pebble.Options {
	return &pebble.Options{
		FS:                          l.opts.FS,
		Lock:                        l.lock,
		FormatMajorVersion:          pebble.FormatNewest,
		MemTableSize:                memTableBytes,
		MemTableStopWritesThreshold: memTablesStopWrites,
		L0CompactionThreshold:       l0Compact,
		L0StopWritesThreshold:       l0StopWrites,
		Logger:                      storageLogger{logger: l.opts.Logger, fault: &l.fault},
		EventListener:               l.listener(),
	}
}

func (l *Log) openStore() error {
	dir := l.opts.FS.PathJoin(l.opts.Dir, storeName)
	err := l.guarded("open", func() (err error) {
		l.db, err = pebble.Open(dir, l.pebbleOptions())
		return err
	})
	if err == nil {
		return nil
	}
	if pebble.IsCorruptionError(err) {
		return &CorruptError{File: dir, Key: "store", Err: err}
	}
	return fmt.Errorf("wal: open %s: %w", dir, err)
}

// checkReplaySpace refuses to open a store whose volume has no room to write
// out what its log replays: Pebble would retry that without end.
func checkReplaySpace(opts Options) error {
	if opts.MinFreeBytes < 0 {
		return nil
	}
	dir := opts.FS.PathJoin(opts.Dir, storeName)
	names, err := opts.FS.List(dir)
	if err != nil {
		return fmt.Errorf("wal: list %s: %w", dir, err)
	}
	need := int64(0)
	for _, name := range names {
		if !strings.HasSuffix(name, ".log") {
			continue
		}
		info, err := opts.FS.Stat(opts.FS.PathJoin(dir, name))
		if err != nil {
			return fmt.Errorf("wal: %w", err)
		}
		need += info.Size()
	}
	if free, ok := freeBytes(opts.FS, opts.Dir); ok && free < need {
		return fmt.Errorf("wal: %s: %d bytes free, replay may need %d: %w",
			opts.Dir, free, need, &BusyError{Reason: "free space", RetryAfter: retryDisk})
	}
	return nil
}

func freeBytes(fs vfs.FS, dir string) (int64, bool) {
	usage, err := fs.GetDiskUsage(dir)
	if err != nil {
		return 0, false
	}
	return int64(usage.AvailBytes), true
}
