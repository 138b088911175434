package lance

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/foldline/foldline/internal/keys"
	"github.com/foldline/foldline/objstore"
)

// plan is a keyed update that one writer has prepared on the version it saw.
type plan struct {
	table    *Table
	tx       *Transaction
	affected map[uint64]*roaring.Bitmap
	upserts  map[string]int64
	deletes  []string
}

// apply does to a map what the update does to the table.
func (p *plan) apply(model map[string]int64) {
	for _, k := range p.deletes {
		delete(model, k)
	}
	maps.Copy(model, p.upserts)
}

// addressesOf finds the live rows of the wanted keys by scanning the key column.
func addressesOf(t *testing.T, table *Table, wanted func(key string) bool) map[string]RowAddress {
	out := make(map[string]RowAddress)
	for rec, err := range table.Scan(t.Context(), ScanOptions{Columns: []string{"id"}, RowAddress: true}) {
		require.NoError(t, err)
		for i := range int(rec.NumRows()) {
			key := rec.Column(0).(*array.String).Value(i)
			if wanted(key) {
				_, twice := out[key]
				require.False(t, twice, "key %q is live twice (X1)", key)
				out[key] = RowAddress(rec.Column(1).(*array.Uint64).Value(i))
			}
		}
		rec.Release()
	}
	return out
}

// newPlan prepares upserts and deletes on the newest version: deletion vectors for rows that exist, one new fragment, and a
// filter of the keys that were not found.
func newPlan(t *testing.T, store objstore.Store, root string, upserts map[string]int64, deletes []string) *plan {
	table, err := Open(t.Context(), store, root)
	require.NoError(t, err)
	existing := addressesOf(t, table, func(key string) bool {
		_, up := upserts[key]
		return up || slices.Contains(deletes, key)
	})
	p := &plan{table: table, affected: make(map[uint64]*roaring.Bitmap), upserts: upserts, deletes: deletes}
	for _, a := range existing {
		id := uint64(a.Fragment())
		if p.affected[id] == nil {
			p.affected[id] = roaring.New()
		}
		p.affected[id].Add(a.Offset())
	}
	update := &Update{Filter: &KeyFilter{FieldIDs: table.Schema().PrimaryKeyFieldIDs()}}
	update.UpdatedFragments, update.RemovedFragmentIDs, err = table.DeleteRows(t.Context(), p.affected)
	require.NoError(t, err)
	var fresh []pair
	for _, key := range slices.Sorted(maps.Keys(upserts)) {
		fresh = append(fresh, pair{key, upserts[key]})
	}
	// A delete of a key that is not there belongs into the filter too: only so does it notice that the key came meanwhile.
	for _, key := range append(slices.Collect(maps.Keys(upserts)), deletes...) {
		if _, ok := existing[key]; !ok {
			update.Filter.Exact = append(update.Filter.Exact, keys.Hash([]byte(key)))
		}
	}
	if len(fresh) > 0 {
		update.NewFragments = writeRows(t, table, fresh, WriteOptions{})
	}
	p.tx = NewTransaction(table, update)
	return p
}

// TestRacingKeyedUpdates plays random interleavings of writers that plan on one version and commit on a later one, and holds
// every version to a map that takes the landed updates in version order (L3, X1).
func TestRacingKeyedUpdates(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		store := objstore.NewMemory()
		newTestTable(t, store)
		key := rapid.Custom(func(rt *rapid.T) string { return fmt.Sprintf("k%d", rapid.IntRange(0, 9).Draw(rt, "key")) })
		var pending []*plan
		model := make(map[string]int64)
		landed := 0
		for step := range rapid.IntRange(5, 30).Draw(rt, "steps") {
			if len(pending) < 3 && (len(pending) == 0 || rapid.Bool().Draw(rt, "plan")) {
				upserts := make(map[string]int64)
				for _, k := range rapid.SliceOfN(key, 0, 3).Draw(rt, "upserts") {
					upserts[k] = int64(step)
				}
				deletes := rapid.SliceOfN(key, 0, 2).Draw(rt, "deletes")
				deletes = slices.DeleteFunc(deletes, func(k string) bool { _, ok := upserts[k]; return ok })
				pending = append(pending, newPlan(t, store, "t.lance", upserts, deletes))
				continue
			}
			i := rapid.IntRange(0, len(pending)-1).Draw(rt, "commit")
			p := pending[i]
			pending = slices.Delete(pending, i, i+1)
			before := newRival(t, store).Version()
			r, err := p.table.Commit(t.Context(), p.tx, CommitOptions{Affected: p.affected})
			if errors.Is(err, ErrConflict) {
				require.Greater(t, before, p.table.Version(), "a conflict without a rival")
				continue
			}
			require.NoError(t, err)
			landed++
			p.apply(model)
			require.Equal(t, before+1, r.Table.Version())
			requireModel(t, r.Table, model)
		}
		require.EqualValues(t, landed+1, newRival(t, store).Version())
	})
}

func requireModel(t *testing.T, table *Table, model map[string]int64) {
	t.Helper()
	addressesOf(t, table, func(string) bool { return true })
	rows, _ := readRows(t, table, ScanOptions{})
	got := make(map[string]int64)
	for _, r := range rows {
		got[r.id] = r.v
	}
	require.Equal(t, model, got)
	require.EqualValues(t, len(model), table.Rows())
}
