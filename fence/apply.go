package fence

import (
	"context"
	"errors"
	"fmt"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/foldline/foldline/lance"
)

// Changes are what one commit does to a keyed table. The zero value does nothing.
type Changes struct {
	// Upserts are rows in the table's schema. A row takes the place of all rows that have its key. No key may come twice.
	Upserts []arrow.Record
	// Deletes are keys whose rows go; a key without a row is no error.
	Deletes KeySet
}

// Apply commits changes on t by scanning its key column once: deletion vectors for the rows that go, new fragments for those that come, and a filter
// of the keys that were not found, deletes included. It is the merge-insert of a table without an index; folds, which have a key index, a record and
// an epoch, do not use it. o.Affected and o.SameKey are not used.
//
// lance.ErrConflict: another writer's commit since t touches the same rows or keys, or may; apply the changes to t.Latest. ErrNullKey,
// lance.ErrInvalid: a row; lance.ErrUnsupported: the table numbers its rows, which an upsert would have to keep; nothing was done. Memory is that of the changes' keys and of one scan.
func Apply(ctx context.Context, t *lance.Table, c Changes, o lance.CommitOptions) (lance.Result, error) {
	p, err := newApply(t, c)
	if err == nil {
		err = p.findRows(ctx)
	}
	if err != nil {
		return lance.Result{}, fmt.Errorf("apply changes to table %q: %w", t.Root(), err)
	}
	update, err := p.prepare(ctx, c)
	if err != nil {
		return lance.Result{}, fmt.Errorf("apply changes to table %q: %w", t.Root(), err)
	}
	o.Affected = p.gone
	o.SameKey = SameKey(func(context.Context) (KeySet, error) { return p.absent, nil })
	return t.Commit(ctx, lance.NewTransaction(t, update), o)
}

// apply is the work of one Apply.
type apply struct {
	table  *lance.Table
	keys   KeySet // of all changes
	absent KeySet // those that the table does not hold
	gone   Rows   // the rows that they have in it
}

func newApply(t *lance.Table, c Changes) (*apply, error) {
	if t.StableRowIDs() {
		return nil, fmt.Errorf("%w: stable row ids", lance.ErrUnsupported)
	}
	p := &apply{table: t, keys: KeySet{}, gone: Rows{}}
	rows := 0
	for _, rec := range c.Upserts {
		if err := p.keys.AddRecord(rec, t.Schema().PrimaryKey()); err != nil {
			return nil, err
		}
		rows += int(rec.NumRows())
	}
	if len(p.keys) != rows {
		return nil, fmt.Errorf("%w: %d rows of %d keys to upsert", lance.ErrInvalid, rows, len(p.keys))
	}
	for k, hash := range c.Deletes {
		if _, twice := p.keys[k]; twice {
			return nil, fmt.Errorf("%w: a key to upsert and to delete", lance.ErrInvalid)
		}
		p.keys[k] = hash
	}
	return p, nil
}

func (p *apply) findRows(ctx context.Context) error {
	found, err := FindRows(ctx, p.table, p.keys)
	if err != nil {
		return err
	}
	for _, addresses := range found {
		for _, at := range addresses {
			p.gone.Add(at)
		}
	}
	p.absent = p.keys.Absent(found)
	return nil
}

// prepare uploads what the commit names.
func (p *apply) prepare(ctx context.Context, c Changes) (*lance.Update, error) {
	update := &lance.Update{}
	var err error
	if update.Filter, err = NewFilter(p.table.Schema(), p.absent.Hashes()); err != nil {
		return nil, err
	}
	if update.UpdatedFragments, update.RemovedFragmentIDs, err = p.table.DeleteRows(ctx, p.gone); err != nil {
		return nil, err
	}
	w := p.table.NewFragmentWriter(ctx, lance.WriteOptions{})
	for _, rec := range c.Upserts {
		if err := w.Write(rec); err != nil {
			return nil, errors.Join(err, w.Abort())
		}
	}
	update.NewFragments, err = w.Finish()
	return update, err
}
