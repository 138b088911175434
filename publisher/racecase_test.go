package publisher

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/fence"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/faultstore"
)

// insertUntilSettled is a strict insert by another program: it tries until it has won or the key is there.
func (f foreign) insertUntilSettled(ctx context.Context, key, id string, value int64) (won bool, err error) {
	for {
		t, err := f.open(ctx, key)
		if err != nil {
			return false, err
		}
		rows, err := contentOf(ctx, t)
		if _, there := rows[id]; there || err != nil {
			return false, err
		}
		base, tx, err := f.insertAll(ctx, key, []placed{{op: op{table: key, id: id, value: value}}})
		if err != nil {
			return false, err
		}
		if base.Version() != t.Version() {
			continue // the absence was seen in another version
		}
		if _, err = base.Commit(ctx, tx, lance.CommitOptions{}); !errors.Is(err, lance.ErrConflict) {
			return err == nil, err
		}
	}
}

// Race R1, X1: 16 writers insert the same new key strictly, one of them a fold: one wins, the others hear that the key exists, there is one row.
func TestRaceR1SixteenStrictInserts(t *testing.T) {
	t.Parallel()
	const rivals = 15
	ctx := context.Background()
	for round := range 10 {
		store := objstore.NewMemory()
		p := newGraph(t, store)
		f, err := plan(ctx, p, []entry{{{testTables[0], "k", 100, "insert"}}}, 1)
		require.NoError(t, err)
		var winners atomic.Int64
		var g sync.WaitGroup
		for i := range rivals {
			g.Go(func() {
				won, err := foreign{store}.insertUntilSettled(ctx, testTables[0], "k", int64(i))
				if err != nil {
					t.Error(err)
				}
				if won {
					winners.Add(1)
				}
			})
		}
		published, err := p.Publish(ctx, f)
		require.NoError(t, err)
		g.Wait()
		newest, err := foreign{store}.open(ctx, testTables[0])
		require.NoError(t, err)
		rows, err := contentOf(ctx, newest)
		require.NoError(t, err)
		require.Len(t, rows, 1, "round %d", round)
		require.EqualValues(t, 1-winners.Load(), 1-published.Rejects, "the fold won exactly when no rival did")
		require.EqualValues(t, published.Rejects, winners.Load())
		require.Equal(t, rows["k"] == 100, published.Rejects == 0)
	}
}

// Race R2: a fold against another program's fenced upsert of the same new key, in both orders: the later one meets a conflict, prepares again, and
// there is one row.
func TestRaceR2FoldAgainstForeignUpsert(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, c := range map[string]struct {
		oursFirst bool
		want      int64
	}{"ours first": {true, theirValue}, "theirs first": {false, 1}} {
		t.Run(name, func(t *testing.T) {
			store := objstore.NewMemory()
			p := newGraph(t, store)
			f, err := plan(ctx, p, []entry{{{testTables[0], "k", 1, "upsert"}}}, 1)
			require.NoError(t, err)
			base, tx, err := foreign{store}.insertAll(ctx, testTables[0], []placed{{op: op{id: "k", value: theirValue}}})
			require.NoError(t, err)
			if !c.oursFirst {
				_, err = base.Commit(ctx, tx, lance.CommitOptions{})
				require.NoError(t, err)
			}
			_, err = p.Publish(ctx, f)
			require.NoError(t, err)
			if c.oursFirst {
				_, err = base.Commit(ctx, tx, lance.CommitOptions{})
				require.ErrorIs(t, err, lance.ErrConflict)
				value := int64(theirValue)
				require.NoError(t, foreign{store}.merge(ctx, testTables[0], "k", &value))
			}
			snap, err := p.Adopt(ctx)
			require.NoError(t, err)
			got, err := content(ctx, store, snap, testTables[0])
			require.NoError(t, err)
			require.Equal(t, map[string]int64{"k": c.want}, got)
		})
	}
}

