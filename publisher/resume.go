package publisher

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
)

// Reopen is the first half of taking a held table back: its newest version carries a barrier, can be read, has the registered key and columns, and
// becomes its head; the table stays held. What its rejects say is replayed next, and [Publisher.Resume] ends it. A fold that landed there and was never
// published is completed first, when it is the newest one; one that later folds have passed stays in the table, and replaying changes nothing that it did
// not say. A table that is not held is returned as it is.
//
// ErrConflict when the newest version does not fit, and what makes a table [Unavailable] when it cannot be read.
func (p *Publisher) Reopen(ctx context.Context, key string) (heads.Table, error) {
	t, err := p.Enrolled(ctx, key)
	if err != nil || !t.Head.State.Held() {
		return t, err
	}
	table, err := p.barrier(ctx, t)
	if err != nil {
		return t, err
	}
	if !p.fits(t, table) {
		return t, fmt.Errorf("%w: version %d of table %q does not have its registered key and columns", ErrConflict, table.Version(), key)
	}
	if err := checkReadable(ctx, p.o.Store, table); err != nil {
		return t, fmt.Errorf("table %q: %w", key, err)
	}
	if err := p.completeLanded(ctx, t, table); err != nil {
		return t, err
	}
	t, _ = p.snap.Table(key)
	if t.Head.Is(table) {
		return t, nil
	}
	return p.alterTable(ctx, heads.KindAdopt, t, func(now *heads.Table, commit *heads.GraphCommit) error {
		*now = moveHead(commit, *now, table, nil)
		return nil
	})
}

// completeLanded completes a fold above the published one that a table holds: the claim that should have done it could not read the table.
func (p *Publisher) completeLanded(ctx context.Context, t heads.Table, table *lance.Table) error {
	if err := p.checkPublished(t, table); !errors.Is(err, ErrConflict) {
		return err
	}
	tables, err := p.barriers(ctx)
	if err != nil {
		return err
	}
	if err = p.recover(ctx, tables); err != nil {
		err = p.fail(ctx, err)
	}
	return err
}

// checkReadable makes sure that the files of a version are there: one Stat each.
func checkReadable(ctx context.Context, store objstore.Store, t *lance.Table) error {
	var g errgroup.Group
	g.SetLimit(parallel)
	for _, f := range t.Fragments() {
		g.Go(func() error {
			for _, key := range fragmentFiles(t.Root(), f) {
				if _, err := store.Stat(ctx, key); err != nil {
					return fmt.Errorf("version %d: fragment %d: %w", t.Version(), f.ID(), err)
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// Resume makes a held table take rows again, at its newest version; see [Publisher.Reopen], which it repeats.
func (p *Publisher) Resume(ctx context.Context, key string) (heads.Table, error) {
	t, err := p.Reopen(ctx, key)
	if err != nil || !t.Head.State.Held() {
		return t, err
	}
	repeated, err := p.lookAgain(ctx, t)
	if err != nil {
		return t, err
	}
	return p.alterTable(ctx, heads.KindResume, t, func(now *heads.Table, _ *heads.GraphCommit) error {
		if now.Head.Version != t.Head.Version {
			return fmt.Errorf("%w: head of table %q is version %d, it was version %d", ErrConflict, key, now.Head.Version, t.Head.Version)
		}
		now.Head.State, now.Head.Hold = heads.StateLive, heads.Hold{}
		setDuplicates(&now.Head, repeated)
		return nil
	})
}

// lookAgain counts the repeated keys of a table that was held; what its head says of them stands when nobody knows better.
func (p *Publisher) lookAgain(ctx context.Context, t heads.Table) (heads.Duplicates, error) {
	if p.o.Keys == nil && t.Head.Duplicates.Keys == 0 {
		return t.Head.Duplicates, nil
	}
	at, err := p.snap.OpenTable(ctx, p.o.Store, t.Key)
	if err != nil {
		return t.Head.Duplicates, err
	}
	d, err := p.counted(ctx, t, at)
	if d == nil {
		return t.Head.Duplicates, err
	}
	return *d, err
}
