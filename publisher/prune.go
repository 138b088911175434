package publisher

import (
	"context"
	"errors"
	"slices"

	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
)

// pruneStep is how many versions one publish lets go of at most, and one call of prune removes twice as many: both must outrun one version a
// publish to catch up after a pause.
const pruneStep = 2

// pruner removes old versions of one of the graph's own tables, oldest first, each with the files that only it names. Several may be at
// it: what one has removed the other finds gone.
type pruner struct {
	store objstore.Store
	// through: versions up to this one are gone.
	through  uint64
	surveyed bool
	// read are versions above through that were read: each is asked for several times in a row.
	read map[uint64]*lance.Table
}

// survey finds the oldest version that an earlier owner has left at or below boundary: one LIST, once.
func (r *pruner) survey(ctx context.Context, newest *lance.Table, boundary uint64) error {
	if r.surveyed {
		return nil
	}
	left, err := newest.Versions(ctx, boundary)
	if err != nil {
		return err
	}
	r.through, r.surveyed = boundary, true
	if len(left) > 0 {
		r.through = slices.Min(left) - 1
	}
	return nil
}

// remove removes at most twice pruneStep versions at or below boundary and returns how many it passed.
func (r *pruner) remove(ctx context.Context, newest *lance.Table, boundary uint64) (n int, err error) {
	if err := r.survey(ctx, newest, boundary); err != nil {
		return 0, err
	}
	for ; n < 2*pruneStep && r.through < boundary; n++ {
		if err := r.removeOne(ctx, newest, r.through+1); err != nil {
			return n, err
		}
		r.through++
	}
	return n, nil
}

// removeOne removes the data files of a version that the next one does not name, then its manifest: a crash in between leaves the
// manifest, and a later survey finds it.
func (r *pruner) removeOne(ctx context.Context, newest *lance.Table, version uint64) error {
	t, err := r.at(ctx, newest, version)
	if err != nil || t == nil {
		return err
	}
	next, err := r.at(ctx, newest, version+1)
	if err != nil {
		return err
	}
	if next != nil { // else t is a stale writer's put in a slot that was emptied before: its files may be shared
		if err := r.removeFiles(ctx, t, next); err != nil {
			return err
		}
	}
	if err := newest.DeleteVersions(ctx, []uint64{version}); err != nil {
		return err
	}
	delete(r.read, version)
	return nil
}

// at reads a version, nil when it is gone.
func (r *pruner) at(ctx context.Context, newest *lance.Table, version uint64) (*lance.Table, error) {
	if t := r.read[version]; t != nil {
		return t, nil
	}
	t, err := newest.At(ctx, version)
	if errors.Is(err, lance.ErrNotFound) {
		return nil, nil
	}
	if err == nil {
		if r.read == nil {
			r.read = map[uint64]*lance.Table{}
		}
		r.read[version] = t
	}
	return t, err
}

// removeFiles removes the files of t that next does not name.
func (r *pruner) removeFiles(ctx context.Context, t, next *lance.Table) error {
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
			if err := r.store.Delete(ctx, dataPath(t.Root(), file.Path)); err != nil {
				return err
			}
		}
	}
	return nil
}