// Race R3, f3: an append without a filter that comes after ours cannot be kept from making a second row of a key; the next write of the key removes both.
// One that comes before ours is met. What it cannot do is to pass for one of ours, which is refused before anything is recorded.
func TestRaceR3UnfencedAppend(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, oursFirst := range []bool{true, false} {
		store := objstore.NewMemory()
		p := newGraph(t, store)
		log := []entry{{{testTables[0], "k", 1, "upsert"}}, {{testTables[0], "k", 2, "upsert"}}}
		f, err := plan(ctx, p, log, 1)
		require.NoError(t, err)
		if !oursFirst {
			require.NoError(t, foreign{store}.append(ctx, testTables[0], "k", theirValue))
		}
		_, err = p.Publish(ctx, f)
		require.NoError(t, err)
		if oursFirst {
			require.NoError(t, foreign{store}.append(ctx, testTables[0], "k", theirValue))
		}
		newest, err := foreign{store}.open(ctx, testTables[0])
		require.NoError(t, err)
		if oursFirst {
			require.EqualValues(t, 2, newest.Rows(), "the hole that is documented")
		} else {
			require.EqualValues(t, 1, newest.Rows(), "a row that is there before our commit is met and replaced")
		}
		_, err = publishThrough(ctx, p, log, 2)
		require.NoError(t, err)
		got, err := content(ctx, store, p.snap, testTables[0])
		require.NoError(t, err)
		require.Equal(t, map[string]int64{"k": 2}, got)
	}
	store := objstore.NewMemory()
	p := newGraph(t, store)
	f, err := plan(ctx, p, []entry{{{testTables[0], "k", 1, "upsert"}}}, 1)
	require.NoError(t, err)
	update := f.Tables[0].Tx.Op.(*lance.Update)
	f.Tables[0].Tx.Op = &lance.Append{Fragments: update.NewFragments}
	_, err = p.Publish(ctx, f)
	require.ErrorIs(t, err, fence.ErrNotCovered)
	update.Filter = nil
	f.Tables[0].Tx.Op = update
	_, err = p.Publish(ctx, f)
	require.ErrorIs(t, err, fence.ErrNotCovered)
	require.Empty(t, listRecords(t, store))
}

func listRecords(t *testing.T, store objstore.Store) []objstore.Info {
	t.Helper()
	left, err := store.List(context.Background(), heads.Join(testRoot, heads.FoldsPath)+"/", "", 0)
	require.NoError(t, err)
	return left
}

// chain returns the lineage, oldest first, and requires that it is one line without a fork (P2).
func chain(t *testing.T, store objstore.Store) []heads.GraphCommit {
	t.Helper()
	commits, err := heads.Log(context.Background(), store, testRoot, 0)
	require.NoError(t, err)
	for i := range commits[:len(commits)-1] {
		require.Equal(t, commits[i+1].ID, commits[i].Parent)
		require.Equal(t, commits[i+1].Version+1, commits[i].Version)
		require.True(t, commits[i].CreatedAt.After(commits[i+1].CreatedAt))
	}
	require.Empty(t, commits[len(commits)-1].Parent)
	return commits
}

// Race R6: eight publishers of disjoint changes, each owner of a lane of its own, at once: one linear chain of eight commits, no fork.
func TestRaceR6EightDisjointPublishers(t *testing.T) {
	t.Parallel()
	const n = 8
	ctx := context.Background()
	store := objstore.NewMemory()
	_, err := Init(ctx, options(store), InitSpec{Graph: testGraph, Lanes: n})
	require.NoError(t, err)
	before := len(chain(t, store))
	var g sync.WaitGroup
	for lane := range uint32(n) {
		g.Go(func() {
			epoch, err := ClaimLane(ctx, options(store), LaneClaim{Lane: lane, Incarnation: fmt.Sprintf("inc-%d", lane)})
			if err != nil || epoch != 1 {
				t.Errorf("lane %d: epoch %d, %v", lane, epoch, err)
			}
		})
	}
	g.Wait()
	require.Len(t, chain(t, store), before+n)
	s, err := heads.Current(ctx, store, testRoot)
	require.NoError(t, err)
	for lane := range uint32(n) {
		require.EqualValues(t, 1, s.LaneEpoch(lane))
	}
}

