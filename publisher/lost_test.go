package publisher

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/faultstore"
)

// committing is a command that commits something, beside claims and folds.
type committing struct {
	name string
	// prepare brings the graph to where the command has something to do.
	prepare func(ctx context.Context, p *Publisher) error
	// run does it, as the folder or as another program on the same store.
	run func(ctx context.Context, p *Publisher, f foreign) error
	// kind of the graph commit that it makes; empty is none.
	kind string
	// writes are how many there are at least; zero is one.
	writes int
	// table has one version more then; empty is none.
	table string
}

func nothing(context.Context, *Publisher) error { return nil }

// held suspends the first table.
func held(ctx context.Context, p *Publisher) error {
	t, _ := p.snap.Table(testTables[0])
	_, err := p.Suspend(ctx, map[heads.TableID]error{t.ID: errGivenUp})
	return err
}

// foreignly is an operation of package lance by a program that is no folder.
func foreignly(operation string) committing {
	return committing{name: operation, prepare: nothing, table: testTables[0], run: func(ctx context.Context, _ *Publisher, f foreign) error {
		return f.do(ctx, testTables[0], operation)
	}}
}

// twice prepares for another command with two runs of this one.
func (c committing) twice(ctx context.Context, p *Publisher) error {
	return errors.Join(c.run(ctx, p, foreign{p.o.Store}), c.run(ctx, p, foreign{p.o.Store}))
}

// foreignUnenrolled makes a table that the graph does not know.
func foreignUnenrolled(ctx context.Context, p *Publisher) error {
	schema, err := tableSpec("node:Theirs").Schema()
	if err != nil {
		return err
	}
	_, err = lance.Create(ctx, p.o.Store, heads.Join(testRoot, "theirs.lance"), schema, lance.CreateOptions{})
	return err
}

// committingCommands are all that TestCrashC12LostAnswers (claim, barrier, fold, dead letters, publish) and package fold's TestResumeSurvivesEveryCrash
// (replay) leave out.
var committingCommands = []committing{
	{name: "claim a lane", kind: heads.KindLane, prepare: nothing, run: func(ctx context.Context, p *Publisher, _ foreign) error {
		_, err := ClaimLane(ctx, p.o, LaneClaim{Incarnation: testIncarnation})
		return err
	}},
	{name: "begin a lane change", kind: heads.KindLanes, prepare: nothing, run: func(ctx context.Context, p *Publisher, _ foreign) error { return changing(ctx, p) }},
	{name: "seal a lane", kind: heads.KindSeal, prepare: changing, run: func(ctx context.Context, p *Publisher, _ foreign) error { return sealed(ctx, p) }},
	{name: "make a lane change", kind: heads.KindLanes, prepare: func(ctx context.Context, p *Publisher) error {
		return errors.Join(changing(ctx, p), sealed(ctx, p))
	}, run: func(ctx context.Context, p *Publisher, _ foreign) error {
		s, err := p.Refresh(ctx)
		if err == nil && s.LaneTarget > 0 { // not done before
			_, err = p.FinishLanes(ctx)
		}
		return err
	}},
	{name: "create a table", kind: heads.KindCreate, prepare: nothing, run: func(ctx context.Context, p *Publisher, _ foreign) error {
		_, err := p.CreateTable(ctx, tableSpec("node:New"))
		return err
	}},
	{name: "adopt", kind: heads.KindAdopt, prepare: func(ctx context.Context, p *Publisher) error {
		return foreign{p.o.Store}.append(ctx, testTables[0], "theirs", theirValue)
	}, run: func(ctx context.Context, p *Publisher, _ foreign) error { _, err := p.Adopt(ctx); return err }},
	{name: "compact at its head", kind: heads.KindCompact, writes: 4, prepare: func(ctx context.Context, p *Publisher) error {
		_, err := p.Adopt(ctx)
		return errors.Join(foreignly("append another key").twice(ctx, p), err)
	}, run: func(ctx context.Context, p *Publisher, _ foreign) error {
		if _, err := p.Adopt(ctx); err != nil {
			return err
		}
		_, err := p.Compact(ctx, testTables[0], nil, lance.CompactOptions{MinFragments: 2})
		return err
	}},
	{name: "suspend", kind: heads.KindSuspend, prepare: nothing, run: func(ctx context.Context, p *Publisher, _ foreign) error { return held(ctx, p) }},
	{name: "pause", kind: heads.KindPause, prepare: nothing, run: func(ctx context.Context, p *Publisher, _ foreign) error {
		_, err := p.Pause(ctx, testTables[0], "their load", pauseEnd)
		return err
	}},
	{name: "resume", kind: heads.KindResume, prepare: held, run: func(ctx context.Context, p *Publisher, _ foreign) error {
		_, err := p.Resume(ctx, testTables[0])
		return err
	}},
	{name: "move the history and prune", writes: 7, prepare: manyGraphCommits, run: func(ctx context.Context, p *Publisher, _ foreign) error {
		return errors.Join(p.Tidy(ctx), nextGraphCommit(ctx, p), p.Tidy(ctx)) // the commit between lets go of what the first found old
	}},
	{name: "enrol", kind: heads.KindCreate, prepare: foreignUnenrolled, run: func(ctx context.Context, p *Publisher, _ foreign) error {
		_, err := p.EnrolTable(ctx, EnrolSpec{Path: "theirs.lance", TableSpec: TableSpec{Key: "node:Theirs"}})
		return err
	}},
	{name: "compact", table: testTables[0], prepare: foreignly("append another key").twice, run: foreignly("compact").run},
	foreignly("add a column"), foreignly("drop a column"), foreignly("rename a column"), foreignly("change metadata"),
	foreignly("overwrite"), foreignly("restore"), foreignly("merge another key"), foreignly("append another key"),
}

