package publisher

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/foldline/foldline/fence"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
)

// parallel bounds how many tables are worked on at once.
const parallel = 16

// Claim makes the caller the folder: epoch e+1 by a manifest commit, a barrier on every enrolled table and the dead letters, then
// completion of a fold that an earlier owner had begun to commit (see Recovered). ErrFenced when another claim came in between.
func Claim(ctx context.Context, o Options, owner string) (*Publisher, error) {
	m, err := newManifest(o)
	if err != nil {
		return nil, err
	}
	p := &Publisher{manifest: m, versions: &pruner{store: m.o.Store}, history: &pruner{store: m.o.Store}}
	ctx, end := m.inst.span(ctx, "foldline.claim")
	err = p.claim(ctx, owner)
	end(err)
	if err != nil {
		if errors.Is(err, fence.ErrFenced) {
			m.inst.fenced.Add(ctx, 1)
		}
		return nil, err
	}
	return p, nil
}

func (p *Publisher) claim(ctx context.Context, owner string) error {
	p.step("claim.before")
	if err := p.takeEpoch(ctx, owner); err != nil {
		return err
	}
	p.step("claim.after")
	if err := p.takeOver(ctx); err != nil {
		return p.orFenced(ctx, err)
	}
	return nil
}

// orFenced is err, unless another folder owns the graph: what it has removed behind its publishes is no damage.
func (p *Publisher) orFenced(ctx context.Context, err error) error {
	if stale := p.authority(ctx); errors.Is(stale, fence.ErrFenced) {
		return stale
	}
	return err
}

// takeOver puts the barriers and completes what an earlier owner had begun.
func (p *Publisher) takeOver(ctx context.Context) error {
	tables, err := p.barriers(ctx)
	if err != nil {
		return err
	}
	// Barriers may have been put late, over those of a successor that a foreign restore had rewound: the heads decide.
	if _, err := p.Refresh(ctx); err != nil {
		return err
	}
	if err := p.survey(ctx); err != nil {
		return err
	}
	p.step("recover.before")
	if err := p.recover(ctx, tables); err != nil {
		return err
	}
	p.step("recover.after")
	_, err = p.Suspend(ctx, p.barred)
	return err
}

// alter makes one graph commit under the epoch that changes heads outside of a fold, or, of the kinds for that, what the registry says of a table or of the
// lanes.
func (p *Publisher) alter(ctx context.Context, kind string, apply func(*heads.Snapshot, *heads.GraphCommit) error) error {
	id, err := p.mintID()
	if err != nil {
		return err
	}
	p.step("%s.before", kind)
	registry := kind == heads.KindAlter || kind == heads.KindLanes
	s, err := p.commit(ctx, p.snap, change{id: id, kind: kind, actor: p.snap.FolderOwner, registry: registry,
		apply: func(next *heads.Snapshot, commit *heads.GraphCommit) error {
			if err := p.owns(next); err != nil {
				return err
			}
			return apply(next, commit)
		}})
	if err != nil {
		return err
	}
	p.advance(ctx, s)
	p.untidy = true
	p.step("%s.after", kind)
	return p.owns(s)
}

// alterTable is alter of one table's row; it returns the row as the heads have it in the end. ErrConflict when the table is gone.
func (p *Publisher) alterTable(ctx context.Context, kind string, t heads.Table, apply func(now *heads.Table, commit *heads.GraphCommit) error) (heads.Table, error) {
	err := p.alter(ctx, kind, func(next *heads.Snapshot, commit *heads.GraphCommit) error {
		now, ok := next.TableByID(t.ID)
		if !ok {
			return errors.Join(ErrConflict, heads.ErrNotFound)
		}
		if err := apply(&now, commit); err != nil {
			return err
		}
		next.SetTable(now)
		return nil
	})
	t, _ = p.snap.Table(t.Key)
	return t, err
}

// takeEpoch raises epoch:folder. Of racing claims each gets its own number; the highest owns.
func (p *Publisher) takeEpoch(ctx context.Context, owner string) error {
	id, err := p.mintID()
	if err != nil {
		return err
	}
	p.snap, err = p.commit(ctx, nil, change{id: id, kind: heads.KindFolder, actor: owner,
		apply: func(next *heads.Snapshot, _ *heads.GraphCommit) error {
			next.FolderEpoch++
			next.FolderOwner = owner
			p.epoch = next.FolderEpoch
			return nil
		}})
	if err != nil {
		return err
	}
	return p.owns(p.snap)
}

// barriers raises the epoch on every table that a fold could commit to, touched by the last one or not: a stale folder may hold a
// commit to any of them. It returns the version of each that carries the barrier. A table that cannot take one is suspended: what a
// stale folder still commits there is never published.
func (p *Publisher) barriers(ctx context.Context) (map[heads.TableID]*lance.Table, error) {
	tables, barred := make([]*lance.Table, len(p.snap.Tables)), make([]error, len(p.snap.Tables))
	var g errgroup.Group
	g.SetLimit(parallel)
	for i, t := range p.snap.Tables {
		if !folded(t) {
			continue
		}
		g.Go(func() error {
			var err error
			if tables[i], err = p.barrier(ctx, t); Unavailable(err) && !t.System {
				tables[i], barred[i] = nil, err
				return nil
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	out := make(map[heads.TableID]*lance.Table)
	p.barred = map[heads.TableID]error{}
	for i, t := range p.snap.Tables {
		if tables[i] != nil {
			out[t.ID] = tables[i]
		}
		if barred[i] != nil {
			p.barred[t.ID] = barred[i]
		}
	}
	return out, nil
}

// folded tells tables that folds commit to.
func folded(t heads.Table) bool {
	return t.Head.State != heads.StateTombstoned && (t.Enrolled || t.Key == heads.RejectsKey)
}

func (p *Publisher) barrier(ctx context.Context, t heads.Table) (*lance.Table, error) {
	p.step("barrier.%s.before", t.Key)
	table, err := lance.Open(ctx, p.o.Store, heads.Join(p.o.Root, t.Path))
	if err != nil {
		return nil, fmt.Errorf("publisher: barrier on %q: %w", t.Key, err)
	}
	if err := reaches(table, t.Head.Version); err != nil {
		return nil, fmt.Errorf("publisher: barrier on %q: %w", t.Key, err)
	}
	w := p.newWait(t.Key)
	table, err = fence.Barrier(ctx, table, p.epoch, func(ctx context.Context) error { // asked on each retry
		if err := w.again(2); err != nil {
			return w.starved(err)
		}
		return p.authority(ctx)
	})
	if err = w.starved(err); err != nil {
		return nil, fmt.Errorf("publisher: barrier on %q: %w", t.Key, err)
	}
	p.step("barrier.%s.after", t.Key)
	return table, nil
}

// reaches refuses a newest version below one that is known: the table's manifests were lost, and a commit would build on what came before.
func reaches(latest *lance.Table, version uint64) error {
	if latest.Version() >= version {
		return nil
	}
	return fmt.Errorf("%w: the newest version is %d, version %d is gone", lance.ErrNotFound, latest.Version(), version)
}