// Race R8, report C115: the table was removed and made again at its path while a fold was on its way, or while its folder was dead. Whatever the new
// one's versions are, the fold is not put on it, and the new one is not taken for the old.
func TestRaceR8DelayedWriteAfterRecreation(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, versions := range map[string]int{"lower": 0, "equal": 2, "higher": 6} {
		for _, dies := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/dies=%t", name, dies), func(t *testing.T) {
				store, p, log, f := secondFold(t)
				recreate(t, store, testTables[0], versions)
				if dies {
					var err error
					p, err = Claim(ctx, options(store), "successor")
					require.NoError(t, err)
					_, err = planOn(ctx, p, log, 4, atHead)
					require.Error(t, err, "the head is not there any more")
					_, err = p.Adopt(ctx)
					require.NoError(t, err)
				} else {
					_, err := p.Publish(ctx, f)
					require.NoError(t, err)
					require.ElementsMatch(t, lostRows, rejectRows(t, store, p.snap, testTables[0]))
				}
				_, err := p.Adopt(ctx)
				require.NoError(t, err)
				head, _ := p.snap.Table(testTables[0])
				require.True(t, head.Head.State.Held(), "%s", head.Head.State)
				newest, err := foreign{store}.open(ctx, testTables[0])
				require.NoError(t, err)
				require.EqualValues(t, versions, newest.Rows(), "nothing of ours in their table")
				require.Empty(t, newest.Metadata()[fence.MetaFold])
			})
		}
	}
}

// recreate removes a table and makes another of the same schema at its path, with as many rows, each a version of its own.
func recreate(t *testing.T, store objstore.Store, key string, rows int) {
	t.Helper()
	ctx := context.Background()
	old, err := foreign{store}.open(ctx, key)
	require.NoError(t, err)
	objects, err := store.List(ctx, old.Root()+"/", "", 0)
	require.NoError(t, err)
	for _, o := range objects {
		if !strings.Contains(o.Key, "/data/") { // with those gone too, no one can read the rows of a half committed fold: recovery stops
			require.NoError(t, store.Delete(ctx, o.Key))
		}
	}
	_, err = lance.Create(ctx, store, old.Root(), old.Schema(), lance.CreateOptions{})
	require.NoError(t, err)
	for i := range rows {
		require.NoError(t, foreign{store}.append(ctx, key, fmt.Sprintf("new%d", i), int64(i)))
	}
}

// Race R14, report C121: three rivals in a row take the slot of a publish. Each attempt has the parent of its own moment: one chain, and every state on
// it can be read.
func TestRaceR14LoserReparents(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	store, log := crashGraph(t)
	left := 3
	match := faultstore.Under(heads.Join(testRoot, heads.ManifestPath)+"/_versions/", faultstore.PutIfAbsent)
	var armed atomic.Bool
	p, err := Claim(ctx, options(faultstore.New(store, func(_ context.Context, c faultstore.Call) faultstore.Fault {
		if armed.Load() && match(c) && left > 0 {
			left--
			_, err := ClaimLane(ctx, options(store), LaneClaim{Incarnation: testIncarnation})
			require.NoError(t, err)
		}
		return faultstore.Fault{}
	})), "folder")
	require.NoError(t, err)
	f, err := plan(ctx, p, log, 6)
	require.NoError(t, err)
	armed.Store(true)
	published, err := p.Publish(ctx, f)
	require.NoError(t, err)
	require.Zero(t, left)
	commits := chain(t, store)
	require.Equal(t, published.Commit.ID, commits[0].ID)
	m := newModel()
	m.apply(log, 0, 6)
	for _, c := range commits[:4] {
		snap, err := heads.AtVersion(ctx, store, testRoot, c.Version)
		require.NoError(t, err)
		if c.ID == published.Commit.ID {
			require.NoError(t, m.compare(ctx, store, snap))
			continue
		}
		require.Equal(t, heads.KindLane, c.Kind)
		require.EqualValues(t, 3, snap.Cuts[0].Through)
	}
}

