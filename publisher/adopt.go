package publisher

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/foldline/foldline/fence"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
)

// adoption is what the heads should say of a table that other writers have moved on, or that cannot be read.
type adoption struct {
	id    heads.TableID
	from  uint64       // head version it was judged against
	table *lance.Table // nil = the version stays
	state heads.State
	hold  heads.Hold
	// repeated keys of the version; nil = what the head says stays.
	repeated *heads.Duplicates
}

// changes tells whether the head says something else than before.
func (a *adoption) changes(t heads.Table) bool {
	return a.table != nil || a.state != t.Head.State || a.repeated != nil && *a.repeated != t.Head.Duplicates
}

// version is the one that the head names then.
func (a *adoption) version() uint64 {
	if a.table != nil {
		return a.table.Version()
	}
	return a.from
}

// Adopt publishes what other writers have committed since the heads were last moved, one graph commit for all tables: the newest version
// that is reached without an overwrite or a restore. A table with one of those above its head is frozen as replaced, one that cannot be read is
// suspended; an error that may pass leaves its table alone. What they did to repeated keys is said too, as far as it is known (Options.Keys). Call it between folds, for idle tables too, and when a head version is gone. It costs one LIST for
// each table when nothing has changed.
func (p *Publisher) Adopt(ctx context.Context) (*heads.Snapshot, error) {
	p.tidyFirst(ctx)
	snap, err := p.Refresh(ctx)
	if err != nil {
		return nil, err
	}
	found := make([]*adoption, len(snap.Tables))
	var g errgroup.Group
	g.SetLimit(parallel)
	for i, t := range snap.Tables {
		if folded(t) && t.Head.State.TakesFolds() {
			g.Go(func() (err error) {
				found[i], err = p.adoptable(ctx, t)
				return err
			})
		}
	}
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("publisher: adopt: %w", err)
	}
	asked := map[heads.TableID]uint64{}
	var changed []*adoption
	for i, a := range found {
		if a != nil {
			asked[a.id] = a.version()
			if a.changes(snap.Tables[i]) {
				changed = append(changed, a)
			}
		}
	}
	if len(changed) > 0 {
		err = p.alter(ctx, heads.KindAdopt, func(next *heads.Snapshot, commit *heads.GraphCommit) error {
			return applyAdoptions(next, commit, changed)
		})
	}
	if err == nil {
		p.note(asked)
	}
	return p.snap, err
}

// adoptable judges one table, so that the faults of one do not stop the others. Only the dead letters' own are errors.
func (p *Publisher) adoptable(ctx context.Context, t heads.Table) (*adoption, error) {
	a, err := p.judgeNewest(ctx, t)
	if err == nil {
		a, err = p.judgeKeys(ctx, t, a)
	}
	switch {
	case err == nil || t.System || ctx.Err() != nil:
		return a, err
	case Unavailable(err):
		p.reportHeld(ctx, t, heads.StateSuspended, err)
		return &adoption{id: t.ID, from: t.Head.Version, state: heads.StateSuspended, hold: p.hold(err)}, nil
	}
	p.o.Logger.WarnContext(ctx, "foreign versions not adopted", "table", t.Key, "error", err)
	return nil, nil
}

func applyAdoptions(next *heads.Snapshot, commit *heads.GraphCommit, found []*adoption) error {
	for _, a := range found {
		t, ok := next.TableByID(a.id)
		if !ok || t.Head.Version != a.from {
			return fmt.Errorf("%w: head of table %q is version %d, it was version %d", ErrConflict, t.Key, t.Head.Version, a.from)
		}
		t.Head.State, t.Head.Hold = a.state, a.hold
		switch {
		case a.table != nil:
			t = moveHead(commit, t, a.table, a.repeated)
		case a.repeated != nil:
			setDuplicates(&t.Head, *a.repeated)
		}
		next.SetTable(t)
	}
	return nil
}

// judgeNewest reads what stands above a head; nil when nothing does.
func (p *Publisher) judgeNewest(ctx context.Context, t heads.Table) (*adoption, error) {
	root := heads.Join(p.o.Root, t.Path)
	newest, err := lance.LatestVersion(ctx, p.o.Store, root)
	if err != nil || newest == t.Head.Version {
		return nil, err
	}
	latest, err := lance.OpenVersion(ctx, p.o.Store, root, newest)
	if err != nil {
		return nil, err
	}
	if err := reaches(latest, t.Head.Version); err != nil {
		return nil, err
	}
	a := &adoption{id: t.ID, from: t.Head.Version, state: t.Head.State}
	if why := p.checkIdentity(ctx, t.ID, latest); errors.Is(why, lance.ErrIncompatible) {
		p.reportHeld(ctx, t, heads.StateReplaced, why)
		a.state, a.hold = heads.StateReplaced, p.hold(why)
		return a, nil
	} else if why != nil {
		return nil, why
	}
	for v := t.Head.Version + 1; v <= newest; v++ {
		at, tx, err := versionAndTransaction(ctx, latest, v)
		if err != nil {
			return nil, err
		}
		if at == nil {
			continue // cleaned up: what stands on it tells the rest
		}
		if why := p.misfit(t, at, tx); why != nil {
			p.reportHeld(ctx, t, heads.StateReplaced, why)
			a.state, a.hold = heads.StateReplaced, p.hold(why)
			break
		}
		a.table = at
	}
	if a.table != nil {
		if err := p.checkPublished(t, a.table); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// judgeKeys adds what is to be said of repeated keys to what was found of a table; nil when nothing was and nothing is.
func (p *Publisher) judgeKeys(ctx context.Context, t heads.Table, a *adoption) (*adoption, error) {
	if a != nil && a.state.Held() {
		return a, nil
	}
	if a == nil {
		a = &adoption{id: t.ID, from: t.Head.Version, state: t.Head.State}
	}
	var err error
	a.repeated, err = p.look(ctx, t, a.table)
	return a, err
}

// misfit says why a version cannot follow the one below it in the heads; nil when it can.
func (p *Publisher) misfit(t heads.Table, at *lance.Table, tx *lance.Transaction) error {
	switch {
	case tx != nil && replaces(tx):
		return fmt.Errorf("%w: version %d (%s) has replaced it", lance.ErrIncompatible, at.Version(), tx.Op.Kind())
	case !p.fits(t, at):
		return fmt.Errorf("%w: version %d does not have its registered key and columns", lance.ErrIncompatible, at.Version())
	}
	return nil
}

// fits tells whether a version still has the primary key and the columns that the graph has registered.
func (p *Publisher) fits(t heads.Table, at *lance.Table) bool {
	if !slices.Equal(at.Schema().PrimaryKey(), t.PrimaryKey) {
		return false
	}
	have := map[string]string{}
	for _, f := range at.Schema().Fields() {
		if f.ParentID < 0 {
			have[f.Name] = f.LogicalType
		}
	}
	for _, c := range t.Columns {
		if have[c.Name] != c.Type {
			return false
		}
	}
	return true
}

// checkPublished holds back a version with a fold that the heads do not have: only that fold's own publish may show it.
func (p *Publisher) checkPublished(t heads.Table, at *lance.Table) error {
	name := at.MetadataValue(fence.MetaFold)
	if name == "" {
		return nil
	}
	fold, _, err := parseRecordName(name)
	if err == nil && fold > p.snap.Fold {
		err = fmt.Errorf("%w: table %q version %d holds the unpublished fold %s", ErrConflict, t.Key, at.Version(), name)
	}
	return err
}
