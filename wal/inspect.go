package wal

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// OpenReadOnly opens the log of a stopped owner to look at it: Status, Read
// (with epoch 0) and Verify work, nothing is written and nothing admitted. It
// needs no graph or lane; they stand in the directory. A directory in use is
// [ErrLocked]: ask its owner instead; a directory without a log is [ErrInvalid].
// fs nil means the operating system's.
func OpenReadOnly(ctx context.Context, dir string, fs vfs.FS) (*Log, error) {
	opts := Options{Dir: dir, FS: fs, MinFreeBytes: -1}
	opts.EnsureDefaults()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	store := opts.FS.PathJoin(dir, storeName)
	if _, err := opts.FS.Stat(store); isNotExist(err) {
		return nil, fmt.Errorf("%w: no log in %s", ErrInvalid, dir)
	}
	id, err := readIdentity(opts.FS, store)
	if err != nil {
		return nil, err
	}
	opts.Graph, opts.Lane = id.Graph, id.Lane
	lock, err := opts.FS.Lock(opts.FS.PathJoin(dir, lockName))
	if err != nil {
		return nil, fmt.Errorf("%w: %s %s: %v", ErrLocked, dir, describeHolder(opts.FS, dir), err)
	}
	l := newLog(opts, lock)
	l.id, l.readOnly = id, true
	if l.metrics, err = newInstruments(opts.Meter, l); err == nil {
		l.db, err = l.openStore(store)
	}
	if err == nil {
		if err = l.recover(ctx); err != nil {
			err = errors.Join(err, l.db.Close())
		}
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return l, nil
}
