package fold

import (
	"context"

	"github.com/foldline/foldline/fold/keyindex"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
)

// index tells the key index what a published fold did to each table, so that
// the next fold has nothing to read back. What fails here is caught up by the
// next look-up.
func (f *Folder) index(ctx context.Context, snap *heads.Snapshot, tables []preparedTable) {
	if f.opts.Index == nil {
		return
	}
	for i := range tables {
		if tables[i].commit == nil {
			continue
		}
		if err := f.indexTable(ctx, snap, &tables[i]); err != nil && ctx.Err() == nil {
			f.opts.Logger.WarnContext(ctx, "key index does not follow", "table", tables[i].plan.table.Key, "error", err)
		}
	}
}

func (f *Folder) indexTable(ctx context.Context, snap *heads.Snapshot, t *preparedTable) error {
	table, ok := snap.TableByID(t.plan.table.ID)
	if !ok {
		return heads.ErrNotFound
	}
	head, err := f.openTable(ctx, snap, table)
	if err != nil {
		return err
	}
	update, ok := t.commit.Tx.Op.(*lance.Update)
	if !ok {
		return nil
	}
	p := t.plan
	return f.opts.Index.Committed(ctx, uint64(table.ID), head, keyindex.Commit{
		Base: t.commit.Base, Transaction: t.commit.Tx.UUID, NewFragments: update.NewFragments, Affected: t.commit.Affected,
		Upserts: p.keysOfRows(p.verdicts.upserts), Removed: p.keysOf(p.verdicts.removed),
	})
}

// keysOfRows are the exact keys of rows.
func (p *tablePlan) keysOfRows(rows []uint32) []string {
	out := make([]string, len(rows))
	for i, row := range rows {
		out[i] = p.numbers.keys[p.changes[row].key]
	}
	return out
}

// keysOf are the exact keys of some numbers.
func (p *tablePlan) keysOf(numbers []uint32) []string {
	out := make([]string, len(numbers))
	for i, n := range numbers {
		out[i] = p.numbers.keys[n]
	}
	return out
}
