package objstore

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// List implements [Store]. It reads the directory named by the prefix up to its last slash, and below
// it the directories that can hold matching keys; with a prefix that ends at a directory without
// subdirectories, such as the versions of a table, that is one directory read whatever max is.
func (l *Local) List(ctx context.Context, prefix, after string, max int) ([]Info, error) {
	if err := errors.Join(ValidatePrefix(prefix), ValidatePrefix(after)); err != nil {
		return nil, opError("list", prefix, err)
	}
	w := &walk{store: l, prefix: prefix, after: after, max: max}
	dir := prefix[:strings.LastIndexByte(prefix, '/')+1]
	if err := w.dir(ctx, dir); err != nil {
		return nil, opError("list", prefix, err)
	}
	return w.found, nil
}

// walk is one listing.
type walk struct {
	store  *Local
	prefix string
	after  string
	max    int
	found  []Info
}

func (w *walk) full() bool { return w.max > 0 && len(w.found) >= w.max }

// dir lists one directory; dir is its key with a slash at the end, or empty for the root.
func (w *walk) dir(ctx context.Context, dir string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	names, err := w.names(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if w.full() {
			return nil
		}
		key := dir + name
		if strings.HasSuffix(name, "/") {
			err = w.dir(ctx, key)
		} else {
			err = w.file(key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// names reads a directory: the names that can lead to a wanted key, those of directories with a slash
// at the end, in the order of the keys they lead to. The slash takes part in the order: "a-b" sorts
// before what is in "a/". A directory that is not there has no names.
func (w *walk) names(dir string) ([]string, error) {
	entries, err := os.ReadDir(w.store.path(dir))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	if err != nil {
		return nil, classifyRead(err)
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		name, ok := w.entryName(dir, e)
		if ok && w.wanted(dir+name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// entryName is the name of an entry, with a slash when it is a directory, also behind a symbolic link.
func (w *walk) entryName(dir string, e fs.DirEntry) (string, bool) {
	name, mode := e.Name(), e.Type()
	if strings.HasPrefix(name, tempPrefix) {
		return "", false
	}
	if mode&fs.ModeSymlink != 0 {
		info, err := os.Stat(filepath.Join(w.store.path(dir), name))
		if err != nil {
			return "", false
		}
		mode = info.Mode().Type()
	}
	if mode.IsDir() {
		name += "/"
	}
	return name, mode.IsDir() || mode.IsRegular()
}

// wanted reports whether key, or something below it when it ends at a slash, can be in the answer.
func (w *walk) wanted(key string) bool {
	if !strings.HasPrefix(key, w.prefix) {
		return false
	}
	return key > w.after || strings.HasSuffix(key, "/") && strings.HasPrefix(w.after, key)
}

// file adds an object to the answer. One that was deleted since the directory was read is left out.
func (w *walk) file(key string) error {
	info, err := os.Stat(w.store.path(key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return classifyRead(err)
	}
	w.found = append(w.found, fileInfo(key, info))
	return nil
}
