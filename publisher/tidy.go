package publisher

import (
	"context"

	"github.com/foldline/foldline/heads"
)

// tidy runs behind a publish: what it leaves undone on an error or a crash is done by a later one. It removes the objects of the fold
// before this one and a few old manifest versions.
func (p *Publisher) tidy(ctx context.Context, rec *record, results []committed) {
	for _, key := range p.leftovers {
		if err := p.o.Store.Delete(ctx, key); err != nil {
			p.o.Logger.WarnContext(ctx, "fold record left behind", "key", key, "error", err)
		}
	}
	p.leftovers = p.leftovers[:0]
	for _, t := range rec.tables {
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
	p.step("prune.before")
	if err := p.prune(ctx); err != nil {
		p.o.Logger.WarnContext(ctx, "old manifest versions left behind", "error", err)
	}
	p.step("prune.after")
}
