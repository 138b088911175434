package lance

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/foldline/foldline/objstore"
)

const syncConcurrency = 8

// syncForeign makes the files of a version durable that another engine made: on a local disk it does not sync what it writes,
// and a durable version of ours on top of files that a power cut takes away would make the whole table unreadable. Versions of
// ours stand on synced files already. Other stores need nothing.
func (t *Table) syncForeign(ctx context.Context) error {
	syncer, ok := t.store.(objstore.Syncer)
	if !ok || t.m.pb.GetWriterVersion().GetLibrary() == writerLibrary {
		return nil
	}
	keys := []string{t.m.object}
	for _, f := range t.m.pb.GetFragments() {
		for _, d := range f.GetFiles() {
			key, err := t.dataKey(d)
			if err != nil {
				return err
			}
			keys = append(keys, key)
		}
		if d := f.GetDeletionFile(); d != nil {
			key, err := t.deletionKey(f.GetId(), d)
			if err != nil {
				return err
			}
			keys = append(keys, key)
		}
	}
	if name := t.m.pb.GetTransactionFile(); name != "" && t.m.tx == nil {
		keys = append(keys, join(t.root, transactionFolder, name))
	}
	indexFiles, err := t.indexFiles(ctx)
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(syncConcurrency)
	for _, key := range append(keys, indexFiles...) {
		g.Go(func() error { return syncer.Sync(ctx, key) })
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("sync version %d of another engine: %w", t.Version(), storeError(err))
	}
	return nil
}

// indexFiles lists the files of the version's indexes.
func (t *Table) indexFiles(ctx context.Context) ([]string, error) {
	section, err := t.m.indexSection()
	if err != nil {
		return nil, err
	}
	var keys []string
	for _, ix := range section.GetIndices() {
		if ix.BaseId != nil {
			continue
		}
		infos, err := t.store.List(ctx, join(t.root, indicesFolder, indexFolderName(ix))+"/", "", 0)
		if err != nil {
			return nil, storeError(err)
		}
		for _, info := range infos {
			keys = append(keys, info.Key)
		}
	}
	return keys, nil
}