// changing begins a change of the lane count, sealed seals the test's lane where it is folded to.
func changing(ctx context.Context, p *Publisher) error {
	_, err := p.ChangeLanes(ctx, 2)
	return err
}

func sealed(ctx context.Context, p *Publisher) error {
	cut, _ := p.snap.Cut(0, testIncarnation)
	return sealAt(ctx, p, cut.Through)
}

var pauseEnd = time.Now().Add(time.Hour)

// manyGraphCommits leaves a journal that is due to be moved, and versions that are due to go.
func manyGraphCommits(ctx context.Context, p *Publisher) error {
	for range 2 * journalKeep {
		if err := nextGraphCommit(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// nextGraphCommit makes one that changes nothing.
func nextGraphCommit(ctx context.Context, p *Publisher) error {
	return p.alter(ctx, heads.KindAlter, func(*heads.Snapshot, *heads.GraphCommit) error { return nil })
}

// Report C117, crash C12, X3: the answer to each write of each committing command is lost in turn. A put-if-absent is settled by reading back, so that the
// command does not even notice; whatever else is lost, the command done again leaves one effect; and no file is gone that a version names.
func TestReportC117LostAnswersOfEveryCommand(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	first, _ := crashGraph(t)
	for _, c := range committingCommands {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			prepared := clone(t, first)
			p, err := Claim(ctx, lostOptions(prepared), "folder")
			require.NoError(t, err)
			require.NoError(t, c.prepare(ctx, p))
			k := 1
			for c.loseAnswer(t, prepared, k) {
				k++
			}
			require.GreaterOrEqual(t, k-1, max(c.writes, 1), "it writes")
		})
	}
}

// lostOptions keep few versions, so that there is something to prune.
func lostOptions(store objstore.Store) Options {
	o := options(store)
	o.Retention = Retention{MinVersions: 5, MaxVersions: 5}
	return o
}

// loseAnswer runs the command and loses the answer to its k-th write; false when it makes fewer.
func (c committing) loseAnswer(t *testing.T, prepared objstore.Store, k int) (met bool) {
	ctx := context.Background()
	store := clone(t, prepared)
	var armed atomic.Bool
	var lost atomic.Value
	lose := faultstore.Lose(k, faultstore.Ops(faultstore.Writes()...))
	faulty := faultstore.New(store, func(ctx context.Context, call faultstore.Call) (f faultstore.Fault) {
		if armed.Load() {
			if f = lose(ctx, call); f.After != nil {
				lost.Store(call)
			}
		}
		return f
	})
	p, err := Claim(ctx, lostOptions(faulty), "folder")
	require.NoError(t, err)
	commits, version := c.effects(t, store)
	armed.Store(true)
	err = c.run(ctx, p, foreign{faulty})
	armed.Store(false)
	call, met := lost.Load().(faultstore.Call)
	if !met || call.Op == faultstore.PutIfAbsent {
		require.NoError(t, err, "write %d: %v", k, call)
	}
	if err != nil {
		if c.kind == "" {
			_, landed := c.effects(t, store)
			require.Equal(t, version, landed, "write %d: %v", k, call)
		}
		successor, claimErr := p, error(nil)
		if c.table == "" {
			successor, claimErr = Claim(ctx, lostOptions(store), "successor")
		}
		require.NoError(t, claimErr)
		require.NoError(t, c.run(ctx, successor, foreign{store}), "write %d: %v, after %v", k, call, err)
	}
	nowCommits, nowVersion := c.effects(t, store)
	if c.kind != "" {
		require.Equal(t, commits+1, nowCommits, "write %d: %v", k, call)
	}
	if c.table != "" {
		require.Equal(t, version+1, nowVersion, "write %d: %v", k, call)
	}
	requireFiles(t, store)
	return met
}

// effects are how many graph commits of the command's kind there are, and the newest version of its table.
func (c committing) effects(t *testing.T, store objstore.Store) (commits int, version uint64) {
	t.Helper()
	for _, g := range chain(t, store) {
		if g.Kind == c.kind {
			commits++
		}
	}
	if c.table != "" {
		newest, err := foreign{store}.open(context.Background(), c.table)
		require.NoError(t, err)
		version = newest.Version()
	}
	return commits, version
}

// requireFiles requires every file that the heads, the history, or the head or newest version of a table names.
func requireFiles(t *testing.T, store objstore.Store) {
	t.Helper()
	ctx := context.Background()
	snap, err := heads.Resolve(ctx, store, testRoot)
	require.NoError(t, err)
	check := func(table *lance.Table, err error) {
		t.Helper()
		require.NoError(t, err)
		require.NoError(t, checkReadable(ctx, store, table))
	}
	check(snap.Manifest(), nil)
	check(openHistory(t, store), nil)
	for _, table := range snap.Tables {
		check(snap.OpenTable(ctx, store, table.Key))
		check(foreign{store}.at(ctx, table.Path))
	}
}
