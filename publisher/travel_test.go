package publisher

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/objstore"
)

// TestTimeTravel reads every state that was, by version, by commit and by time.
func TestTimeTravel(t *testing.T) {
	ctx := context.Background()
	store := objstore.NewMemory()
	p := newGraph(t, store)
	log, m := smallLog(), newModel()
	type state struct {
		through uint64
		commit  heads.GraphCommit
	}
	var states []state
	for _, through := range []uint64{3, 6, 7} {
		published, err := publishThrough(ctx, p, log, through)
		require.NoError(t, err)
		states = append(states, state{through, published.Commit})
	}
	from := uint64(0)
	for _, s := range states {
		m.apply(log, from, s.through)
		from = s.through
		byVersion, err := heads.AtVersion(ctx, store, testRoot, s.commit.Version)
		require.NoError(t, err)
		byCommit, err := heads.AtCommit(ctx, store, testRoot, s.commit.ID)
		require.NoError(t, err)
		byTime, err := heads.AtTime(ctx, store, testRoot, s.commit.CreatedAt)
		require.NoError(t, err)
		for _, snap := range []*heads.Snapshot{byVersion, byCommit, byTime} {
			require.Equal(t, s.commit.ID, snap.Commit.ID)
			require.NoError(t, m.compare(ctx, store, snap))
		}
	}
	for _, version := range []uint64{0, 1, p.snap.Version + 1} {
		_, err := heads.AtVersion(ctx, store, testRoot, version)
		require.ErrorIs(t, err, heads.ErrNotFound)
	}
	_, err := heads.AtCommit(ctx, store, testRoot, "nobody")
	require.ErrorIs(t, err, heads.ErrNotFound)
	_, err = heads.AtTime(ctx, store, testRoot, time.Unix(0, 0))
	require.ErrorIs(t, err, heads.ErrNotFound)
	_, err = heads.AtVersion(ctx, store, "elsewhere", 2)
	require.ErrorIs(t, err, heads.ErrNoGraph)
}
