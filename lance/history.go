package lance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/foldline/foldline/objstore"
)

// listVersions returns the numbers of the versions that are there, oldest first: one LIST of all manifests.
func listVersions(ctx context.Context, store objstore.Store, root string) ([]uint64, naming, error) {
	prefix := join(root, versionsFolder) + "/"
	infos, err := store.List(ctx, prefix, prefix+"0", 0)
	if err != nil {
		return nil, 0, storeError(err)
	}
	_, n, err := newestOf(prefix, infos)
	if err != nil {
		return nil, 0, err
	}
	var out []uint64
	for _, info := range infos {
		if v, _, ok := parseManifestName(strings.TrimPrefix(info.Key, prefix)); ok {
			out = append(out, v)
		}
	}
	slices.Sort(out)
	return out, n, nil
}

// OpenAsOf opens the newest version whose committer's clock does not lie after the given moment, taking the clocks of
// successive committers to rise: one LIST of all manifests and a GET per halving. Where clocks of several writers disagree the
// answer is a version that was the newest at about that time. ErrNotFound when the oldest version there is is younger.
func OpenAsOf(ctx context.Context, store objstore.Store, root string, moment time.Time) (*Table, error) {
	versions, n, err := listVersions(ctx, store, root)
	if err != nil {
		return nil, err
	}
	var found *Table
	var failed error
	// The first version above the moment ends the search; the last opened below it is the answer.
	sort.Search(len(versions), func(i int) bool {
		if failed != nil {
			return true
		}
		t, err := openNamed(ctx, store, root, n, versions[i])
		if errors.Is(err, ErrNotFound) {
			return false // cleaned up since the LIST: what is left is younger
		}
		if err != nil {
			failed = err
			return true
		}
		if t.Timestamp().After(moment) {
			return true
		}
		if found == nil || t.Version() > found.Version() {
			found = t
		}
		return false
	})
	if failed != nil {
		return nil, failed
	}
	if found == nil {
		return nil, fmt.Errorf("%w: no version of table %q as of %s", ErrNotFound, root, moment.UTC().Format(time.RFC3339Nano))
	}
	return found, nil
}
