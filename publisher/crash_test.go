package publisher

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/faultstore"
)

// cutOff makes a store die at its k-th write (from 1): before it, or after it was done. From then on every call fails, as for a process
// that is gone. hit tells whether there was a k-th write.
func cutOff(inner objstore.Store, k int, after bool) (store objstore.Store, hit func() bool) {
	var n atomic.Int64
	var dead atomic.Bool
	isWrite := faultstore.Ops(faultstore.Writes()...)
	return faultstore.New(inner, func(_ context.Context, c faultstore.Call) faultstore.Fault {
		if dead.Load() {
			return faultstore.Fault{Before: errCrash}
		}
		if !isWrite(c) || n.Add(1) != int64(k) {
			return faultstore.Fault{}
		}
		dead.Store(true)
		if after {
			return faultstore.Fault{After: errCrash}
		}
		return faultstore.Fault{Before: errCrash}
	}), dead.Load
}

// crashGraph is a graph with one fold published and the log of crashFolds.
func crashGraph(t *testing.T) (objstore.Store, []entry) {
	store := objstore.NewMemory()
	p := newGraph(t, store)
	log := smallLog()
	_, err := publishThrough(context.Background(), p, log, 3)
	require.NoError(t, err)
	return store, log
}

// resumeOn is what a process does: claim, then fold what is left. It counts the folds that a claim completed.
func resumeOn(ctx context.Context, store objstore.Store, log []entry, recovered ...*int) error {
	p, err := Claim(ctx, options(store), "successor")
	if err != nil {
		return err
	}
	if p.Recovered() != nil {
		for _, n := range recovered {
			*n++
		}
	}
	return foldRest(ctx, p, log)
}

// foldRest folds what is left.
func foldRest(ctx context.Context, p *Publisher, log []entry) error {
	for _, through := range []uint64{6, 7} {
		cut, _ := p.snap.Cut(0, testIncarnation)
		if cut.Through >= through {
			continue
		}
		if _, err := publishThrough(ctx, p, log, through); err != nil {
			return err
		}
	}
	return nil
}

func wholeModel(log []entry) *model {
	m := newModel()
	m.apply(log, 0, uint64(len(log)))
	return m
}

func clone(t *testing.T, from objstore.Store) objstore.Store {
	ctx := context.Background()
	to := objstore.NewMemory()
	infos, err := from.List(ctx, "", "", 0)
	require.NoError(t, err)
	for _, i := range infos {
		data, err := from.Get(ctx, i.Key)
		require.NoError(t, err)
		require.NoError(t, to.Put(ctx, i.Key, data))
	}
	return to
}

// TestCrashAtEveryWrite kills the folder at every write of its life, before and after, and lets a successor finish: every entry is folded
// exactly once, whatever was on disk (C8-C13, C15; F2, F5, P2).
func TestCrashAtEveryWrite(t *testing.T) {
	ctx := context.Background()
	first, log := crashGraph(t)
	want := wholeModel(log)
	recovered := 0
	for _, after := range []bool{false, true} {
		for k := 1; ; k++ {
			store := clone(t, first)
			cut, hit := cutOff(store, k, after)
			err := resumeOn(ctx, cut, log)
			if !hit() {
				require.NoError(t, err)
				require.Greater(t, k, 30, "the loop must have met the writes of a claim and two folds")
				break
			}
			require.NoError(t, resumeOn(ctx, store, log, &recovered), "after a crash at write %d (after %t)", k, after)
			require.NoError(t, want.check(ctx, store, log), "after a crash at write %d (after %t)", k, after)
		}
	}
	require.Greater(t, recovered, 10, "some crashes must leave a fold to complete")
}