// Race R15, P4: a reader at every step of a publish sees all of the old state or all of the new one, and one that has resolved before goes on reading
// what it resolved.
// report C165.
func TestRaceR15ReaderAcrossAPublish(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	store, log := crashGraph(t)
	p, err := Claim(ctx, options(store), "folder")
	require.NoError(t, err)
	f, err := plan(ctx, p, log, 6)
	require.NoError(t, err)
	old, then := newModel(), newModel()
	old.apply(log, 0, 3)
	then.apply(log, 0, 6)
	early, err := heads.Resolve(ctx, store, testRoot)
	require.NoError(t, err)
	var mu sync.Mutex
	steps := 0
	p.o.Step = func(s Step) {
		mu.Lock()
		defer mu.Unlock()
		steps++
		want := old
		if s == "publish.after" {
			want = then
		}
		snap, err := heads.Resolve(ctx, store, testRoot)
		require.NoError(t, err)
		require.NoError(t, want.compare(ctx, store, snap), "%s", s)
		require.NoError(t, old.compare(ctx, store, early), "%s", s)
	}
	_, err = p.Publish(ctx, f)
	require.NoError(t, err)
	require.Greater(t, steps, 10)
	require.NoError(t, old.compare(ctx, store, early))
}

// Race R17, c5: a writer that knew an old version puts the manifest into a slot that pruning has emptied. The put succeeds, is nobody's version, and is
// noticed by the look at the boundary; the change lands on the newest version.
func TestRaceR17ManifestPutIntoAPrunedSlot(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	store := objstore.NewMemory()
	newGraph(t, store)
	o := options(store)
	o.Retention = Retention{MinVersions: 5, MaxVersions: 5}
	p, err := Claim(ctx, o, "folder")
	require.NoError(t, err)
	stale := p.snap
	nothing := func(*heads.Snapshot, *heads.GraphCommit) error { return nil }
	for p.versions.through <= stale.Version {
		require.NoError(t, p.alter(ctx, heads.KindAlter, nothing))
		require.NoError(t, p.Tidy(ctx))
	}
	late, err := newManifest(options(store))
	require.NoError(t, err)
	id, err := late.mintID()
	require.NoError(t, err)
	s, err := late.commit(ctx, stale, change{id: id, kind: heads.KindAlter, actor: "late", apply: nothing})
	require.NoError(t, err)
	require.Equal(t, p.snap.Version+1, s.Version)
	require.Equal(t, p.snap.Commit.ID, s.Commit.Parent)
	now, err := heads.Resolve(ctx, store, testRoot)
	require.NoError(t, err)
	require.Equal(t, id, now.Commit.ID)
	_, err = p.Refresh(ctx)
	require.NoError(t, err)
}

// Race R20: every folder has a clock of its own, hours and days behind or ahead of the others. Nothing is ordered by them: the lineage's times rise, and
// every entry is folded once.
func TestRaceR20ClockSkew(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	store := objstore.NewMemory()
	newGraph(t, store)
	log := smallLog()
	now := time.Now()
	for i, skew := range []time.Duration{0, -time.Hour, 48 * time.Hour, -1000 * time.Hour, time.Minute, -24 * time.Hour, 0} {
		o := options(store)
		o.Clock = func() time.Time { return now.Add(skew) }
		p, err := Claim(ctx, o, fmt.Sprintf("folder-%d", i))
		require.NoError(t, err)
		_, err = publishThrough(ctx, p, log, uint64(i+1))
		require.NoError(t, err)
		require.NoError(t, p.Tidy(ctx))
	}
	require.NoError(t, wholeModel(log).check(ctx, store, log))
	chain(t, store)
	require.NoError(t, resumeOn(ctx, store, log))
}
