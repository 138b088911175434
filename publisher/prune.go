package publisher

import (
	"context"
	"errors"
	"slices"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
)

// Retention of manifest versions: at least minVersions are kept, and of what is older at most maxVersions.
const (
	minVersions = 64
	maxVersions = 1000
	// pruneStep is how far one publish advances the boundary at most: it must outrun one version a publish to catch up.
	pruneStep = 2
)

// boundary is the pruned_through of next: it follows maxVersions behind, a few versions at a time. It lands with the publish, before
// anything is deleted.
func boundary(next *heads.Snapshot) uint64 {
	if next.Version <= maxVersions {
		return next.PrunedThrough
	}
	return max(next.PrunedThrough, min(next.Version-maxVersions, next.PrunedThrough+pruneStep))
}

// prune removes manifest versions at or below the published boundary, oldest first, with the files that only they name.
func (p *Publisher) prune(ctx context.Context) error {
	limit := p.snap.PrunedThrough
	for n := 0; n < 2*pruneStep && p.pruned < limit; n++ {
		if err := p.pruneOne(ctx, p.pruned+1); err != nil {
			return err
		}
		p.pruned++
		p.inst.pruned.Add(ctx, 1)
	}
	return nil
}

// surveyPruned finds the oldest version that an earlier owner has left below the boundary.
func (p *Publisher) surveyPruned(ctx context.Context) error {
	p.pruned = p.snap.PrunedThrough
	left, err := p.snap.Manifest().Versions(ctx, p.pruned)
	if err == nil && len(left) > 0 {
		p.pruned = slices.Min(left) - 1
	}
	return err
}

// pruneOne removes the data files of a version that the next one does not name, then its manifest: a crash in between leaves the
// manifest, and the next run finds it.
func (p *Publisher) pruneOne(ctx context.Context, version uint64) error {
	t, err := p.oldVersion(ctx, version)
	if errors.Is(err, lance.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	next, err := p.oldVersion(ctx, version+1)
	switch {
	case errors.Is(err, lance.ErrNotFound): // a stale writer's put in a slot that was emptied before: its files may be shared
	case err != nil:
		return err
	default:
		if err := p.removeFiles(ctx, t, next); err != nil {
			return err
		}
		p.pruneNext = next
	}
	return p.snap.Manifest().DeleteVersions(ctx, []uint64{version})
}

// oldVersion opens a version of the manifest; each is asked for twice in a row.
func (p *Publisher) oldVersion(ctx context.Context, version uint64) (*lance.Table, error) {
	if p.pruneNext != nil && p.pruneNext.Version() == version {
		return p.pruneNext, nil
	}
	return p.snap.Manifest().At(ctx, version)
}

// removeFiles removes the files of t that next does not name.
func (p *Publisher) removeFiles(ctx context.Context, t, next *lance.Table) error {
	kept := map[string]bool{}
	for _, f := range next.Fragments() {
		for _, file := range f.Files() {
			kept[file.Path] = true
		}
	}
	for _, f := range t.Fragments() {
		for _, file := range f.Files() {
			if kept[file.Path] {
				continue
			}
			if err := p.o.Store.Delete(ctx, dataPath(t.Root(), file.Path)); err != nil {
				return err
			}
		}
	}
	return nil
}
