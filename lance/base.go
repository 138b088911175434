package lance

import (
	"github.com/foldline/foldline/lance/internal/pb"
	"github.com/foldline/foldline/objstore"
)

// Base paths. A shallow clone, and a branch, which is one, names the files of its source instead of copying them: a file has the
// id of a base path, which stands in the manifest as an absolute path or URI. Such a base is read when it lies in the table's own
// store, as the source of a branch always does. Commits carry bases on and put every new file, deletion files of cloned
// fragments included, below the table's own root; cleanup counts only files there. A base elsewhere is ErrUnsupported: a manifest
// must not make us read other places than those we were pointed at.

// dataKey returns the store's key of a data file.
func (t *Table) dataKey(d *pb.DataFile) (string, error) {
	if d.BaseId == nil {
		return join(t.root, dataFolder, d.GetPath()), nil
	}
	base, key, err := t.base(d.GetBaseId())
	if err != nil {
		return "", err
	}
	if base.GetIsDatasetRoot() {
		return join(key, dataFolder, d.GetPath()), nil
	}
	return join(key, d.GetPath()), nil
}

// deletionKey returns the store's key of a fragment's deletion file.
func (t *Table) deletionKey(fragment uint64, d *pb.DeletionFile) (string, error) {
	if d.BaseId == nil {
		return join(t.root, deletionPath(fragment, d)), nil
	}
	base, key, err := t.base(d.GetBaseId())
	if err != nil {
		return "", err
	}
	if !base.GetIsDatasetRoot() {
		return "", corrupt(t.m.object, "the deletion file of fragment %d lives in base %d, which is no table", fragment, base.GetId())
	}
	return join(key, deletionPath(fragment, d)), nil
}

// base finds a base path and its key in the table's store.
func (t *Table) base(id uint32) (*pb.BasePath, string, error) {
	for _, b := range t.m.pb.GetBasePaths() {
		if b.GetId() != id {
			continue
		}
		if l, ok := t.store.(objstore.Locator); ok {
			if key, ok := l.Locate(b.GetPath()); ok {
				return b, key, nil
			}
		}
		return nil, "", unsupported("base path %d, %q, is not in the store of the table", id, b.GetPath())
	}
	return nil, "", corrupt(t.m.object, "no base path %d", id)
}

// checkBases tells whether all files of the version can be found.
func (t *Table) checkBases() error {
	for _, f := range t.m.pb.GetFragments() {
		for _, d := range f.GetFiles() {
			if _, err := t.dataKey(d); err != nil {
				return err
			}
		}
		if d := f.GetDeletionFile(); d != nil {
			if _, err := t.deletionKey(f.GetId(), d); err != nil {
				return err
			}
		}
	}
	return nil
}
