package wal

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// asidePrefix begins the name of the directory that a log was set aside in; its incarnation follows.
const asidePrefix = "closed-"

// SetAside moves a stopped log out of the way, into a directory below its own that can be inspected like any other, and returns that directory: the next
// [Open] of dir makes a log of a new incarnation. Nothing is deleted. [ErrLocked] when a process has the log open.
func SetAside(opts Options) (aside string, err error) {
	opts.EnsureDefaults()
	fs, dir := opts.FS, opts.Dir
	lock, err := lockDir(fs, dir, opts.Clock())
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	id, err := readIdentity(fs, fs.PathJoin(dir, storeName))
	if err != nil {
		return "", err
	}
	aside = fs.PathJoin(dir, asidePrefix+id.Incarnation)
	return aside, moveStore(fs, dir, aside)
}

// moveStore renames the store and makes the move durable.
func moveStore(fs vfs.FS, dir, aside string) error {
	if err := makeDir(fs, aside); err != nil {
		return fmt.Errorf("wal: %w", err)
	}
	if err := fs.Rename(fs.PathJoin(dir, storeName), fs.PathJoin(aside, storeName)); err != nil {
		return fmt.Errorf("wal: set aside: %w", err)
	}
	return errors.Join(syncDir(fs, aside), syncDir(fs, dir))
}

// ListAside gives the directories below dir that logs were set aside in. fs nil means the operating system's.
func ListAside(dir string, fs vfs.FS) ([]string, error) {
	if fs == nil {
		fs = vfs.Default
	}
	names, err := fs.List(dir)
	if err != nil {
		return nil, fmt.Errorf("wal: %w", err)
	}
	var aside []string
	for _, name := range names {
		store := fs.PathJoin(dir, name, storeName)
		if _, err := fs.Stat(store); err == nil && strings.HasPrefix(name, asidePrefix) {
			aside = append(aside, fs.PathJoin(dir, name))
		}
	}
	return aside, nil
}
