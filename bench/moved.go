package bench

import (
	"errors"
	"os"

	"github.com/foldline/foldline/objstore"
)

// moved is a store in a directory that can be moved to another disk while nobody uses it. What was written stays as it is.
type moved struct {
	objstore.Store
	dir string
}

func openMoved(dir string) (*moved, error) {
	m := &moved{}
	return m, m.open(dir)
}

func (m *moved) open(dir string) error {
	store, err := objstore.OpenLocal(dir)
	if err == nil {
		m.Store, m.dir = store, dir
	}
	return err
}

// to moves everything to dir, which is emptied first.
func (m *moved) to(dir string) error {
	if dir == m.dir {
		return nil
	}
	from := m.dir
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		return err
	}
	return errors.Join(m.open(dir), os.RemoveAll(from))
}
