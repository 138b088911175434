package e2e

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/fence"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/testkit"
	"github.com/foldline/foldline/lance"
)

// folderPauses is every step of a folder, in an order in which each finds what it needs: the claims come after folders that stopped in the
// middle of a fold, so that there is one to recover. The first two meet a graph without tables.
func folderPauses() (making, working []kill) {
	at := func(step string) kill { return kill{At: []string{step}, Pause: true} }
	ofFold := func(step string) kill { return kill{At: []string{step}, Nth: 2, After: ownCut, Pause: true} }
	making = []kill{at("create.before"), at("create.after")}
	targets := append(slices.Clone(tables), heads.RejectsKey)
	barriers := []string{flights, heads.RejectsKey} // they go up side by side
	for _, step := range []string{"fold.cut", "fold.prepared", "record.before", "record.after"} {
		working = append(working, ofFold(step))
	}
	for _, t := range targets {
		working = append(working, ofFold("commit."+t+".before"), ofFold("commit."+t+".after"))
		if slices.Contains(barriers, t) {
			working = append(working, at("barrier."+t+".before"), at("barrier."+t+".after"))
		}
	}
	working = append(working, ofFold("publish.before"), at("claim.after"), at("recover.before"),
		kill{At: []string{"commit." + flights + ".before"}, Pause: true}, at("recover.after"))
	for _, step := range []string{"publish.after", "fold.published", "fold.notified", "tidy.before", "tidy.after", "adopt.before", "adopt.after"} {
		working = append(working, ofFold(step))
	}
	return making, working
}

// TestPausedFolderIsFenced stops a folder before and after each of its steps, lets the next one take over, and wakes the first: it changes
// nothing any more and ends as fenced. The lease is left out, so that only the epochs are there to stop it; each successor is the next to be
// stopped (X2; race R5; i1, i2, i4 of the protocol notes; report C26).
func TestPausedFolderIsFenced(t *testing.T) {
	t.Parallel()
	l := startCluster(t)
	making, working := folderPauses()
	var stopped *child
	next := func(k kill) {
		c := l.start(rivalChild, k)
		testkit.WaitFor(t, "a folder to stand still at "+k.String(), func() bool { l.touch(k); return isStopped(t, c) })
		if stopped != nil {
			stopped.wakesFenced(t)
		}
		stopped = c
	}
	for _, k := range making {
		next(k)
	}
	first := l.start(rivalChild, kill{})
	l.produce()
	ingester := l.start(ingesterChild, kill{})
	l.waitActive(first)
	stopped.wakesFenced(t)
	stopped = nil
	for _, k := range working {
		next(k)
	}
	require.True(t, first.ended())

	last := l.start(rivalChild, kill{})
	l.waitActive(last)
	stopped.wakesFenced(t)
	// One that stands before its claim wakes as a new claimant: it is the owner then, and the one before it is fenced.
	late := l.start(rivalChild, kill{At: []string{"claim.before"}, Pause: true})
	late.standsStill(t, "a folder to stand still before its claim")
	l.waitActive(last)
	late.wakes(t)
	l.waitActive(late)
	last.endsFenced(t)

	l.finish()
	late.stop(t)
	ingester.stop(t)
	l.checkEpochs()
}

// wakesFenced wakes a stopped child and requires that it ends as fenced.
func (c *child) wakesFenced(t *testing.T) {
	t.Helper()
	c.wakes(t)
	c.endsFenced(t)
}

func (c *child) endsFenced(t *testing.T) {
	t.Helper()
	limit := time.NewTimer(reachLimit)
	defer limit.Stop()
	select {
	case <-c.exited:
	case <-limit.C:
		t.Fatalf("a fenced process goes on\n%s", c.log)
	}
	require.False(t, c.cmd.ProcessState.Success(), "%s", c.log)
	require.Contains(t, c.log.String(), "fenced")
}

// touch is another program's commit on a table, for a child that waits for something to adopt.
func (l *cluster) touch(k kill) {
	if !strings.HasPrefix(k.At[0], heads.KindAdopt) {
		return
	}
	s, err := heads.Resolve(l.t.Context(), l.store, "")
	require.NoError(l.t, err)
	table, _ := s.Table(heads.RejectsKey)
	newest, err := lance.Open(l.t.Context(), l.store, table.Path)
	require.NoError(l.t, err)
	tx := lance.NewTransaction(newest, &lance.UpdateConfig{TableMetadata: &lance.MapUpdate{Set: map[string]string{"their": "key"}}})
	_, err = newest.Commit(l.t.Context(), tx, lance.CommitOptions{})
	require.NoError(l.t, err)
}

// checkEpochs walks the whole history of every table and of the heads: epochs only rise, and every fold was published by the folder whose
// claim stood last (X2).
func (l *cluster) checkEpochs() {
	l.t.Helper()
	ctx := context.WithoutCancel(l.t.Context())
	s, err := heads.Resolve(ctx, l.store, "")
	require.NoError(l.t, err)
	for _, t := range s.Tables {
		latest, err := lance.Open(ctx, l.store, t.Path)
		require.NoError(l.t, err)
		epoch := uint64(0)
		for v := uint64(1); v <= latest.Version(); v++ {
			at, err := latest.At(ctx, v)
			require.NoError(l.t, err)
			seen, err := fence.Epoch(at.Metadata())
			require.NoError(l.t, err)
			require.GreaterOrEqual(l.t, seen, epoch, "version %d of %s", v, t.Key)
			epoch = seen
		}
	}
	commits, err := heads.Log(ctx, l.store, "", 0)
	require.NoError(l.t, err)
	slices.Reverse(commits)
	owner, folds := "", uint64(0)
	for i, c := range commits {
		if i > 0 {
			require.Equal(l.t, commits[i-1].ID, c.Parent)
		}
		switch c.Kind {
		case heads.KindFolder:
			owner = c.Actor
		case heads.KindFold:
			require.Equal(l.t, owner, c.Actor, "fold %d", c.Fold)
			require.Greater(l.t, c.Fold, folds)
			folds = c.Fold
		case heads.KindAdopt, heads.KindCreate:
			require.Equal(l.t, owner, c.Actor, "version %d", c.Version)
		}
	}
}
