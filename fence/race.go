package fence

import (
	"context"
	"errors"

	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
)

// SameKey returns the check of a commit (lance.CommitOptions.SameKey) whose inserted keys are ours: each is looked up in their filter, and what
// the filter may hold is confirmed against the keys of the rows that they brought. So two writers of disjoint keys both land, and a
// false positive of a filter is never taken for a duplicate (X1). ours is asked once, at the first race.
//
// It costs our keys times their filter in memory, and the key column of their new fragments when the filter answers for one of ours. When
// those rows are gone, compacted away and cleaned up, nobody can tell, and it is a conflict.
func SameKey(ours func(context.Context) (KeySet, error)) func(context.Context, *lance.Table, lance.Committed) (bool, error) {
	var known KeySet
	return func(ctx context.Context, latest *lance.Table, theirs lance.Committed) (bool, error) {
		update, ok := theirs.Tx.Op.(*lance.Update)
		if !ok || update.Filter == nil {
			return true, nil
		}
		if known == nil {
			var err error
			if known, err = ours(ctx); err != nil {
				return false, err
			}
		}
		suspects := suspects(known, update.Filter)
		if len(suspects) == 0 {
			return false, nil
		}
		found, err := anyInserted(ctx, latest, update.NewFragments, suspects)
		if errors.Is(err, lance.ErrNotFound) || errors.Is(err, objstore.ErrNotFound) {
			return true, nil
		}
		return found, err
	}
}

// suspects are the keys of ours that a filter may hold.
func suspects(ours KeySet, theirs *lance.KeyFilter) KeySet {
	has := theirs.Has()
	out := KeySet{}
	for k, h := range ours {
		if has(h) {
			out[k] = h
		}
	}
	return out
}

// anyInserted looks for one of keys among the rows of fragments.
func anyInserted(ctx context.Context, t *lance.Table, fragments []lance.Fragment, keys KeySet) (bool, error) {
	columns := t.Schema().PrimaryKey()
	reader, err := lance.NewKeyReader(t.Schema().Arrow(), columns)
	if err != nil {
		return false, err
	}
	for rec, err := range t.ScanFragments(ctx, fragments, lance.ScanOptions{Columns: columns}) {
		if err != nil {
			return false, err
		}
		if err := reader.Bind(rec); err != nil {
			rec.Release()
			return false, err
		}
		for i := range int(rec.NumRows()) {
			if reader.Null(i) {
				continue
			}
			if _, ok := keys[string(reader.ExactBytes(i))]; ok {
				rec.Release()
				return true, nil
			}
		}
		rec.Release()
	}
	return false, nil
}
