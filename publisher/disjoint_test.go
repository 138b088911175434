package publisher

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/fence"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
)

// bulk is a log with one entry of n upserts of one table, and a commit of a foreign writer with n other keys in one fenced merge.
func bulk(prefix string, n int) []placed {
	rows := make([]placed, n)
	for i := range rows {
		rows[i].op = op{table: testTables[0], id: fmt.Sprintf("%s%06d", prefix, i), value: int64(i), kind: "upsert"}
	}
	return rows
}

// insertAll plans one fenced insert of rows on the newest version.
func (f foreign) insertAll(ctx context.Context, key string, rows []placed) (*lance.Table, *lance.Transaction, error) {
	t, err := f.open(ctx, key)
	if err != nil {
		return nil, nil, err
	}
	rec := rowsOf(rows)
	defer rec.Release()
	set := fence.KeySet{}
	if err := set.AddRecord(rec, []string{"id"}); err != nil {
		return nil, nil, err
	}
	fr, err := writeOne(ctx, f.store, t, rec)
	if err != nil {
		return nil, nil, err
	}
	update := &lance.Update{NewFragments: []lance.Fragment{fr}, PreservedFields: fieldIDs(t.Schema())}
	update.Filter, err = fence.NewFilter(t.Schema(), set.Hashes())
	return t, lance.NewTransaction(t, update), err
}

// TestDisjointFoldsOfTenThousandKeysBothLand: by the format's own rule, any shared bit of two blooms, they always conflict; by our own keys
// against their filter, confirmed against their real keys, they do not. One shared key still does, and becomes an update (X1).
func TestDisjointFoldsOfTenThousandKeysBothLand(t *testing.T) {
	const n = 10_000
	for name, c := range map[string]struct{ shared, tries int }{"disjoint": {0, 1}, "one key in both": {1, 2}} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			store := objstore.NewMemory()
			p := newGraph(t, store)
			tries := 0
			p.o.Step = func(s Step) {
				if s == Step("commit."+testTables[0]+".before") {
					tries++
				}
			}
			var e entry
			for _, o := range bulk("ours", n) {
				e = append(e, o.op)
			}
			f, err := plan(ctx, p, []entry{e}, 1)
			require.NoError(t, err)

			theirs := bulk("theirs", n)
			theirs = append(theirs, bulk("ours", c.shared)...)
			base, tx, err := foreign{store}.insertAll(ctx, testTables[0], theirs)
			require.NoError(t, err)
			_, err = base.Commit(ctx, tx, lance.CommitOptions{})
			require.NoError(t, err)

			// The format's rule, for comparison: the same commit without our check.
			_, err = f.Tables[0].Base.Commit(ctx, f.Tables[0].Tx, lance.CommitOptions{Affected: f.Tables[0].Affected})
			require.ErrorIs(t, err, lance.ErrConflict)

			published, err := p.Publish(ctx, f)
			require.NoError(t, err)
			require.Equal(t, c.tries, tries)
			head, _ := published.Snapshot.Table(testTables[0])
			require.EqualValues(t, 2*n, head.Head.Rows)
			got, err := content(ctx, store, published.Snapshot, testTables[0])
			require.NoError(t, err)
			require.Len(t, got, 2*n)
		})
	}
}

// TestFalsePositiveIsNoDuplicate: a filter that answers yes to everything is believed only as far as its rows go.
func TestFalsePositiveIsNoDuplicate(t *testing.T) {
	ctx := context.Background()
	store := objstore.NewMemory()
	p := newGraph(t, store)
	f, err := plan(ctx, p, []entry{{{testTables[0], "mine", 1, "insert"}}}, 1)
	require.NoError(t, err)
	base, tx, err := foreign{store}.insertAll(ctx, testTables[0], bulk("theirs", 10))
	require.NoError(t, err)
	full := lance.NewBloom()
	for i := range full.Bits {
		full.Bits[i] = 0xff
	}
	tx.Op.(*lance.Update).Filter = &lance.KeyFilter{FieldIDs: base.Schema().PrimaryKeyFieldIDs(), Bloom: full}
	_, err = base.Commit(ctx, tx, lance.CommitOptions{})
	require.NoError(t, err)
	published, err := p.Publish(ctx, f)
	require.NoError(t, err)
	require.Zero(t, published.Rejects)
	head, _ := published.Snapshot.Table(testTables[0])
	require.EqualValues(t, 11, head.Head.Rows)
	require.Equal(t, heads.StateLive, head.Head.State)
}
