package publisher

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/foldline/foldline/fence"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
)

// survey lists the fold records that are left: numbers of dropped plans are not used again, and records that the heads no longer need
// are removed behind the next publish.
func (p *Publisher) survey(ctx context.Context) error {
	prefix := heads.Join(p.o.Root, heads.FoldsPath) + "/"
	objects, err := p.o.Store.List(ctx, prefix, "", 0)
	if err != nil {
		return err
	}
	highest := p.snap.Fold
	for _, object := range objects {
		name, _, _ := strings.Cut(strings.TrimPrefix(object.Key, prefix), "/")
		fold, _, err := parseRecordName(strings.TrimSuffix(name, recordSuffix))
		if err != nil {
			continue // not ours: left alone
		}
		highest = max(highest, fold)
		switch {
		case fold == p.snap.Fold:
			p.leftovers = append(p.leftovers, object.Key)
		case fold < p.snap.Fold:
			p.outdated = append(p.outdated, object.Key)
		}
	}
	p.nextFold, p.untidy = highest+1, true
	return p.versions.survey(ctx, p.snap.Manifest(), p.snap.PrunedThrough)
}

// recover completes the fold that some table holds and the heads do not: forward only, from its record, the same transactions with the
// same verdicts. When no table holds one there is nothing to complete: whatever was recorded is dropped and planned afresh.
func (p *Publisher) recover(ctx context.Context, tables map[heads.TableID]*lance.Table) error {
	begun, held := "", ""
	for _, t := range p.snap.Tables {
		name, err := p.begunOn(ctx, t, tables[t.ID])
		switch {
		case Unavailable(err) && !t.System:
			// What it holds cannot be told. Whoever completes a fold gives it up there, and what it holds of one is never published.
			p.barred[t.ID] = err
			delete(tables, t.ID)
		case err != nil:
			return fmt.Errorf("table %q: %w", t.Key, err)
		case t.Head.State.Held():
			held = max(held, name)
		case begun != "" && name != "" && begun != name:
			return fmt.Errorf("%w: tables hold two unpublished folds, %s and %s", ErrCorrupt, begun, name)
		default:
			begun = max(begun, name)
		}
	}
	// A held table takes no part in a fold but its own replay: what else it holds was dropped when it could not be asked.
	if begun == "" {
		begun = held
	}
	if begun == "" {
		return nil
	}
	return p.finish(ctx, begun, tables)
}

// begunOn is the unpublished fold that a table holds, "" when it holds none.
func (p *Publisher) begunOn(ctx context.Context, t heads.Table, table *lance.Table) (string, error) {
	if table == nil {
		return "", nil
	}
	name, err := p.witness(ctx, t, table)
	if err != nil || name == "" {
		return "", err
	}
	fold, _, err := parseRecordName(name)
	if err != nil {
		return "", fmt.Errorf("%w: its metadata names the fold %q, which is none", lance.ErrIncompatible, name)
	}
	if fold <= p.snap.Fold {
		return "", nil
	}
	return name, nil
}

// finish completes one recorded fold under our epoch.
func (p *Publisher) finish(ctx context.Context, name string, tables map[heads.TableID]*lance.Table) error {
	data, err := p.o.Store.Get(ctx, heads.Join(p.o.Root, recordPath(name)))
	if errors.Is(err, objstore.ErrNotFound) {
		return fmt.Errorf("%w: a table holds the unpublished fold %s, its record is gone", ErrCorrupt, name)
	}
	if err != nil {
		return err
	}
	rec, err := decodeRecord(name, data)
	if err != nil {
		return err
	}
	if rec.graph != p.snap.Graph {
		return fmt.Errorf("%w: record %s is of graph %q, this is %q", ErrCorrupt, name, rec.graph, p.snap.Graph)
	}
	p.o.Logger.InfoContext(ctx, "completing a recorded fold", "fold", rec.fold, "record", name, "epoch", p.epoch)
	given, err := p.decisions(rec, tables)
	if err != nil {
		return err
	}
	p.recovered, err = p.complete(ctx, rec, given, func(t *recordTable) (attempt, error) { return p.resume(ctx, rec, t, tables[t.id]) })
	if err != nil {
		return fmt.Errorf("publisher: complete fold %s: %w", name, err)
	}
	p.inst.recoveries.Add(ctx, 1)
	return nil
}

