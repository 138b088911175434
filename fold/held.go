package fold

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/publisher"
)

// pauseGrace is how long rows are still folded into a table whose pause has begun: those that ingesters took before they had read it in the heads.
const pauseGrace = time.Second

// Adopt publishes what other writers have committed to one table, "" for all, and returns the state after it. Like all requests of operators it waits for
// its turn, see [Folder.Do].
func (f *Folder) Adopt(ctx context.Context, key string) (snap *heads.Snapshot, err error) {
	err = f.Do(ctx, func(ctx context.Context) error {
		if key != "" {
			if _, err := f.publisher.Enrolled(ctx, key); err != nil {
				return err
			}
		}
		if snap, err = f.publisher.Adopt(ctx); err != nil {
			return err
		}
		f.announce(ctx, snap)
		return nil
	})
	return snap, err
}

// Pause keeps folds off a table for a while, so that another writer has it for itself: ingesters refuse its rows as busy, and what was acknowledged
// before is folded first. Rows that are met all the same wait when the pause ends within SuspendAfter, and are dead letters otherwise, which its end
// replays before new rows. The pause stands in the heads; whoever is the folder then ends it.
func (f *Folder) Pause(ctx context.Context, key, reason string, length time.Duration) (t heads.Table, err error) {
	err = f.Do(ctx, func(ctx context.Context) error {
		if t, err = f.publisher.Pause(ctx, key, reason, f.opts.Clock().Add(length)); err != nil {
			return err
		}
		f.opts.Logger.InfoContext(ctx, "table is paused", "table", key, "until", t.Head.Hold.Until, "reason", reason)
		if _, err := f.announceNewest(ctx); err != nil {
			return err
		}
		return f.foldBeforePause(ctx, t.ID)
	})
	return t, err
}

// foldBeforePause folds what was acknowledged before the ingesters knew of a pause.
func (f *Folder) foldBeforePause(ctx context.Context, id heads.TableID) error {
	f.pausing = id
	defer func() { f.pausing = 0 }()
	grace, cancel := context.WithTimeout(ctx, pauseGrace)
	defer cancel()
	for last := false; ; {
		r, err := f.FoldOnce(ctx)
		if err != nil || last && !r.More {
			return err
		}
		if !r.More {
			last = !sleep(grace, minTriggerInterval) // one more fold after the grace
		}
	}
}

// Resume takes a held table back: its newest version gets a barrier and becomes the head, the rows that were rejected because it was held are replayed in
// their original order, and only then it takes new rows. An error leaves it held; what was replayed is not replayed again.
func (f *Folder) Resume(ctx context.Context, key string) (t heads.Table, r ReplayReport, err error) {
	err = f.Do(ctx, func(ctx context.Context) error {
		t, r, err = f.resume(ctx, key)
		return err
	})
	return t, r, err
}

func (f *Folder) resume(ctx context.Context, key string) (heads.Table, ReplayReport, error) {
	t, err := f.publisher.Reopen(ctx, key)
	if err != nil || !t.Head.State.Held() {
		return t, ReplayReport{}, err
	}
	report, err := f.replay(ctx, key, Selection{Code: CodeTableUnavailable})
	if err != nil {
		return t, report, err
	}
	if t, err = f.publisher.Resume(ctx, key); err != nil {
		return t, report, err
	}
	f.opts.Logger.InfoContext(ctx, "table takes rows again", "table", key, "replayed", report.Replayed, "rejected", report.Rejected)
	_, err = f.announceNewest(ctx)
	return t, report, err
}

// Replay plays dead letters of a table again, as if they were written now, in their original order. ErrConflict for a table that is held: resuming it
// replays what it missed.
func (f *Folder) Replay(ctx context.Context, key string, chosen Selection) (r ReplayReport, err error) {
	err = f.Do(ctx, func(ctx context.Context) error {
		t, err := f.publisher.Enrolled(ctx, key)
		if err != nil {
			return err
		}
		if t.Head.State.Held() {
			return fmt.Errorf("%w: table %q is %s; resume it, which replays what it missed", publisher.ErrConflict, key, t.Head.State)
		}
		r, err = f.replay(ctx, key, chosen)
		return err
	})
	return r, err
}

// endPauses takes back the tables whose pause is over. One that cannot be taken back is suspended.
func (f *Folder) endPauses(ctx context.Context, snap *heads.Snapshot) (*heads.Snapshot, error) {
	ended := false
	for _, t := range snap.Tables {
		if t.Head.State != heads.StatePaused || f.opts.Clock().Before(t.Head.Hold.Until) {
			continue
		}
		ended = true
		_, _, err := f.resume(ctx, t.Key)
		if publisher.Unavailable(err) || errors.Is(err, publisher.ErrConflict) {
			err = f.suspend(ctx, map[heads.TableID]error{t.ID: fmt.Errorf("its pause is over: %w", err)})
		}
		if err != nil {
			return nil, err
		}
	}
	if !ended {
		return snap, nil
	}
	return f.publisher.Refresh(ctx)
}