// TestCrashC16InRecovery kills the successor at every write of its claim, for every point at which the first folder may have died, and lets a
// third process finish (C16). A claim after that finds nothing to do.
func TestCrashC16InRecovery(t *testing.T) {
	ctx := context.Background()
	first, log := crashGraph(t)
	want := wholeModel(log)
	for k := 1; ; k += recoveryStride {
		broken := clone(t, first)
		cut, hit := cutOff(broken, k, k%4 == 1)
		_ = resumeOn(ctx, cut, log)
		if !hit() {
			break
		}
		for j := 1; ; j++ {
			store := clone(t, broken)
			cut, hit := cutOff(store, j, (k/2+j)%2 == 0)
			p, err := Claim(ctx, options(cut), "second")
			if !hit() {
				require.NoError(t, err)
				_ = p
				break
			}
			name := fmt.Sprintf("first died at write %d, second at write %d of its claim", k, j)
			require.NoError(t, resumeOn(ctx, store, log), name)
			require.NoError(t, want.check(ctx, store, log), name)
			before, err := heads.Resolve(ctx, store, testRoot)
			require.NoError(t, err)
			again, err := Claim(ctx, options(store), "fourth")
			require.NoError(t, err)
			require.Nil(t, again.Recovered(), name)
			require.Equal(t, before.Fold, again.snap.Fold)
		}
	}
}

// TestCrashInInit kills initialisation at every write: repeated, it ends in the same graph.
func TestCrashInInit(t *testing.T) {
	ctx := context.Background()
	for _, after := range []bool{false, true} {
		for k := 1; ; k++ {
			store := objstore.NewMemory()
			cut, hit := cutOff(store, k, after)
			_, err := Init(ctx, options(cut), InitSpec{Graph: testGraph})
			if !hit() {
				require.NoError(t, err)
				break
			}
			s, err := Init(ctx, options(store), InitSpec{Graph: testGraph})
			require.NoError(t, err)
			require.Equal(t, testGraph, s.Graph)
			_, err = Init(ctx, options(store), InitSpec{Graph: "other"})
			require.ErrorIs(t, err, ErrConflict)
		}
	}
}

// TestCrashC20InCreateTable kills table creation at every write: repeated by a successor, it ends in one registered table.
func TestCrashC20InCreateTable(t *testing.T) {
	ctx := context.Background()
	for _, after := range []bool{false, true} {
		for k := 1; ; k++ {
			store := objstore.NewMemory()
			newGraph(t, store)
			cut, hit := cutOff(store, k, after)
			create := func(s objstore.Store) error {
				p, err := Claim(ctx, options(s), "folder")
				if err != nil {
					return err
				}
				_, err = p.CreateTable(ctx, tableSpec("node:New"))
				return err
			}
			err := create(cut)
			if !hit() {
				require.NoError(t, err)
				break
			}
			require.NoError(t, create(store))
			s, err := heads.Resolve(ctx, store, testRoot)
			require.NoError(t, err)
			_, ok := s.Table("node:New")
			require.True(t, ok)
		}
	}
}

// TestCrashC12LostAnswers loses the answer of every write in turn: the fold is settled by reading back and published once (X3, C12). A lost
// answer of a manifest or a record does not even end the publish.
func TestCrashC12LostAnswers(t *testing.T) {
	ctx := context.Background()
	first, log := crashGraph(t)
	want := wholeModel(log)
	for k := 1; ; k++ {
		store := clone(t, first)
		var lost atomic.Value
		writes := faultstore.Ops(faultstore.Writes()...)
		lose := faultstore.Lose(k, writes)
		faulty := faultstore.New(store, func(ctx context.Context, c faultstore.Call) faultstore.Fault {
			f := lose(ctx, c)
			if f.After != nil {
				lost.Store(string(c.Op))
			}
			return f
		})
		err := resumeOn(ctx, faulty, log)
		op, _ := lost.Load().(string)
		if op == "" {
			require.NoError(t, err)
			break
		}
		if op == string(faultstore.PutIfAbsent) {
			require.NoError(t, err, "write %d", k)
		}
		if err != nil {
			require.NoError(t, resumeOn(ctx, store, log), "lost answer of write %d: %v", k, err)
		}
		require.NoError(t, want.check(ctx, store, log), "lost answer of write %d", k)
	}
}
