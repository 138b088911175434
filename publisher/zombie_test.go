package publisher

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/fence"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/faultstore"
)

// holdAt makes a store that holds its k-th write up until release is closed. held is closed when it is reached.
func holdAt(inner objstore.Store, k int) (store objstore.Store, held, release chan struct{}) {
	return holdCall(inner, k, faultstore.Ops(faultstore.Writes()...))
}

// holdCall is holdAt for the k-th of the calls that count.
func holdCall(inner objstore.Store, k int, counts func(faultstore.Call) bool) (store objstore.Store, held, release chan struct{}) {
	held, release = make(chan struct{}), make(chan struct{})
	var n atomic.Int64
	return faultstore.New(inner, func(_ context.Context, c faultstore.Call) faultstore.Fault {
		if counts(c) && n.Add(1) == int64(k) {
			close(held)
			<-release
		}
		return faultstore.Fault{}
	}), held, release
}

// TestRaceR5StaleFolderAtEveryWrite stops a folder before each of its writes in turn, lets a successor take over and fold everything, and
// lets the stale one go on: it does no harm, whatever it was about to write, and it learns that it is fenced (X2; i1, i2, i5 of the protocol notes,
// C5, R4, R5).
func TestRaceR5StaleFolderAtEveryWrite(t *testing.T) {
	ctx := context.Background()
	first, log := crashGraph(t)
	want := wholeModel(log)
	fenced := 0
	for k := 1; ; k++ {
		store := clone(t, first)
		slow, held, release := holdAt(store, k)
		done := make(chan error, 1)
		go func() { done <- resumeOn(ctx, slow, log) }()
		select {
		case <-held:
		case err := <-done:
			require.NoError(t, err)
			require.Greater(t, fenced, 20, "most stops must end in a refusal")
			return
		}
		require.NoError(t, resumeOn(ctx, store, log), "successor, stale folder stopped at write %d", k)
		before, err := heads.Resolve(ctx, store, testRoot)
		require.NoError(t, err)
		close(release)
		err = <-done
		require.NoError(t, want.check(ctx, store, log), "stale folder stopped at write %d", k)
		after, err2 := heads.Resolve(ctx, store, testRoot)
		require.NoError(t, err2)
		if err != nil {
			fenced++
			require.ErrorIs(t, err, ErrFenced, "stale folder stopped at write %d", k)
			require.Equal(t, before.Fold, after.Fold)
		}
	}
}

// TestRaceR5StaleClaimAtEveryCall stops a folder that claims, with a fold to complete, before each of its calls of the store in turn, reads too; a successor
// completes that fold, folds on until its record is gone, and the stale one goes on: what it misses then is no damage, it is fenced.
func TestRaceR5StaleClaimAtEveryCall(t *testing.T) {
	ctx := context.Background()
	begun, log := begunGraph(t)
	for k := 1; ; k++ {
		store := clone(t, begun)
		slow, held, release := holdCall(store, k, func(faultstore.Call) bool { return true })
		done, standing := claimUntil(ctx, t, slow, held)
		if !standing {
			require.Greater(t, k, 20)
			return
		}
		p, err := Claim(ctx, options(store), "successor")
		require.NoError(t, err)
		require.NoError(t, foldRest(ctx, p, log))
		require.NoError(t, p.Tidy(ctx))
		close(release)
		if err := <-done; err != nil {
			require.ErrorIs(t, err, ErrFenced, "stopped at call %d", k)
		}
		require.NoError(t, wholeModel(log).check(ctx, store, log), "stopped at call %d", k)
	}
}

// claimUntil claims on a store until the claim stands still, or has ended well before; done gets its error.
func claimUntil(ctx context.Context, t *testing.T, slow objstore.Store, held <-chan struct{}) (done chan error, standing bool) {
	done = make(chan error, 1)
	go func() {
		_, err := Claim(ctx, options(slow), "stale")
		done <- err
	}()
	select {
	case <-held:
		return done, true
	case err := <-done:
		require.NoError(t, err)
		return done, false
	}
}

// begunGraph is a graph whose folder died before the publish of a fold that its tables hold.
func begunGraph(t *testing.T) (objstore.Store, []entry) {
	ctx := context.Background()
	first, log := crashGraph(t)
	for k := 1; ; k++ {
		store := clone(t, first)
		cut, hit := cutOff(store, k, false)
		_ = resumeOn(ctx, cut, log)
		require.True(t, hit(), "no death leaves a fold to complete")
		if p, err := Claim(ctx, options(clone(t, store)), "look"); err == nil && p.Recovered() != nil {
			return store, log
		}
	}
}

// TestStaleFolderOnABarredBase: a stale folder whose plan stands on versions that carry its successor's barrier meets no rival at its first put, so nobody
// asks the heads: the epoch in the table's own metadata has to stop it (X2).
func TestStaleFolderOnABarredBase(t *testing.T) {
	ctx := context.Background()
	store, log := crashGraph(t)
	stale, err := Claim(ctx, options(store), "stale")
	require.NoError(t, err)
	successor, err := Claim(ctx, options(store), "successor")
	require.NoError(t, err)
	f, err := plan(ctx, successor, log, 6)
	require.NoError(t, err)
	_, err = stale.Publish(ctx, f)
	require.ErrorIs(t, err, ErrFenced)
	for _, key := range testTables {
		table, err := foreign{store}.open(ctx, key)
		require.NoError(t, err)
		require.NotEqual(t, recordName(f.Fold, stale.epoch), table.Metadata()[fence.MetaFold])
	}
	require.NoError(t, resumeOn(ctx, store, log))
	require.NoError(t, wholeModel(log).check(ctx, store, log))
}

// TestStaleBarrierDoesNotLowerTheEpoch stops a claim before each of its writes; a later claim finishes; the stale one must not put its barriers over
// the higher ones (i7).
func TestStaleBarrierDoesNotLowerTheEpoch(t *testing.T) {
	ctx := context.Background()
	first, log := crashGraph(t)
	for k := 1; ; k++ {
		store := clone(t, first)
		slow, held, release := holdAt(store, k)
		done, standing := claimUntil(ctx, t, slow, held)
		if !standing {
			return
		}
		p, err := Claim(ctx, options(store), "successor")
		require.NoError(t, err)
		close(release)
		err = <-done
		_, mine := p.Refresh(ctx)
		if err == nil { // its claim came last: then the successor is the stale one
			require.ErrorIs(t, mine, ErrFenced)
			continue
		}
		require.ErrorIs(t, err, ErrFenced)
		require.NoError(t, mine)
		for _, through := range []uint64{6, 7} {
			_, err = publishThrough(ctx, p, log, through)
			require.NoError(t, err)
		}
	}
}

// TestRaceR4RacingClaims lets many processes claim and fold at once, each going on until all is folded: one linear chain, every entry once (R4, R6).
func TestRaceR4RacingClaims(t *testing.T) {
	ctx := context.Background()
	store, log := crashGraph(t)
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			for {
				err := resumeOn(ctx, store, log)
				if err == nil {
					return
				}
				if !errors.Is(err, ErrFenced) && !errors.Is(err, ErrConflict) {
					t.Errorf("a racing folder ended with %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, wholeModel(log).check(ctx, store, log))
	commits, err := heads.Log(ctx, store, testRoot, 0)
	require.NoError(t, err)
	folds := 0
	for i, c := range commits {
		if c.Kind == heads.KindFold {
			folds++
		}
		if i+1 < len(commits) {
			require.Equal(t, commits[i+1].ID, c.Parent)
			require.Equal(t, commits[i+1].Version+1, c.Version)
		}
	}
	require.Equal(t, 3, folds)
}