// decisions are the tables that a fold gave up, by its dead letters.
func (p *Publisher) decisions(rec *record, tables map[heads.TableID]*lance.Table) (map[heads.TableID]bool, error) {
	head, ok := p.snap.Table(heads.RejectsKey)
	if !ok {
		return nil, fmt.Errorf("%w: no dead letters", heads.ErrCorrupt)
	}
	return decided(tables[head.ID], rec)
}

// witness tells which fold a table holds: its metadata says so. When somebody replaced the metadata, the transactions above the head
// are asked; when one of those is gone too, nobody knows, and we stop.
func (p *Publisher) witness(ctx context.Context, t heads.Table, latest *lance.Table) (string, error) {
	metadata := latest.Metadata()
	if metadata[fence.MetaGraph] == p.snap.Graph {
		return metadata[fence.MetaFold], nil
	}
	for v := latest.Version(); v > t.Head.Version; v-- {
		_, tx, err := versionAndTransaction(ctx, latest, v)
		if err != nil {
			return "", err
		}
		if tx == nil {
			return "", fmt.Errorf("%w: table %q lost its metadata and version %d", lance.ErrCorrupt, t.Key, v)
		}
		if name := tx.Properties[fence.MetaFold]; name != "" {
			return name, nil
		}
	}
	return "", nil
}

func errIf(cond bool, err error) error {
	if cond {
		return err
	}
	return nil
}

// resume prepares the commit of a recorded table that may have landed already.
func (p *Publisher) resume(ctx context.Context, rec *record, t *recordTable, latest *lance.Table) (attempt, error) {
	if latest == nil {
		return attempt{}, fmt.Errorf("no barrier could be put on table %q: %w", t.key, errors.Join(lance.ErrUnsupported, p.barred[t.id]))
	}
	if done, err := p.landed(ctx, rec, t, latest); err != nil || done {
		return attempt{}, errors.Join(err, errIf(done, errLanded))
	}
	if err := p.checkFiles(ctx, t); err != nil {
		return attempt{}, err
	}
	base, err := latest.At(ctx, t.baseVersion)
	if errors.Is(err, lance.ErrNotFound) {
		return p.replan(ctx, rec, t, latest)
	}
	if err != nil {
		return attempt{}, err
	}
	return p.planned(rec, t, base), nil
}

// checkFiles makes sure that a completed commit names no file that is gone: such a version could not be read by anybody.
func (p *Publisher) checkFiles(ctx context.Context, t *recordTable) error {
	root := heads.Join(p.o.Root, t.path)
	var keys []string
	for _, f := range t.update().NewFragments {
		keys = append(keys, fragmentFiles(root, f)...)
	}
	for _, f := range t.update().UpdatedFragments {
		keys = append(keys, deletionFile(root, f)...)
	}
	for _, key := range keys {
		if _, err := p.o.Store.Stat(ctx, key); err != nil {
			return fmt.Errorf("%w: file of an unfinished fold: %w", ErrCorrupt, err)
		}
	}
	return nil
}

// fragmentFiles are the keys of a fragment's data files and of its deletion file.
func fragmentFiles(root string, f lance.Fragment) []string {
	var keys []string
	for _, file := range f.Files() {
		keys = append(keys, dataPath(root, file.Path))
	}
	return append(keys, deletionFile(root, f)...)
}

func deletionFile(root string, f lance.Fragment) []string {
	if path := f.DeletionPath(); path != "" {
		return []string{root + "/" + path}
	}
	return nil
}
