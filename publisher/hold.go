package publisher

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/foldline/foldline/fence"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
)

// Unavailable tells errors after which a table cannot be used, now or by trying again: it was overwritten or restored, lost its key, is damaged,
// gone, uses what we do not know, or is changed faster than we can. Damage to the graph's own objects is none of them: then everything stops.
func Unavailable(err error) bool {
	if errors.Is(err, ErrCorrupt) || errors.Is(err, heads.ErrCorrupt) {
		return false
	}
	for _, class := range []error{ErrStarved, lance.ErrIncompatible, lance.ErrNotFound, lance.ErrUnsupported, lance.ErrCorrupt, fence.ErrNotCovered,
		heads.ErrOtherVersion, objstore.ErrNotFound, objstore.ErrRange} {
		if errors.Is(err, class) {
			return true
		}
	}
	return false
}

// heldState is the state of a table that an error has made unavailable.
func heldState(why error) heads.State {
	if errors.Is(why, lance.ErrIncompatible) {
		return heads.StateReplaced
	}
	return heads.StateSuspended
}

// hold is what the heads say of a table that is held from now on.
func (p *Publisher) hold(why error) heads.Hold {
	return heads.NewHold(why.Error(), p.o.Clock(), time.Time{})
}

func (p *Publisher) reportHeld(ctx context.Context, t heads.Table, state heads.State, why error) {
	p.inst.suspended.Add(ctx, 1)
	p.o.Logger.ErrorContext(ctx, "table takes no more folds", "table", t.Key, "state", string(state), "error", why)
}

// Suspend publishes, in one graph commit, that tables take no more rows, and why; those that are suspended or replaced already are left as they are. Nothing is
// committed to the tables.
func (p *Publisher) Suspend(ctx context.Context, found map[heads.TableID]error) (*heads.Snapshot, error) {
	held := map[heads.TableID]heads.Hold{}
	for id, why := range found {
		if t, ok := p.snap.TableByID(id); ok && suspendable(t) {
			held[id] = p.hold(why)
			p.reportHeld(ctx, t, heldState(why), why)
		}
	}
	if len(held) == 0 {
		return p.snap, nil
	}
	err := p.alter(ctx, heads.KindSuspend, func(next *heads.Snapshot, _ *heads.GraphCommit) error {
		for id, hold := range held {
			if t, ok := next.TableByID(id); ok && suspendable(t) {
				t.Head.State, t.Head.Hold = heldState(found[id]), hold
				next.SetTable(t)
			}
		}
		return nil
	})
	return p.snap, err
}

// suspendable tells tables that are not held, and those whose pause may end in it.
func suspendable(t heads.Table) bool {
	return t.Head.State.TakesFolds() || t.Head.State == heads.StatePaused
}

// Pause publishes that a table takes no rows and no folds until a time, so that another writer has it for itself. Pausing a paused table moves the
// time. ErrConflict when the table is suspended or replaced.
func (p *Publisher) Pause(ctx context.Context, key, reason string, until time.Time) (heads.Table, error) {
	t, err := p.Enrolled(ctx, key)
	if err != nil {
		return t, err
	}
	if !until.After(p.o.Clock()) {
		return t, invalid("table %q cannot be paused until %s, which is past", key, until.UTC().Format(time.RFC3339))
	}
	return p.alterTable(ctx, heads.KindPause, t, func(now *heads.Table, _ *heads.GraphCommit) error {
		hold := heads.NewHold(reason, p.o.Clock(), until)
		switch {
		case now.Head.State == heads.StatePaused:
			hold.Since = now.Head.Hold.Since
		case !now.Head.State.TakesFolds():
			return fmt.Errorf("%w: table %q is %s: %s", ErrConflict, key, now.Head.State, now.Head.Hold.Reason)
		}
		now.Head.State, now.Head.Hold = heads.StatePaused, hold
		return nil
	})
}

// Enrolled refreshes the heads and finds a table that takes rows from lanes. heads.ErrNotFound when there is none of this key, ErrInvalid when it takes no rows.
func (p *Publisher) Enrolled(ctx context.Context, key string) (heads.Table, error) {
	snap, err := p.Refresh(ctx)
	if err != nil {
		return heads.Table{}, err
	}
	t, ok := snap.Table(key)
	switch {
	case !ok:
		return t, fmt.Errorf("%w: table %q", heads.ErrNotFound, key)
	case !t.Enrolled || t.System:
		return t, invalid("table %q takes no rows from lanes", key)
	}
	return t, nil
}
