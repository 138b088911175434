package fold

import (
	"context"
	"errors"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/publisher"
)

// turn adopts foreign versions when it is time, folds, and compacts a table when one is worth it. One goroutine does it all, one after the other, so that neither an
// adoption nor a compaction falls between the record of a fold and its publish.
func (f *Folder) turn(ctx context.Context) (Report, error) {
	if !f.opts.Clock().Before(f.nextAdoption) {
		if _, err := f.adopt(ctx); err != nil {
			return Report{}, err
		}
	}
	report, err := f.FoldOnce(ctx)
	if err == nil {
		err = f.compactNext(ctx)
	}
	return report, err
}

// adopt publishes what other writers have committed and says whether heads have moved. It only fails when the folder is fenced: with any other
// error the heads stay as they are, folds go on, and the next adoption tries again.
func (f *Folder) adopt(ctx context.Context) (moved bool, err error) {
	f.nextAdoption = f.opts.Clock().Add(f.opts.AdoptInterval)
	snap, err := f.publisher.Adopt(ctx)
	if err != nil {
		return false, f.adoptionFailed(ctx, err)
	}
	if snap.Commit.Kind != heads.KindAdopt || snap.Version == f.adopted {
		return false, nil // nothing was there to adopt
	}
	f.adopted = snap.Version
	f.opts.Logger.InfoContext(ctx, "foreign versions adopted", "commit", snap.Commit.ID, "tables", len(snap.Commit.Tables))
	f.announce(ctx, snap)
	return true, nil
}

// adoptionFailed logs why nothing was adopted, unless the fold that follows meets the same, and returns what ends the folder.
func (f *Folder) adoptionFailed(ctx context.Context, cause error) error {
	if errors.Is(cause, ErrFenced) {
		return cause
	}
	if ctx.Err() == nil && !errors.Is(cause, publisher.ErrUsedUp) {
		f.opts.Logger.WarnContext(ctx, "foreign versions not adopted", "error", cause)
	}
	return nil
}
