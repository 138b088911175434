package publisher

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/fence"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/faultstore"
)

// overwrite replaces a table with one row of the same schema.
func (f foreign) overwrite(ctx context.Context, key string) error {
	t, err := f.open(ctx, key)
	if err != nil {
		return err
	}
	rec := rowsOf([]placed{{op: op{id: "other", value: 1}}})
	defer rec.Release()
	fr, err := writeOne(ctx, f.store, t, rec)
	if err != nil {
		return err
	}
	tx := lance.NewTransaction(t, &lance.Overwrite{Fragments: []lance.Fragment{fr}, Schema: t.Schema()})
	_, err = t.Commit(ctx, tx, lance.CommitOptions{})
	return err
}

func (f foreign) restore(ctx context.Context, key string, version uint64) error {
	t, err := f.open(ctx, key)
	if err != nil {
		return err
	}
	_, err = t.Commit(ctx, lance.NewTransaction(t, &lance.Restore{Version: version}), lance.CommitOptions{})
	return err
}

// rejectRows reads the dead letters of one table: operation and row.
func rejectRows(t *testing.T, store objstore.Store, snap *heads.Snapshot, key string) []string {
	ctx := context.Background()
	table, err := snap.OpenTable(ctx, store, heads.RejectsKey)
	require.NoError(t, err)
	var out []string
	for rec, err := range table.Scan(ctx, lance.ScanOptions{Columns: []string{"table", "op", "code", "row"}}) {
		require.NoError(t, err)
		text := func(c, i int) string { return rec.Column(c).(*array.String).Value(i) }
		for i := range int(rec.NumRows()) {
			if text(0, i) == key {
				out = append(out, strings.Join([]string{text(1, i), text(2, i), text(3, i)}, " "))
			}
		}
		rec.Release()
	}
	return out
}

// secondFold is a fold of all three tables, the first of them about to be taken away: an upsert, a delete and a strict insert.
func secondFold(t *testing.T) (objstore.Store, *Publisher, []entry, *Prepared) {
	ctx := context.Background()
	store, log := crashGraph(t)
	log = append(log[:3:3], entry{{testTables[0], "a", 10, "upsert"}, {testTables[0], "b", 0, "delete"}, {testTables[0], "n", 5, "insert"},
		{testTables[1], "y", 7, "upsert"}})
	p, err := Claim(ctx, options(store), "folder")
	require.NoError(t, err)
	f, err := plan(ctx, p, log, 4)
	require.NoError(t, err)
	return store, p, log, f
}

func partOf(f *Prepared, key string) *PreparedTable {
	for i := range f.Tables {
		if f.Tables[i].Table.Key == key {
			return &f.Tables[i]
		}
	}
	return nil
}

var lostRows = []string{`upsert table_unavailable {"id":"a","v":10}`, `insert table_unavailable {"id":"n","v":5}`, `delete table_unavailable {"id":"b"}`}

// TestReplacedTableDoesNotStopTheOthers: a foreign overwrite or restore before our commit. The others are published, the rows of the replaced one
// are dead letters, its head stays, and nothing is folded onto it (f4, f5, c9).
func TestReplacedTableDoesNotStopTheOthers(t *testing.T) {
	ctx := context.Background()
	for name, replace := range map[string]func(foreign) error{
		"overwrite": func(f foreign) error { return f.overwrite(ctx, testTables[0]) },
		"restore":   func(f foreign) error { return f.restore(ctx, testTables[0], 1) },
		"an append, then an overwrite": func(f foreign) error {
			if err := f.append(ctx, testTables[0], "x", 1); err != nil {
				return err
			}
			return f.overwrite(ctx, testTables[0])
		},
	} {
		t.Run(name, func(t *testing.T) {
			store, p, _, f := secondFold(t)
			before, _ := p.snap.Table(testTables[0])
			require.NoError(t, replace(foreign{store}))
			published, err := p.Publish(ctx, f)
			require.NoError(t, err)
			require.Equal(t, 3, published.Rejects)
			require.ElementsMatch(t, lostRows, rejectRows(t, store, published.Snapshot, testTables[0]))
			head, _ := published.Snapshot.Table(testTables[0])
			require.Equal(t, heads.StateReplaced, head.Head.State)
			require.Equal(t, before.Head.Version, head.Head.Version)
			got, err := content(ctx, store, published.Snapshot, testTables[1])
			require.NoError(t, err)
			require.EqualValues(t, 7, got["y"])

			resumed, err := p.Resume(ctx, testTables[0])
			require.NoError(t, err)
			require.Equal(t, heads.StateLive, resumed.Head.State)
			_, err = publishThrough(ctx, p, append(make([]entry, 4), entry{{testTables[0], "again", 1, "upsert"}}), 5)
			require.NoError(t, err)
		})
	}
}

// TestReplacedAboveOurCommit: the overwrite or restore lands on top of our version. Ours is published and the table is frozen (f4).
func TestReplacedAboveOurCommit(t *testing.T) {
	ctx := context.Background()
	store, p, _, f := secondFold(t)
	dieBeforePublish(ctx, t, p, f)
	require.NoError(t, foreign{store}.overwrite(ctx, testTables[0]))
	b, err := Claim(ctx, options(store), "successor")
	require.NoError(t, err)
	require.Zero(t, b.Recovered().Rejects)
	head, _ := b.snap.Table(testTables[0])
	require.Equal(t, heads.StateReplaced, head.Head.State)
	got, err := content(ctx, store, b.snap, testTables[0])
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"a": 10, "n": 5}, got)
}

