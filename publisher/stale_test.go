package publisher

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
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

// TestCrashC12ReadBackFailsToo: the put of the heads lands, its answer is lost, and so is every answer to reading the slot back. The graph commit is found
// by its id in the newest state and made once (X3, report C126).
func TestCrashC12ReadBackFailsToo(t *testing.T) {
	ctx := context.Background()
	store, log := crashGraph(t)
	put := faultstore.Under(heads.Join(testRoot, heads.ManifestPath)+"/_versions/", faultstore.PutIfAbsent)
	slot := ""
	const readBacks = 4 // package lance asks so often
	armed, lost, unread := false, false, 0
	faulty := faultstore.New(store, func(_ context.Context, c faultstore.Call) faultstore.Fault {
		switch {
		case armed && !lost && put(c):
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
	p.o.Step = func(s Step) { armed = armed || s == "publish.before" }
	published, err := p.Publish(ctx, f)
	if err != nil { // the look at the newest state failed as well: a claim finds out
		require.True(t, errors.Is(err, ErrUnknownOutcome) || errors.Is(err, lance.ErrUnknownOutcome), "%v", err)
		p, err = Claim(ctx, options(store), "again")
		require.NoError(t, err)
	} else {
		require.Equal(t, f.Fold, published.Commit.Fold)
	}
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
