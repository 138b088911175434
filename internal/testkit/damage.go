package testkit

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/foldline/foldline/objstore"
)

// Damage is something that happens to a table's objects at rest.
type Damage struct {
	Name string
	// Data tells damage to the data files; the table's manifests are whole.
	Data bool
	// Do damages the table at root.
	Do func(ctx context.Context, store objstore.Store, root string) error
}

// Damages are the kinds of damage that a reader of the table can notice: a flipped bit where bytes are checked, a truncation, a deletion.
func Damages() []Damage {
	newest, data := newestObject("/_versions/"), newestObject("/data/")
	return []Damage{
		{"a bit of the manifest", false, onObject(newest, flip)},
		{"half of the manifest", false, onObject(newest, half)},
		{"the newest manifest", false, remove(newest)},
		{"all manifests", false, removeAll("/_versions/")},
		{"everything", false, removeAll("/")},
		{"a bit of a data file's footer", true, onObject(data, flip)},
		{"half of a data file", true, onObject(data, half)},
		{"a data file", true, remove(data)},
	}
}

type find func(ctx context.Context, store objstore.Store, root string) (key string, err error)

// newestObject finds the newest manifest, whose name sorts first, or a data file.
func newestObject(folder string) find {
	return func(ctx context.Context, store objstore.Store, root string) (string, error) {
		infos, err := store.List(ctx, root+folder, "", 0)
		if err != nil || len(infos) == 0 {
			return "", fmt.Errorf("nothing under %s%s: %w", root, folder, err)
		}
		keys := make([]string, 0, len(infos))
		for _, i := range infos {
			keys = append(keys, i.Key)
		}
		return slices.Min(keys), nil
	}
}

func onObject(at find, change func([]byte) []byte) func(context.Context, objstore.Store, string) error {
	return func(ctx context.Context, store objstore.Store, root string) error {
		key, err := at(ctx, store, root)
		if err != nil {
			return err
		}
		bytes, err := store.Get(ctx, key)
		if err != nil {
			return err
		}
		return store.Put(ctx, key, change(slices.Clone(bytes)))
	}
}

// flip changes a bit of the last bytes, where manifests and data files have their magic.
func flip(b []byte) []byte {
	b[len(b)-2] ^= 4
	return b
}

func half(b []byte) []byte { return b[:len(b)/2] }

func remove(at find) func(context.Context, objstore.Store, string) error {
	return func(ctx context.Context, store objstore.Store, root string) error {
		key, err := at(ctx, store, root)
		if err != nil {
			return err
		}
		return store.Delete(ctx, key)
	}
}

func removeAll(folder string) func(context.Context, objstore.Store, string) error {
	return func(ctx context.Context, store objstore.Store, root string) error {
		infos, err := store.List(ctx, strings.TrimSuffix(root+folder, "/")+"/", "", 0)
		for _, i := range infos {
			if err == nil {
				err = store.Delete(ctx, i.Key)
			}
		}
		return err
	}
}