// TestDecisionSurvivesACrash: the dead letters have landed and name the table; whoever completes the fold does not commit it there any more (F4).
func TestDecisionSurvivesACrash(t *testing.T) {
	ctx := context.Background()
	store, p, _, f := secondFold(t)
	require.NoError(t, foreign{store}.overwrite(ctx, testTables[0]))
	dieBeforePublish(ctx, t, p, f)
	rejects, err := lance.Open(ctx, store, heads.Join(testRoot, heads.RejectsPath))
	require.NoError(t, err)
	require.NotEmpty(t, rejects.Metadata()[fence.MetaGivenUp])
	require.NoError(t, foreign{store}.restore(ctx, testTables[0], partOf(f, testTables[0]).Base.Version()), "the table would take it now")

	b, err := Claim(ctx, options(store), "successor")
	require.NoError(t, err)
	require.NotNil(t, b.Recovered())
	require.ElementsMatch(t, lostRows, rejectRows(t, store, b.snap, testTables[0]))
	table, err := foreign{store}.open(ctx, testTables[0])
	require.NoError(t, err)
	require.NotEqual(t, recordName(f.Fold, p.epoch), table.Metadata()[fence.MetaFold])
}

// TestTableThatIsGone: no barrier can be put on it. The claim goes on, the table is suspended, the others are folded.
func TestTableThatIsGone(t *testing.T) {
	ctx := context.Background()
	store, log := crashGraph(t)
	root := heads.Join(testRoot, heads.TablePath(testTables[0])) + "/"
	infos, err := store.List(ctx, root, "", 0)
	require.NoError(t, err)
	for _, i := range infos {
		require.NoError(t, store.Delete(ctx, i.Key))
	}
	p, err := Claim(ctx, options(store), "successor")
	require.NoError(t, err)
	head, _ := p.snap.Table(testTables[0])
	require.Equal(t, heads.StateSuspended, head.Head.State)
	_, err = publishThrough(ctx, p, append(log[:3:3], entry{{testTables[1], "y", 7, "upsert"}}), 4)
	require.NoError(t, err)
	again, err := Claim(ctx, options(store), "third")
	require.NoError(t, err)
	require.Nil(t, again.Recovered())
}

// TestStoreThatFailsForOneTable: errors that may pass are waited out for SuspendAfter, then the table is given up.
// report C162.
func TestStoreThatFailsForOneTable(t *testing.T) {
	ctx := context.Background()
	for name, c := range map[string]struct {
		failures int
		state    heads.State
	}{"it passes": {3, heads.StateLive}, "it does not": {1 << 30, heads.StateSuspended}} {
		t.Run(name, func(t *testing.T) {
			store, p, _, f := secondFold(t)
			var ticks atomic.Int64
			p.o.Clock = func() time.Time {
				return time.Unix(1_800_000_000, 0).Add(time.Duration(ticks.Add(1)) * 50 * time.Millisecond)
			}
			p.o.SuspendAfter = 10 * time.Second
			failCommits(ctx, t, p, f, store, testTables[0], c.failures)
			published, err := p.Publish(ctx, f)
			require.NoError(t, err)
			head, _ := published.Snapshot.Table(testTables[0])
			require.Equal(t, c.state, head.Head.State)
		})
	}
}

// failCommits makes the first commits of a prepared fold to one table fail before they have an effect.
func failCommits(ctx context.Context, t *testing.T, p *Publisher, f *Prepared, store objstore.Store, key string, failures int) {
	t.Helper()
	var left atomic.Int64
	left.Store(int64(failures))
	match := faultstore.Under(tableRoot(key)+"/_versions/", faultstore.PutIfAbsent)
	p.o.Store = faultstore.New(store, func(_ context.Context, c faultstore.Call) faultstore.Fault {
		if match(c) && left.Add(-1) >= 0 {
			return faultstore.Fault{Before: faultstore.ErrInjected}
		}
		return faultstore.Fault{}
	})
	part := partOf(f, key)
	var err error
	part.Base, err = lance.OpenVersion(ctx, p.o.Store, part.Base.Root(), part.Base.Version())
	require.NoError(t, err)
}

// TestAdoption publishes what foreign writers did between folds, and freezes what they replaced (f2, f4).
func TestAdoption(t *testing.T) {
	ctx := context.Background()
	store, _ := crashGraph(t)
	p, err := Claim(ctx, options(store), "folder")
	require.NoError(t, err)
	value := int64(77)
	require.NoError(t, foreign{store}.merge(ctx, testTables[0], "theirs", &value))
	require.NoError(t, foreign{store}.append(ctx, testTables[1], "theirs", 5))
	require.NoError(t, foreign{store}.overwrite(ctx, testTables[1]))
	require.NoError(t, foreign{store}.cleanUp(ctx, testTables[0]))
	s, err := p.Adopt(ctx)
	require.NoError(t, err)
	got, err := content(ctx, store, s, testTables[0])
	require.NoError(t, err)
	require.Equal(t, value, got["theirs"])
	replaced, _ := s.Table(testTables[1])
	require.Equal(t, heads.StateReplaced, replaced.Head.State)
	got, err = content(ctx, store, s, testTables[1])
	require.NoError(t, err)
	require.EqualValues(t, 5, got["theirs"], "what came before the overwrite is shown")
	again, err := p.Adopt(ctx)
	require.NoError(t, err)
	require.Equal(t, s.Version, again.Version)
}
