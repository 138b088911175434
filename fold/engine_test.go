package fold

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/foldline/foldline/fence"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
)

// engine writes to note tables as another program does: through package lance
// alone. Its methods may run on any goroutine. Each makes at most one commit and
// returns the id of its transaction, "" when there was nothing to do.
type engine struct {
	ctx   context.Context
	store objstore.Store
}

// merge is a fenced upsert of rows and a delete by key.
func (e engine) merge(path string, rows map[string]int64, deletes []string) (string, error) {
	latest, err := lance.Open(e.ctx, e.store, path)
	if err != nil {
		return "", err
	}
	touched := maps.Clone(rows)
	if touched == nil {
		touched = map[string]int64{}
	}
	for _, key := range deletes {
		touched[key] = 0
	}
	found, set, err := e.find(latest, touched)
	if err != nil || len(rows) == 0 && len(found) == 0 {
		return "", err
	}
	update := &lance.Update{PreservedFields: preserved(latest.Schema())}
	affected := fence.Rows{}
	for key, addresses := range found {
		delete(set, key)
		for _, a := range addresses {
			affected.Add(a)
		}
	}
	for _, key := range deletes {
		delete(set, key)
	}
	if len(rows) > 0 {
		rec, fragments, err := e.upload(latest, rows)
		if err != nil {
			return "", err
		}
		rec.Release()
		update.NewFragments = fragments
	}
	if update.UpdatedFragments, update.RemovedFragmentIDs, err = latest.DeleteRows(e.ctx, affected); err != nil {
		return "", err
	}
	if update.Filter, err = fence.NewFilter(latest.Schema(), set.Hashes()); err != nil {
		return "", err
	}
	return e.commit(latest, update, lance.CommitOptions{Affected: affected})
}

// append adds rows without a look at what is there.
func (e engine) append(path string, rows map[string]int64) (string, error) {
	latest, err := lance.Open(e.ctx, e.store, path)
	if err != nil {
		return "", err
	}
	rec, fragments, err := e.upload(latest, rows)
	rec.Release()
	if err != nil {
		return "", err
	}
	return e.commit(latest, &lance.Append{Fragments: fragments}, lance.CommitOptions{})
}

// find looks the keys of rows up.
func (e engine) find(latest *lance.Table, rows map[string]int64) (map[string][]lance.RowAddress, fence.KeySet, error) {
	rec := noteRecord(latest, rows)
	defer rec.Release()
	set := fence.KeySet{}
	if err := set.AddRecord(rec, []string{"id"}); err != nil {
		return nil, nil, err
	}
	found, err := fence.FindRows(e.ctx, latest, set)
	return found, set, err
}

// compact rewrites small fragments and those with deleted rows.
func (e engine) compact(path string) (string, error) {
	latest, err := lance.Open(e.ctx, e.store, path)
	if err != nil {
		return "", err
	}
	op, err := latest.Compact(e.ctx, lance.CompactOptions{})
	if err != nil || op == nil {
		return "", err
	}
	return e.commit(latest, op, lance.CommitOptions{})
}

// commit gives up, as engines do, when a rival came in between.
func (e engine) commit(latest *lance.Table, op lance.Operation, o lance.CommitOptions) (string, error) {
	tx := lance.NewTransaction(latest, op)
	if _, err := latest.Commit(e.ctx, tx, o); errors.Is(err, lance.ErrConflict) {
		return "", nil
	} else if err != nil {
		return "", err
	}
	return tx.UUID, nil
}

// upload writes rows of a table, as another engine does before it commits them. The caller releases the record.
func (e engine) upload(latest *lance.Table, rows map[string]int64) (arrow.Record, []lance.Fragment, error) {
	rec := noteRecord(latest, rows)
	fw := latest.NewFragmentWriter(e.ctx, lance.WriteOptions{})
	if err := fw.Write(rec); err != nil {
		return rec, nil, errors.Join(err, fw.Abort())
	}
	fragments, err := fw.Finish()
	return rec, fragments, err
}

func noteRecord(t *lance.Table, rows map[string]int64) arrow.Record {
	b := array.NewRecordBuilder(memory.DefaultAllocator, t.Schema().Arrow())
	defer b.Release()
	for _, id := range slices.Sorted(maps.Keys(rows)) {
		b.Field(0).(*array.StringBuilder).Append(id)
		b.Field(1).(*array.Int64Builder).Append(rows[id])
	}
	return b.NewRecord()
}
