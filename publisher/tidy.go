package publisher

import (
	"context"
	"errors"

	"github.com/foldline/foldline/heads"
)

// Tidy does what follows a graph commit and nobody waits for: it removes the objects of the fold before the published one, moves older graph
// commits to the history, and removes a few old manifest versions. Call it after the waiters were told; the next Publish, CreateTable or Adopt calls it otherwise. What an
// error or a crash leaves undone is done by a later call, here or by another owner.
func (p *Publisher) Tidy(ctx context.Context) error {
	if p.isUsedUp() {
		return nil
	}
	p.untidy = false
	p.step("tidy.before")
	err := errors.Join(p.removeLeftovers(ctx), p.moveOld(ctx), p.prune(ctx))
	p.step("tidy.after")
	return err
}

// tidyFirst does what the last graph commit has left to do.
func (p *Publisher) tidyFirst(ctx context.Context) {
	if !p.untidy {
		return
	}
	if err := p.Tidy(ctx); err != nil {
		p.o.Logger.WarnContext(ctx, "old objects left behind", "error", err)
	}
}

// removeLeftovers removes the records of folds below the published one: those of the published fold stay until the next publish.
func (p *Publisher) removeLeftovers(ctx context.Context) error {
	for i, key := range p.outdated {
		if err := p.o.Store.Delete(ctx, key); err != nil {
			p.outdated = p.outdated[i:]
			return err
		}
	}
	p.outdated = nil
	return nil
}

// expire makes the objects of the folds before rec removable, and remembers those of rec.
func (p *Publisher) expire(rec *record, results []committed) {
	p.outdated = append(p.outdated, p.leftovers...)
	p.leftovers = nil
	tables := rec.tables
	if rec.rejects != nil {
		tables = append(tables[:len(tables):len(tables)], *rec.rejects)
	}
	for _, t := range tables {
		if t.deleteKeys != "" {
			p.leftovers = append(p.leftovers, heads.Join(p.o.Root, t.deleteKeys))
		}
	}
	for _, r := range results {
		if r.amendment != "" {
			p.leftovers = append(p.leftovers, heads.Join(p.o.Root, r.amendment))
		}
	}
	// The record goes last: as long as it is there, what is beside it can be found.
	p.leftovers = append(p.leftovers, heads.Join(p.o.Root, recordPath(rec.name())))
	p.untidy = true
}

// moveOld moves graph commits to the history once there are twice as many as the hot fragment keeps, and merges what it finds there. The next graph
// commit drops them from the hot fragment and names the history's version.
func (p *Publisher) moveOld(ctx context.Context) error {
	journal := p.snap.Journal
	if len(journal) < 2*journalKeep || journal[len(journal)-journalKeep-1].Version <= p.moved.Through {
		return nil
	}
	moved, err := p.moveHistory(ctx, journal[:len(journal)-journalKeep], p.snap.History, true)
	if err != nil {
		return err
	}
	p.moved = moved
	return p.pruneHistory(ctx)
}
