package publisher

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/objstore"
)

// lineage is a graph whose folders die at some object put and are followed by others, with readers in between.
type lineage struct {
	store objstore.Store
	now   *atomic.Int64 // nanoseconds; barriers ask the clock at once
	log   []entry
	r     Retention
	p     *Publisher
	// journal is every graph commit that a reader ever saw, by version.
	journal map[uint64]heads.GraphCommit
}

// claim makes a folder that dies at its k-th write, before it or after it was done; never with k = 0.
func (c *lineage) claim(k int, after bool) error {
	o := options(c.store)
	if k > 0 {
		o.Store, _ = cutOff(c.store, k, after)
	}
	o.Clock = func() time.Time { return time.Unix(0, c.now.Add(int64(time.Millisecond))) }
	o.Retention = c.r
	p, err := Claim(context.Background(), o, fmt.Sprint("folder of ", k))
	if err == nil {
		c.p = p
	}
	return err
}

// work publishes until it dies or n folds are there.
func (c *lineage) work(n int) error {
	ctx := context.Background()
	for range n {
		s, err := c.p.Refresh(ctx)
		if err != nil {
			return err
		}
		cut, _ := s.Cut(0, testIncarnation)
		for uint64(len(c.log)) <= cut.Through {
			c.log = append(c.log, entry{{testTables[len(c.log)%3], "a", int64(len(c.log)), "upsert"}})
		}
		if _, err := publishThrough(ctx, c.p, c.log, cut.Through+1); err != nil {
			return err
		}
		if err := c.p.Tidy(ctx); err != nil {
			return err
		}
	}
	return nil
}

// read takes the place of a reader at any moment: the newest state is whole, history and hot tail are one chain without gap or duplicate that agrees
// with all that was ever seen of it, and each old state is whole or a typed error.
func (c *lineage) read(version uint64) error {
	ctx := context.Background()
	s, err := heads.Resolve(ctx, c.store, testRoot)
	if err != nil {
		return err
	}
	for _, t := range s.Tables {
		if _, err := s.OpenTable(ctx, c.store, t.Key); err != nil {
			return fmt.Errorf("table %q: %w", t.Key, err)
		}
	}
	commits, err := heads.Log(ctx, c.store, testRoot, 0)
	if err != nil {
		return err
	}
	if len(commits) != int(s.Version-1) {
		return fmt.Errorf("%d graph commits up to version %d", len(commits), s.Version)
	}
	for i, g := range commits {
		seen, known := c.journal[g.Version]
		switch {
		case g.Version != s.Version-uint64(i), i > 0 && commits[i-1].Parent != g.ID:
			return fmt.Errorf("graph commit %d of the log is version %d", i, g.Version)
		case known && seen.ID != g.ID:
			return fmt.Errorf("version %d was made by %s, the log says %s", g.Version, seen.ID, g.ID)
		}
		c.journal[g.Version] = g
	}
	version = 2 + version%(s.Version-1)
	then := c.journal[version]
	for _, at := range []func() (*heads.Snapshot, error){
		func() (*heads.Snapshot, error) { return heads.AtVersion(ctx, c.store, testRoot, version) },
		func() (*heads.Snapshot, error) { return heads.AtCommit(ctx, c.store, testRoot, then.ID) },
		func() (*heads.Snapshot, error) { return heads.AtTime(ctx, c.store, testRoot, then.CreatedAt) },
	} {
		switch got, err := at(); {
		case err == nil && got.Commit.ID != then.ID:
			return fmt.Errorf("version %d was made by %s, it is read as %s", version, then.ID, got.Commit.ID)
		case err != nil && (version > s.PrunedThrough || !errors.Is(err, heads.ErrPruned)):
			return fmt.Errorf("version %d, pruned through %d: %w", version, s.PrunedThrough, err)
		case err == nil && version <= s.PrunedThrough:
			return fmt.Errorf("version %d is pruned through %d and read", version, s.PrunedThrough)
		}
	}
	return nil
}

// TestChainThroughCrashes: random histories of publishes, moves and prunes whose folders die at any object put, with readers in between
// (crash C12, C15; P2, P4).
func TestChainThroughCrashes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		keep := rapid.Uint64Range(2, 40).Draw(rt, "keep")
		c := &lineage{store: objstore.NewMemory(), now: new(atomic.Int64), r: Retention{MinVersions: keep, MaxVersions: keep + rapid.Uint64Range(0, 20).Draw(rt, "more"),
			MaxAge: time.Duration(rapid.IntRange(1, 2000).Draw(rt, "age")) * time.Millisecond}, journal: map[uint64]heads.GraphCommit{}}
		c.now.Store(time.Now().UnixNano())
		newGraph(t, c.store)
		for range rapid.IntRange(1, 4).Draw(rt, "folders") {
			n := rapid.IntRange(1, 40).Draw(rt, "folds")
			err := c.claim(rapid.IntRange(0, 200).Draw(rt, "dies"), rapid.Bool().Draw(rt, "after"))
			if err == nil {
				err = c.work(n)
			}
			if err != nil {
				require.ErrorIs(rt, err, errCrash)
			}
			require.NoError(rt, c.read(rapid.Uint64().Draw(rt, "version")))
		}
		require.NoError(rt, c.claim(0, false))
		require.NoError(rt, c.work(3*journalKeep))
		require.NoError(rt, c.read(0))
		require.LessOrEqual(rt, len(c.p.snap.Journal), 2*journalKeep+1)
	})
}

// TestCrashAtEveryWriteOfMoveAndPrune kills the folder at every write around a move that merges and a prune, before and after, and reads what is left.
func TestCrashAtEveryWriteOfMoveAndPrune(t *testing.T) {
	first := &lineage{store: objstore.NewMemory(), now: new(atomic.Int64), r: Retention{MinVersions: 4, MaxVersions: 4}, journal: map[uint64]heads.GraphCommit{}}
	newGraph(t, first.store)
	require.NoError(t, first.claim(0, false))
	for len(openHistory(t, first.store).Fragments()) < mergeBehind+mergeFanout || len(first.p.snap.Journal) < 2*journalKeep-1 {
		require.NoError(t, first.work(1))
	}
	before := len(openHistory(t, first.store).Fragments())
	for _, after := range []bool{false, true} {
		for k := 1; ; k += recoveryStride {
			c := *first
			c.store, c.journal = clone(t, first.store), map[uint64]heads.GraphCommit{}
			err := c.claim(k, after)
			if err == nil {
				err = c.work(3)
			}
			require.NoError(t, c.read(uint64(k)), "write %d, after %t", k, after)
			if err == nil {
				require.Less(t, len(openHistory(t, c.store).Fragments()), before, "it has merged")
				require.Greater(t, k, 30)
				break
			}
			require.ErrorIs(t, err, errCrash)
			require.NoError(t, c.claim(0, false))
			require.NoError(t, c.work(journalKeep))
			require.NoError(t, c.read(uint64(k)), "write %d, after %t, and a successor", k, after)
		}
	}
}
