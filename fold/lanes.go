package fold

import (
	"context"
	"errors"
	"time"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/publisher"
)

// changeInterval is the time between two folds while the lane count changes, when that is less than the usual one: producers wait for it.
const changeInterval = 100 * time.Millisecond

// ChangeLanes begins to change the graph's lane count to n and returns the state that says so. Owners of lanes seal their logs when they read it; Run folds
// these to their ends and then makes the change, whoever is the folder by then. See [publisher.Publisher.ChangeLanes]; it waits for its turn as [Folder.Do] does.
func (f *Folder) ChangeLanes(ctx context.Context, n uint32) (snap *heads.Snapshot, err error) {
	err = f.Do(ctx, func(ctx context.Context) error {
		if snap, err = f.publisher.ChangeLanes(ctx, n); err != nil {
			return err
		}
		f.changing = snap.LaneTarget > 0
		f.opts.Logger.InfoContext(ctx, "the lane count changes", "from", snap.LaneCount, "to", snap.LaneTarget)
		f.announce(ctx, snap)
		return nil
	})
	return snap, err
}

// finishLanes makes a change of the lane count that is under way as soon as every lane is drained.
func (f *Folder) finishLanes(ctx context.Context, snap *heads.Snapshot) (*heads.Snapshot, error) {
	if f.changing = snap.LaneTarget > 0; !f.changing {
		return snap, nil
	}
	for _, c := range snap.Cuts {
		if c.Open && !c.Drained() {
			return snap, nil
		}
	}
	f.opts.Step("drained")
	changed, err := f.publisher.FinishLanes(ctx)
	if errors.Is(err, publisher.ErrConflict) { // a lane got another owner in between, which seals it again
		return f.publisher.Refresh(ctx)
	}
	if err != nil {
		return nil, err
	}
	f.changing = false
	f.opts.Logger.InfoContext(ctx, "the lane count is changed", "lanes", changed.LaneCount, "generation", changed.LaneGeneration)
	f.announce(ctx, changed)
	return changed, nil
}

// interval is the time between the starts of two folds.
func (f *Folder) interval() time.Duration {
	if f.changing {
		return min(f.opts.Interval, changeInterval)
	}
	return f.opts.Interval
}
