package lance

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/foldline/foldline/lance/internal/pb"
	"github.com/foldline/foldline/objstore"
)

// CleanupReport counts what a cleanup removed, or would remove.
type CleanupReport struct {
	Versions []uint64
	Files    int
	Bytes    int64
}

// cleanupParallel bounds how many manifests a cleanup reads at once, and how many files it removes at once.
const cleanupParallel = 8

// Cleanup removes old versions of the table at root and the files that only they name. A file that no version names goes when it
// is old enough; one of a kind that is not known here stays. Manifests go last and the newest one never goes, so that a crash
// leaves versions that cannot be read at worst among those that were to be removed. ErrCorrupt or ErrUnsupported at any manifest
// ends it before anything is deleted. One call at a time per table; readers of a kept version are not disturbed, nor are commits, whose files are those of the
// newest version or younger than UnverifiedAge. A restore to one of the versions that go, while they go, is.
//
// It reads every manifest and lists every file, so it pays to wait until half of the versions may go: then each is read twice in its life.
func Cleanup(ctx context.Context, store objstore.Store, root string, o CleanupOptions) (CleanupReport, error) {
	o.ensureDefaults()
	c := &cleaner{store: store, root: root, o: o, now: o.Clock(), used: make(map[string]struct{}), known: make(map[string]struct{})}
	if err := c.sort(ctx); err != nil {
		return CleanupReport{}, fmt.Errorf("clean up table %q: %w", root, err)
	}
	if err := c.sweep(ctx); err != nil {
		return c.report, fmt.Errorf("clean up table %q: %w", root, err)
	}
	return c.report, nil
}

// cleaner is one call of Cleanup.
type cleaner struct {
	store  objstore.Store
	root   string
	o      CleanupOptions
	now    time.Time
	naming naming
	mu     sync.Mutex // guards what follows
	// used are the files that kept versions name, known those that any version names, by their path below the root.
	used, known map[string]struct{}
	report      CleanupReport
}

// sort tells the versions to go from those to stay and collects what both name.
func (c *cleaner) sort(ctx context.Context) error {
	keep, err := c.pinned(ctx)
	if err != nil {
		return err
	}
	versions, n, err := listVersions(ctx, c.store, c.root)
	if err != nil {
		return err
	}
	c.naming = n
	newest := versions[len(versions)-1]
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(cleanupParallel)
	for _, v := range versions {
		g.Go(func() error { return c.sortOne(ctx, v, v == newest || keep[v]) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	slices.Sort(c.report.Versions)
	return nil
}

// sortOne reads one version. One that is gone by now was removed by another cleanup, and names nothing any more.
func (c *cleaner) sortOne(ctx context.Context, version uint64, kept bool) error {
	m, err := fetchVersion(ctx, c.store, c.root, c.naming, version)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	old := !kept && m.pb.GetTimestamp().AsTime().Before(c.o.OlderThan) && (c.o.Keep == nil || !c.o.Keep(version))
	c.mu.Lock()
	defer c.mu.Unlock()
	if old {
		c.report.Versions = append(c.report.Versions, version)
	}
	return c.collect(m, !old)
}

// pinned returns the versions that tags and branches hold. Those of all branches stand at the root of the main history, and a
// number that another branch's tag or child holds is kept here too: which history it means matters less than losing it.
func (c *cleaner) pinned(ctx context.Context) (map[uint64]bool, error) {
	main := mainRoot(c.root)
	tags, err := listTags(ctx, c.store, main)
	if err != nil {
		return nil, err
	}
	branched, err := branchedVersions(ctx, c.store, main)
	if err != nil {
		return nil, err
	}
	keep := make(map[uint64]bool)
	for _, tag := range tags {
		keep[tag.Version] = true
	}
	for _, v := range branched {
		keep[v] = true
	}
	return keep, nil
}

// collect notes the files that a manifest names. Files under other base paths are none of ours.
func (c *cleaner) collect(m *manifest, used bool) error {
	note := func(name string) {
		c.known[name] = struct{}{}
		if used {
			c.used[name] = struct{}{}
		}
	}
	for _, f := range m.pb.GetFragments() {
		for _, d := range f.GetFiles() {
			if d.BaseId == nil {
				note(join("", dataFolder, d.GetPath()))
			}
		}
		if d := f.GetDeletionFile(); d != nil && d.BaseId == nil {
			note(deletionPath(f.GetId(), d))
		}
		for _, x := range externalFiles(f) {
			note(x.GetPath())
		}
	}
	if name := m.pb.GetTransactionFile(); name != "" {
		note(join("", transactionFolder, name))
	}
	section, err := m.indexSection()
	if err != nil {
		return err
	}
	for _, ix := range section.GetIndices() {
		note(join("", indicesFolder, indexFolderName(ix)))
	}
	return nil
}

func externalFiles(f *pb.DataFragment) []*pb.ExternalFile {
	return []*pb.ExternalFile{f.GetExternalRowIds(), f.GetExternalCreatedAtVersions(), f.GetExternalLastUpdatedAtVersions()}
}

// indexFolderName is the folder of an index below _indices: its uuid in the usual form.
func indexFolderName(ix *pb.IndexMetadata) string {
	b := ix.GetUuid().GetUuid()
	if len(b) != 16 {
		return ""
	}
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

// sweep deletes files, then the manifests of the old versions, oldest first.
func (c *cleaner) sweep(ctx context.Context) error {
	for _, folder := range []string{dataFolder, deletionsFolder, transactionFolder, indicesFolder} {
		if err := c.sweepFolder(ctx, folder); err != nil {
			return err
		}
	}
	if c.o.DryRun {
		return nil
	}
	for _, v := range c.report.Versions {
		if err := c.store.Delete(ctx, join(c.root, versionsFolder, c.naming.manifestName(v))); err != nil {
			return storeError(err)
		}
	}
	return nil
}

func (c *cleaner) sweepFolder(ctx context.Context, folder string) error {
	prefix := join(c.root, folder) + "/"
	infos, err := c.store.List(ctx, prefix, "", 0)
	if err != nil {
		return storeError(err)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(cleanupParallel)
	for _, info := range infos {
		if name := folder + "/" + strings.TrimPrefix(info.Key, prefix); c.goes(folder, name, info) {
			g.Go(func() error { return c.remove(ctx, info) })
		}
	}
	return g.Wait()
}

// remove removes one file.
func (c *cleaner) remove(ctx context.Context, info objstore.Info) error {
	if !c.o.DryRun {
		if err := c.store.Delete(ctx, info.Key); err != nil {
			return storeError(err)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.Files++
	c.report.Bytes += info.Size
	return nil
}

// goes decides about one file.
func (c *cleaner) goes(folder, name string, info objstore.Info) bool {
	unit := name
	switch folder {
	case indicesFolder:
		// An index is a folder that lives and dies as a whole.
		first, _, found := strings.Cut(strings.TrimPrefix(name, folder+"/"), "/")
		if !found {
			return false
		}
		unit = folder + "/" + first
	default:
		if strings.Count(name, "/") != 1 || !knownSuffix(folder, path.Ext(name)) {
			return false
		}
	}
	if _, used := c.used[unit]; used || (c.o.Protect != nil && c.o.Protect(name)) {
		return false
	}
	_, verified := c.known[unit]
	return verified || c.now.Sub(info.ModTime) > c.o.UnverifiedAge
}

func knownSuffix(folder, suffix string) bool {
	switch folder {
	case dataFolder:
		return suffix == ".lance"
	case deletionsFolder:
		return suffix == ".arrow" || suffix == ".bin"
	}
	return suffix == ".txn"
}
