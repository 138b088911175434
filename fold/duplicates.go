package fold

import (
	"context"
	"maps"
	"slices"

	"github.com/foldline/foldline/fence"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/publisher"
)

// duplicates tell what a plan leaves of keys that have more than one live row: the index knows all of them; without it those alone are known that the
// cut touches. nil when nothing is known.
func (f *Folder) duplicates(ctx context.Context, p *tablePlan) *publisher.PlannedDuplicates {
	if p.base == nil || len(p.numbers.keys) == 0 {
		return nil
	}
	gone, left := p.repeated()
	out := &publisher.PlannedDuplicates{Version: p.base.Version(), Gone: uint64(len(gone)), Left: left}
	if n := len(gone) + int(left.Keys); n > 0 {
		f.opts.Logger.WarnContext(ctx, "keys with more than one live row", "table", p.table.Key, "keys", n, "removed", len(gone))
	}
	if p.base.Rows() == 0 {
		out.Left.Least = false // there is no row
	} else if f.opts.Index != nil {
		if all, known, err := f.opts.Index.Duplicates(ctx, uint64(p.table.ID), p.base, gone); known && err == nil {
			out.Left = all
		}
	}
	return out
}

// repeated are the touched keys with more than one live row: those of which the plan leaves one row at most, and the others.
func (p *tablePlan) repeated() (gone map[string]bool, left fence.Duplicates) {
	gone, left.Least = map[string]bool{}, true
	many := map[string]bool{}
	for key, at := range p.addresses {
		if len(at) > 1 {
			many[key] = true
		}
	}
	if len(many) == 0 {
		return gone, left
	}
	for _, list := range [][]uint32{p.verdicts.replaced, p.verdicts.removed} {
		for _, n := range list {
			if key := p.numbers.keys[n]; many[key] {
				gone[key] = true
				delete(many, key)
			}
		}
	}
	left.Keys, left.Sample = uint64(len(many)), slices.Sorted(maps.Keys(many))
	left.Sample = left.Sample[:min(len(left.Sample), fence.SampleKeys)]
	return gone, left
}

// duplicatesOf are those of all tables of a fold.
func duplicatesOf(tables ...preparedTable) map[heads.TableID]publisher.PlannedDuplicates {
	out := map[heads.TableID]publisher.PlannedDuplicates{}
	for i := range tables {
		if d := tables[i].duplicates; d != nil {
			out[tables[i].plan.table.ID] = *d
		}
	}
	return out
}
