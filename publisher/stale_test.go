package publisher

import (
	"context"
	"math"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/fence"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/faultstore"
)

// TestStalePublishUnderANewEpoch: a folder that stands before its publish goes on at the moment at which its successor has the epoch and has done nothing
// else yet. Cuts and folds are as the stale one knows them, so only the epoch can stop it (X2, i2).
func TestStalePublishUnderANewEpoch(t *testing.T) {
	ctx := context.Background()
	store, log := crashGraph(t)
	stale, err := Claim(ctx, options(store), "stale")
	require.NoError(t, err)
	f, err := plan(ctx, stale, log, 6)
	require.NoError(t, err)
	reached, goOn, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	stale.o.Step = func(s Step) {
		if s == "publish.before" {
			close(reached)
			<-goOn
		}
	}
	go func() {
		_, err := stale.Publish(ctx, f)
		ended <- err
	}()
	<-reached
	o := options(store)
	o.Step = func(s Step) {
		if s != "claim.after" {
			return
		}
		close(goOn)
		require.ErrorIs(t, <-ended, ErrFenced)
		now, err := heads.Resolve(ctx, store, testRoot)
		require.NoError(t, err)
		require.EqualValues(t, 1, now.Fold, "the stale folder has published")
	}
	successor, err := Claim(ctx, o, "successor")
	require.NoError(t, err)
	require.NotNil(t, successor.Recovered())
	require.NoError(t, resumeOn(ctx, store, log))
	require.NoError(t, wholeModel(log).check(ctx, store, log))
}

// TestStaleFolderWhosePublishFails: whatever a stale folder meets in a publish, it is told that it is fenced. Told anything else it would claim again, and take the
// graph from its successor (X2).
func TestStaleFolderWhosePublishFails(t *testing.T) {
	ctx := context.Background()
	store, log := crashGraph(t)
	stale, err := Claim(ctx, options(store), "stale")
	require.NoError(t, err)
	f, err := plan(ctx, stale, log, 6)
	require.NoError(t, err)
	stale.o.Step = func(s Step) {
		if s == "record.before" {
			_, err := Claim(ctx, options(store), "successor")
			require.NoError(t, err)
		}
	}
	record := faultstore.Under(heads.Join(testRoot, heads.FoldsPath), faultstore.PutIfAbsent)
	stale.o.Store = faultstore.New(store, func(_ context.Context, c faultstore.Call) (f faultstore.Fault) {
		if record(c) {
			f.Before = faultstore.ErrInjected
		}
		return f
	})
	_, err = stale.Publish(ctx, f)
	require.ErrorIs(t, err, ErrFenced)
	_, err = stale.Refresh(ctx)
	require.ErrorIs(t, err, ErrFenced)
}

// TestCrashC12ReadBackFailsToo: the put of the heads lands, its answer is lost, and so is every answer to reading the slot back. The graph commit is found
// by its id in the newest state and made once (X3, report C126).
func TestCrashC12ReadBackFailsToo(t *testing.T) {
	ctx := context.Background()
	store, log := crashGraph(t)
	put := faultstore.Under(heads.Join(testRoot, heads.ManifestPath)+"/_versions/", faultstore.PutIfAbsent)
	slot := ""
	const readBacks = 4 // package lance asks so often
	var armed atomic.Bool
	lost, unread := false, 0 // behind armed only the publish makes calls
	faulty := faultstore.New(store, func(_ context.Context, c faultstore.Call) faultstore.Fault {
		switch {
		case !armed.Load():
		case !lost && put(c):
			lost, slot = true, c.Key
			return faultstore.Fault{After: objstore.ErrUnknownOutcome}
		case lost && unread < readBacks && c.Key == slot:
			unread++
			return faultstore.Fault{Before: faultstore.ErrInjected}
		}
		return faultstore.Fault{}
	})
	p, err := Claim(ctx, options(faulty), "folder")
	require.NoError(t, err)
	f, err := plan(ctx, p, log, 6)
	require.NoError(t, err)
	p.o.Step = func(s Step) {
		if s == "publish.before" {
			armed.Store(true)
		}
	}
	published, err := p.Publish(ctx, f)
	require.NoError(t, err)
	require.Equal(t, f.Fold, published.Commit.Fold)
	require.True(t, lost)
	require.Equal(t, readBacks, unread)
	require.Equal(t, f.Fold, p.snap.Fold)
	folds := 0
	for _, c := range chain(t, store) {
		if c.Fold == f.Fold {
			folds++
		}
	}
	require.Equal(t, 1, folds)
	require.NoError(t, resumeOn(ctx, store, log))
	require.NoError(t, wholeModel(log).check(ctx, store, log))
}

// TestDecisionStandsWhenTheTableRecovers: a table was given up because its store failed for it, the dead letters have its rows, and the folder dies before
// the publish. The table would take the fold by now; the successor does not put it there, or the rows would be in both (F4, 1.4 of the protocol notes).
func TestDecisionStandsWhenTheTableRecovers(t *testing.T) {
	ctx := context.Background()
	store, p, _, f := secondFold(t)
	failCommits(ctx, t, p, f, store, testTables[0], math.MaxInt)
	dieBeforePublish(ctx, t, p, f)
	successor, err := Claim(ctx, options(store), "successor")
	require.NoError(t, err)
	require.Equal(t, f.Fold, successor.Recovered().Commit.Fold)
	require.ElementsMatch(t, lostRows, rejectRows(t, store, successor.snap, testTables[0]))
	table, err := foreign{store}.open(ctx, testTables[0])
	require.NoError(t, err)
	require.NotEqual(t, recordName(f.Fold, p.epoch), table.Metadata()[fence.MetaFold])
}
