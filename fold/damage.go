package fold

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/publisher"
)

// retryDamaged is how often a table that was found damaged is tried again before its rows become dead letters.
const retryDamaged = time.Second

// unusableError names the tables that a cut cannot be planned for, and why.
type unusableError struct{ tables map[heads.TableID]error }

func (e *unusableError) Error() string { return fmt.Sprintf("tables cannot be used: %v", e.tables) }

func (e *unusableError) Unwrap() []error { return slices.Collect(maps.Values(e.tables)) }

// missing tells whether a version is gone, so that an adoption may find a newer one.
func (e *unusableError) missing() bool {
	for _, err := range e.tables {
		if errors.Is(err, lance.ErrNotFound) {
			return true
		}
	}
	return false
}

// unusable is nil when there are none.
func unusable(tables map[heads.TableID]error) error {
	if len(tables) == 0 {
		return nil
	}
	return &unusableError{tables: tables}
}

// prepareAround prepares the cut without tables that turn out to be unusable: they are suspended in the heads, at once, so that writes to them are
// refused, and the cut ends before their first row. Nothing is prepared (nil) when that leaves nothing. A head that a foreign cleanup has deleted
// is adopted instead.
func (f *Folder) prepareAround(ctx context.Context, snap *heads.Snapshot, c *cut) (*publisher.Prepared, []preparedTable, error) {
	adopted := false
	for c.entries > 0 {
		prepared, tables, err := f.prepare(ctx, snap, c)
		if errors.Is(err, errWaits) {
			continue
		}
		var broken *unusableError
		if !errors.As(err, &broken) {
			return prepared, tables, err
		}
		if broken.missing() && !adopted {
			adopted = true
			if _, err = f.adopt(ctx); err != nil {
				return nil, nil, err
			}
		} else if err = f.suspend(ctx, broken.tables); err != nil {
			return nil, nil, err
		}
		if snap, err = f.publisher.Refresh(ctx); err != nil {
			return nil, nil, err
		}
		c.endBefore(f.waiting(snap))
	}
	return nil, nil, nil
}

// suspend publishes that tables take no more rows and tells the ingesters.
func (f *Folder) suspend(ctx context.Context, broken map[heads.TableID]error) error {
	snap, err := f.publisher.Suspend(ctx, broken)
	if err != nil {
		return err
	}
	for id := range broken {
		f.found[id] = f.opts.Clock()
	}
	f.metrics.states(ctx, snap)
	f.announce(ctx, snap)
	return nil
}

// announce tells of a graph commit that is no fold.
func (f *Folder) announce(ctx context.Context, snap *heads.Snapshot) {
	f.opts.Notify(context.WithoutCancel(ctx), &publisher.Published{Snapshot: snap, Commit: snap.Commit})
}

// announceNewest announces the newest state of the heads and returns it.
func (f *Folder) announceNewest(ctx context.Context) (*heads.Snapshot, error) {
	snap, err := f.publisher.Refresh(ctx)
	if err != nil {
		return nil, err
	}
	f.announce(ctx, snap)
	return snap, nil
}

// waiting are the tables whose rows wait in the log: held ones that were suspended less than SuspendAfter ago, or whose pause ends within it, and those that
// refer to them, for what they refer to may be among the rows that wait. The rows of all other held tables become dead letters, so that they do not hold up
// the others.
func (f *Folder) waiting(snap *heads.Snapshot) map[heads.TableID]bool {
	out := map[heads.TableID]bool{}
	for _, t := range snap.Tables {
		if f.waits(t) {
			out[t.ID] = true
		}
	}
	for more := len(out) > 0; more; {
		more = false
		for _, t := range snap.Tables {
			if !out[t.ID] && slices.ContainsFunc(t.References, func(r heads.Reference) bool { return out[r.Table] }) {
				out[t.ID], more = true, true
			}
		}
	}
	return out
}

func (f *Folder) waits(t heads.Table) bool {
	now, hold := f.opts.Clock(), t.Head.Hold
	if t.ID == f.pausing {
		return false
	}
	switch t.Head.State {
	case heads.StateSuspended:
		return now.Before(hold.Since.Add(f.opts.SuspendAfter))
	case heads.StatePaused:
		return !now.Add(f.opts.SuspendAfter).Before(hold.Until)
	}
	return false
}

// holdBack ends the cut before rows that wait for a held table. A table that this folder has found damaged is taken back first when its part of the
// cut can be planned again.
func (f *Folder) holdBack(ctx context.Context, snap *heads.Snapshot, c *cut) (*heads.Snapshot, error) {
	if len(f.found) > 0 {
		var err error
		if snap, err = f.retryFound(ctx, snap, c); err != nil {
			return nil, err
		}
	}
	c.endBefore(f.waiting(snap))
	return snap, nil
}

// retryFound takes back the tables of the cut that this folder has found damaged and that can be planned again.
func (f *Folder) retryFound(ctx context.Context, snap *heads.Snapshot, c *cut) (*heads.Snapshot, error) {
	for _, in := range c.byTable() {
		t, ok := snap.TableByID(in.id)
		tried, mine := f.found[in.id]
		if !ok || !mine || t.Head.State != heads.StateSuspended || f.opts.Clock().Before(tried.Add(retryDamaged)) {
			continue
		}
		f.found[in.id] = f.opts.Clock()
		in.held = true
		if _, _, err := f.prepareTables(ctx, snap, f.publisher.NextFold(), []*tableInput{in}, acceptAll); err != nil {
			continue
		}
		if _, err := f.publisher.Resume(ctx, t.Key); err != nil {
			if publisher.Unavailable(err) {
				continue
			}
			return nil, err
		}
		f.opts.Logger.InfoContext(ctx, "table can be used again", "table", t.Key)
		var err error
		if snap, err = f.announceNewest(ctx); err != nil {
			return nil, err
		}
	}
	for id := range f.found {
		if t, ok := snap.TableByID(id); !ok || !f.waits(t) {
			delete(f.found, id) // back, or its rows are dead letters from now on, which come first
		}
	}
	return snap, nil
}
