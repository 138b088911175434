package lance

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/foldline/foldline/objstore"
)

// Open opens the newest version of the table at root: one LIST of one key and one GET of at most 64 KiB, two GETs for a larger
// manifest. ErrNotFound when there is no table; ErrUnsupported when it needs features that this package lacks.
func Open(ctx context.Context, store objstore.Store, root string) (*Table, error) {
	version, n, err := latestVersion(ctx, store, root)
	if err != nil {
		return nil, err
	}
	return openNamed(ctx, store, root, n, version)
}

// OpenVersion opens one version of the table at root: one GET, no LIST. ErrNotFound when it never was or was cleaned up.
func OpenVersion(ctx context.Context, store objstore.Store, root string, version uint64) (*Table, error) {
	t, err := openNamed(ctx, store, root, namingV2, version)
	if errors.Is(err, ErrNotFound) {
		if old, oldErr := openNamed(ctx, store, root, namingV1, version); !errors.Is(oldErr, ErrNotFound) {
			return old, oldErr
		}
	}
	return t, err
}

// LatestVersion returns the number of the newest version of the table at root: one LIST of one key (of all keys for a folder
// with manifest names of the old scheme). ErrNotFound when there is none.
func LatestVersion(ctx context.Context, store objstore.Store, root string) (uint64, error) {
	version, _, err := latestVersion(ctx, store, root)
	return version, err
}

// Latest returns the newest version of the table; t itself when that is still the newest.
func (t *Table) Latest(ctx context.Context) (*Table, error) {
	version, n, err := latestVersion(ctx, t.store, t.root)
	if err != nil {
		return nil, err
	}
	if version == t.Version() {
		return t, nil
	}
	return openNamed(ctx, t.store, t.root, n, version)
}

// At returns another version of the table. ErrNotFound when it never was or was cleaned up.
func (t *Table) At(ctx context.Context, version uint64) (*Table, error) {
	if version == t.Version() {
		return t, nil
	}
	return openNamed(ctx, t.store, t.root, t.naming, version)
}

func openNamed(ctx context.Context, store objstore.Store, root string, n naming, version uint64) (*Table, error) {
	m, err := fetchVersion(ctx, store, root, n, version)
	if err != nil {
		return nil, fmt.Errorf("open version %d of table %q: %w", version, root, err)
	}
	t, err := newTable(store, root, n, m)
	if err != nil {
		return nil, fmt.Errorf("open version %d of table %q: %w", version, root, err)
	}
	return t, nil
}

// fetchVersion reads the manifest of a version and holds it to its name.
func fetchVersion(ctx context.Context, store objstore.Store, root string, n naming, version uint64) (*manifest, error) {
	m, err := fetchManifest(ctx, store, join(root, versionsFolder, n.manifestName(version)))
	if err != nil {
		return nil, err
	}
	if m.pb.GetVersion() != version {
		return nil, corrupt(m.object, "holds version %d", m.pb.GetVersion())
	}
	return m, nil
}

// latestVersion lists one key behind all names that cannot be a version. In a folder of the new scheme that is the newest
// version; only when it is something else the whole folder is read.
func latestVersion(ctx context.Context, store objstore.Store, root string) (uint64, naming, error) {
	prefix := join(root, versionsFolder) + "/"
	infos, err := store.List(ctx, prefix, prefix+"0", 1)
	if err != nil {
		return 0, 0, storeError(err)
	}
	if len(infos) > 0 {
		if v, n, ok := parseManifestName(strings.TrimPrefix(infos[0].Key, prefix)); ok && n == namingV2 {
			return v, n, nil
		}
		infos, err = store.List(ctx, prefix, prefix+"0", 0)
		if err != nil {
			return 0, 0, storeError(err)
		}
	}
	return newestOf(prefix, infos)
}

func newestOf(prefix string, infos []objstore.Info) (version uint64, n naming, err error) {
	found := false
	for _, info := range infos {
		v, scheme, ok := parseManifestName(strings.TrimPrefix(info.Key, prefix))
		if !ok {
			continue
		}
		if found && scheme != n {
			return 0, 0, corrupt(prefix, "manifest names of two schemes")
		}
		version, n, found = max(version, v), scheme, true
	}
	if !found {
		return 0, 0, fmt.Errorf("%w: no version under %q", ErrNotFound, prefix)
	}
	return version, n, nil
}
