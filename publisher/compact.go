package publisher

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"

	"github.com/foldline/foldline/fence"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
)

// Compacted is what a call of Compact did. The zero value: nothing was worth it.
type Compacted struct {
	Snapshot *heads.Snapshot // the state that shows it
	Table    *lance.Table    // the version that it made
	// Rows are the live rows that were written anew, Before and After the table's fragments.
	Rows          int64
	Before, After int
	// More tells that another call would find something.
	More bool
}

// Compact rewrites small and much-deleted fragments of a table, as options say, commits the new version under the epoch and makes it the table's head, by a
// graph commit of its own. Rows stay what they are; key, metadata and the fold that the table holds are carried on. Call it between folds. base is the head version
// when the caller has it open, else nil. When nothing is worth it, the store is asked for nothing but what opening base takes.
//
// The table must be at its head: versions of other writers are adopted first. One that commits meanwhile makes it an ErrConflict: the new files are removed, and a
// later call plans anew. Whatever dies in between leaves files that no version names, or a version that the next Adopt takes in.
//
// heads.ErrNotFound: there is no such table; ErrInvalid: folds do not commit to it; ErrConflict: it takes no folds now; ErrFenced. An error leaves the Publisher
// usable unless it is fenced.
func (p *Publisher) Compact(ctx context.Context, key string, base *lance.Table, o lance.CompactOptions) (Compacted, error) {
	ctx, end := p.inst.span(ctx, "foldline.compact", attribute.String("table", key))
	done, err := p.compact(ctx, key, base, o)
	if err != nil && !errors.Is(err, ErrUsedUp) && ctx.Err() == nil {
		err = p.orFenced(ctx, err)
	}
	if errors.Is(err, lance.ErrConflict) {
		err = fmt.Errorf("%w: %w", ErrConflict, err)
	}
	end(err)
	if err != nil {
		return Compacted{}, fmt.Errorf("publisher: compact table %q: %w", key, err)
	}
	return done, nil
}

func (p *Publisher) compact(ctx context.Context, key string, base *lance.Table, o lance.CompactOptions) (Compacted, error) {
	if p.usedUp != nil {
		return Compacted{}, fmt.Errorf("%w: %w", ErrUsedUp, p.usedUp)
	}
	t, err := p.compactable(key)
	if err != nil {
		return Compacted{}, err
	}
	if base == nil || !t.Head.Is(base) {
		if base, err = p.snap.OpenTable(ctx, p.o.Store, key); err != nil {
			return Compacted{}, err
		}
	}
	if worth, err := base.Compactable(o); err != nil || !worth {
		return Compacted{}, err
	}
	p.tidyFirst(ctx)
	if t, base, err = p.atNewest(ctx, t, base); err != nil {
		return Compacted{}, err
	}
	op, err := base.Compact(ctx, o)
	if err != nil || op == nil {
		return Compacted{}, err
	}
	tx := lance.NewTransaction(base, op)
	tx.Properties = p.identity(p.snap, t)
	a, err := p.commitRewrite(ctx, t, base, tx)
	if errors.Is(err, lance.ErrConflict) {
		p.dropRewrite(ctx, base, tx)
	}
	if err != nil {
		return Compacted{}, err
	}
	if err := p.publishRewrite(ctx, a); err != nil {
		return Compacted{}, err
	}
	done := Compacted{Snapshot: p.snap, Table: a.table, Before: len(base.Fragments()), After: len(a.table.Fragments())}
	for _, f := range newFragments(op) {
		done.Rows += int64(f.PhysicalRows())
	}
	p.inst.compacted.Add(ctx, done.Rows)
	done.More, err = a.table.Compactable(o)
	return done, err
}

func newFragments(op *lance.Rewrite) (all []lance.Fragment) {
	for _, g := range op.Groups {
		all = append(all, g.New...)
	}
	return all
}

// compactable finds a table that folds commit to, the dead letters too.
func (p *Publisher) compactable(key string) (heads.Table, error) {
	t, ok := p.snap.Table(key)
	switch {
	case !ok:
		return t, fmt.Errorf("%w: table %q", heads.ErrNotFound, key)
	case !folded(t):
		return t, invalid("folds do not commit to it")
	case !t.Head.State.TakesFolds():
		return t, fmt.Errorf("%w: it is %s: %s", ErrConflict, t.Head.State, t.Head.Hold.Reason)
	}
	return t, nil
}

// atNewest makes the newest version the head, if it is not, and opens it.
func (p *Publisher) atNewest(ctx context.Context, t heads.Table, base *lance.Table) (heads.Table, *lance.Table, error) {
	if _, err := p.Refresh(ctx); err != nil {
		return t, nil, err
	}
	newest, err := lance.LatestVersion(ctx, p.o.Store, base.Root())
	if err != nil {
		return t, nil, err
	}
	if newest != t.Head.Version {
		if _, err := p.Adopt(ctx); err != nil {
			return t, nil, err
		}
	}
	if t, err = p.compactable(t.Key); err != nil || t.Head.Is(base) {
		return t, base, err
	}
	base, err = p.snap.OpenTable(ctx, p.o.Store, t.Key)
	return t, base, err
}

// commitRewrite commits on exactly the head version. Another writer's version is none that the heads may show unseen, so there is no second try.
func (p *Publisher) commitRewrite(ctx context.Context, t heads.Table, base *lance.Table, tx *lance.Transaction) (*adoption, error) {
	p.step("rewrite.%s.before", t.Key)
	done, err := base.Commit(ctx, tx, lance.CommitOptions{MaxAttempts: 1, Clock: p.o.Clock, Check: fence.Guard(p.epoch, p.authority),
		SetMetadata: map[string]string{fence.MetaEpoch: fence.FormatEpoch(p.epoch)}})
	if err != nil {
		return nil, err
	}
	if done.Unbased {
		if err := p.takeBack(ctx, t.ID, done.Table); err != nil {
			return nil, err
		}
	}
	p.step("rewrite.%s.after", t.Key)
	a := &adoption{id: t.ID, from: t.Head.Version, table: done.Table, state: t.Head.State, hold: t.Head.Hold, repeated: &t.Head.Duplicates} // its rows are those of the head
	above, err := p.above(ctx, done.Table, done.Newest)
	if above.Held() {
		a.state, a.hold = above, p.hold(replacedAbove(done.Table))
	}
	return a, err
}

// publishRewrite makes the new version the head.
func (p *Publisher) publishRewrite(ctx context.Context, a *adoption) error {
	err := p.alter(ctx, heads.KindCompact, func(next *heads.Snapshot, commit *heads.GraphCommit) error {
		return applyAdoptions(next, commit, []*adoption{a})
	})
	if err == nil && p.asked[a.id] == a.from {
		p.note(map[heads.TableID]uint64{a.id: a.table.Version()})
	}
	return err
}

// dropRewrite removes the files of a rewrite that has lost its slot. One that was put into a slot which a cleanup had emptied is named by a version there,
// which nobody reads: its files are left for the cleanup that removes that version.
func (p *Publisher) dropRewrite(ctx context.Context, base *lance.Table, tx *lance.Transaction) {
	there, err := base.At(ctx, base.Version()+1)
	if err == nil && there.TransactionUUID() == tx.UUID || err != nil && !errors.Is(err, lance.ErrNotFound) {
		return
	}
	p.drop(ctx, base, newFragments(tx.Op.(*lance.Rewrite)))
}
