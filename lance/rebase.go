package lance

import (
	"context"
	"fmt"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"google.golang.org/protobuf/proto"
)

// rebase moves a Delete or Update from the version it was planned on to the latest one: each fragment that it changes takes
// over the state of the latest version, and where others deleted rows of it meanwhile (vectors lists those fragments) the two
// deletion vectors are merged. ErrConflict when the vectors cannot be merged: our rows are not known, both deleted the same
// row, or the fragment's data files changed. Other operations pass unchanged.
func (c *committer) rebase(ctx context.Context, latest *Table, vectors []uint64) (*Transaction, error) {
	tx := *c.tx
	switch op := c.tx.Op.(type) {
	case *Delete:
		updated, gone, err := c.rebaseFragments(ctx, latest, vectors, op.UpdatedFragments, op.DeletedFragmentIDs)
		if err != nil {
			return nil, err
		}
		next := *op
		next.UpdatedFragments, next.DeletedFragmentIDs = updated, gone
		tx.Op = &next
	case *Update:
		updated, gone, err := c.rebaseFragments(ctx, latest, vectors, op.UpdatedFragments, op.RemovedFragmentIDs)
		if err != nil {
			return nil, err
		}
		next := *op
		next.UpdatedFragments, next.RemovedFragmentIDs = updated, gone
		tx.Op = &next
	default:
		return &tx, nil
	}
	tx.ReadVersion = latest.Version()
	return &tx, nil
}

func (c *committer) rebaseFragments(
	ctx context.Context, latest *Table, vectors []uint64, updated []Fragment, gone []uint64,
) ([]Fragment, []uint64, error) {
	gone = slices.Clone(gone)
	for _, id := range gone {
		if _, err := c.rebaseable(ctx, latest, id, slices.Contains(vectors, id)); err != nil {
			return nil, nil, err
		}
	}
	var out []Fragment
	for _, ours := range updated {
		theirs, err := c.rebaseable(ctx, latest, ours.ID(), slices.Contains(vectors, ours.ID()))
		if err != nil {
			return nil, nil, err
		}
		next, err := c.mergeVectors(ctx, latest, theirs, ours)
		if err != nil {
			return nil, nil, err
		}
		if next == nil {
			gone = append(gone, ours.ID())
		} else {
			out = append(out, *next)
		}
	}
	return out, gone, nil
}

// rebaseable returns the fragment's latest state if ours may be built on it. changed tells that a Delete or Update of others
// touched it; after any other operation that the matrix let pass, ours takes over whatever files it has.
func (c *committer) rebaseable(ctx context.Context, latest *Table, id uint64, changed bool) (Fragment, error) {
	theirs, ok := latest.Fragment(id)
	if !ok {
		return Fragment{}, fmt.Errorf("%w: fragment %d is gone", ErrConflict, id)
	}
	base, err := c.base(ctx)
	if err != nil {
		return Fragment{}, err
	}
	read, ok := base.Fragment(id)
	if !ok {
		return Fragment{}, invalid("fragment %d is not in version %d", id, base.Version())
	}
	if changed && !sameFiles(read, theirs) {
		return Fragment{}, fmt.Errorf("%w: the data files of fragment %d changed", ErrConflict, id)
	}
	if sameDeletions(read, theirs) {
		return theirs, nil
	}
	ours := c.o.Affected[id]
	if ours == nil {
		return Fragment{}, fmt.Errorf("%w: rows of fragment %d were deleted, and ours are not known", ErrConflict, id)
	}
	deleted, err := latest.deletionsOf(ctx, theirs)
	if err != nil {
		return Fragment{}, err
	}
	if deleted != nil && deleted.Intersects(ours) {
		return Fragment{}, fmt.Errorf("%w: the same row of fragment %d was deleted", ErrConflict, id)
	}
	return theirs, nil
}

// mergeVectors returns the latest state of the fragment with the rows of both sides deleted, nil when none is left. The
// union is written as a new file when theirs differs from what ours was built on.
func (c *committer) mergeVectors(ctx context.Context, latest *Table, theirs, ours Fragment) (*Fragment, error) {
	base, err := c.base(ctx)
	if err != nil {
		return nil, err
	}
	if read, ok := base.Fragment(ours.ID()); ok && sameDeletions(read, theirs) {
		next := withDeletions(theirs, ours.m.GetDeletionFile())
		return &next, nil
	}
	rows, err := latest.deletionsOf(ctx, theirs)
	if err != nil {
		return nil, err
	}
	if rows == nil {
		rows = roaring.New()
	}
	rows.Or(c.o.Affected[ours.ID()])
	physical, err := latest.physicalRows(ctx, theirs)
	if err != nil {
		return nil, err
	}
	if rows.GetCardinality() == physical {
		return nil, nil
	}
	file, err := latest.writeDeletions(ctx, ours.ID(), rows)
	if err != nil {
		return nil, err
	}
	next := withDeletions(theirs, file)
	return &next, nil
}

func sameDeletions(a, b Fragment) bool {
	return proto.Equal(a.m.GetDeletionFile(), b.m.GetDeletionFile())
}
