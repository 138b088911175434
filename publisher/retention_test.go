package publisher

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
)

// ticking is a graph with a clock of its own and a fold at every call of publish.
type ticking struct {
	p     *Publisher
	store objstore.Store
	now   time.Time
	log   []entry
}

func newTicking(t *testing.T, store objstore.Store, r Retention) *ticking {
	ctx := context.Background()
	g := &ticking{p: newGraph(t, store), store: store, now: time.Now()}
	g.claim(t, r)
	require.NoError(t, g.p.Tidy(ctx))
	return g
}

func (g *ticking) claim(t *testing.T, r Retention) {
	o := options(g.store)
	o.Clock = func() time.Time { return g.now }
	o.Retention = r
	var err error
	g.p, err = Claim(context.Background(), o, "folder")
	require.NoError(t, err)
}

// publish folds one row a time after the last, and tidies.
func (g *ticking) publish(t *testing.T, after time.Duration) {
	g.now = g.now.Add(after)
	g.log = append(g.log, entry{{testTables[0], "a", int64(len(g.log)), "upsert"}})
	_, err := publishThrough(context.Background(), g.p, g.log, uint64(len(g.log)))
	require.NoError(t, err)
	require.NoError(t, g.p.Tidy(context.Background()))
}

// kept lists the versions of the manifest that are there.
func (g *ticking) kept(t *testing.T) []uint64 {
	versions, err := g.p.snap.Manifest().Versions(context.Background(), g.p.snap.Version)
	require.NoError(t, err)
	return versions
}

// TestRetention: the fewest are kept whatever their age, the most whatever it is not, and in between age decides; what is at or below the published
// boundary, and nothing else, is gone; every state above it can be read, every one below is a typed error.
func TestRetention(t *testing.T) {
	ctx := context.Background()
	for name, c := range map[string]struct {
		retention Retention
		every     time.Duration
		want      int
	}{
		"few by count":              {Retention{MinVersions: 5, MaxVersions: 5, MaxAge: time.Hour}, time.Second, 5},
		"many by count":             {Retention{MinVersions: 5, MaxVersions: 20, MaxAge: time.Hour}, time.Second, 20},
		"by age":                    {Retention{MinVersions: 5, MaxVersions: 100, MaxAge: 10 * time.Second}, time.Second, 12},
		"the fewest, all older":     {Retention{MinVersions: 5, MaxVersions: 100, MaxAge: time.Second}, time.Minute, 5},
		"a clock that stands still": {Retention{MinVersions: 5, MaxVersions: 30, MaxAge: time.Second}, 0, 30},
	} {
		t.Run(name, func(t *testing.T) {
			g := newTicking(t, objstore.NewMemory(), c.retention)
			for range 60 {
				g.publish(t, c.every)
			}
			kept := g.kept(t)
			require.InDelta(t, c.want, len(kept), pruneStep, "%d to %d", kept[0], kept[len(kept)-1])
			require.Equal(t, g.p.snap.PrunedThrough+1, kept[0])
			for v := kept[0]; v <= g.p.snap.Version; v++ {
				s, err := heads.AtVersion(ctx, g.store, testRoot, v)
				require.NoError(t, err)
				byTime, err := heads.AtTime(ctx, g.store, testRoot, s.Commit.CreatedAt)
				require.NoError(t, err)
				require.Equal(t, v, byTime.Version)
				byCommit, err := heads.AtCommit(ctx, g.store, testRoot, s.Commit.ID)
				require.NoError(t, err)
				require.Equal(t, v, byCommit.Version)
			}
			checkPruned(t, g)
		})
	}
}

// checkPruned asks for every state that is gone, in every way.
func checkPruned(t *testing.T, g *ticking) {
	ctx := context.Background()
	commits, err := heads.Log(ctx, g.store, testRoot, 0)
	require.NoError(t, err)
	require.Len(t, commits, int(g.p.snap.Version-1), "the log is whole")
	for _, c := range commits {
		if c.Version > g.p.snap.PrunedThrough {
			continue
		}
		_, err := heads.AtVersion(ctx, g.store, testRoot, c.Version)
		require.ErrorIs(t, err, heads.ErrPruned)
		_, err = heads.AtCommit(ctx, g.store, testRoot, c.ID)
		require.ErrorIs(t, err, heads.ErrPruned, "version %d", c.Version)
		_, err = heads.AtTime(ctx, g.store, testRoot, c.CreatedAt)
		require.ErrorIs(t, err, heads.ErrPruned, "version %d", c.Version)
	}
	g.now = g.now.Add(time.Hour)
	later, err := g.p.mintID()
	require.NoError(t, err)
	_, err = heads.AtCommit(ctx, g.store, testRoot, later)
	require.ErrorIs(t, err, heads.ErrNotFound, "nobody made it")
}

// TestOldVersionsGoAfterAPause: a graph whose states have all grown old lets go of two at a publish, not of all at once.
func TestOldVersionsGoAfterAPause(t *testing.T) {
	g := newTicking(t, objstore.NewMemory(), Retention{MinVersions: 5, MaxVersions: 100, MaxAge: time.Minute})
	for range 40 {
		g.publish(t, time.Second)
	}
	before := len(g.kept(t))
	g.publish(t, time.Hour)
	for range 10 {
		g.publish(t, time.Second)
	}
	require.Less(t, len(g.kept(t)), before)
	require.Greater(t, len(g.kept(t)), before-2*11)
	for range 40 {
		g.publish(t, time.Minute)
	}
	require.InDelta(t, 5, len(g.kept(t)), pruneStep)
}

// TestPruningGoesOnWhereAnOwnerLeft: what a folder left below the boundary, its successor removes, and nothing else is in the folders then.
func TestPruningGoesOnWhereAnOwnerLeft(t *testing.T) {
	ctx := context.Background()
	r := Retention{MinVersions: 5, MaxVersions: 5, MaxAge: time.Hour}
	g := newTicking(t, objstore.NewMemory(), r)
	for range 30 {
		g.publish(t, time.Second)
	}
	g.p.versions.through += 20 // it deletes nothing for a while
	for range 10 {
		g.publish(t, time.Second)
	}
	require.Greater(t, len(g.kept(t)), 10)
	g.claim(t, r)
	for range 20 {
		g.publish(t, time.Second)
	}
	require.Equal(t, g.p.snap.PrunedThrough+1, g.kept(t)[0])
	files := map[string]bool{}
	for _, v := range g.kept(t) {
		at, err := g.p.snap.Manifest().At(ctx, v)
		require.NoError(t, err)
		for _, f := range at.Fragments() {
			for _, file := range f.Files() {
				files[dataPath(at.Root(), file.Path)] = true
			}
		}
	}
	there, err := g.store.List(ctx, g.p.root()+"/data/", "", 0)
	require.NoError(t, err)
	require.Len(t, there, len(files), "no file without a version that names it")
}

// TestReadersOfAVersionThatGoesResolveAgain: whoever has listed a version that retention takes before it is read gets a newer state.
func TestReadersOfAVersionThatGoesResolveAgain(t *testing.T) {
	ctx := context.Background()
	g := newTicking(t, objstore.NewMemory(), Retention{MinVersions: 2, MaxVersions: 2, MaxAge: time.Hour})
	for range 5 {
		g.publish(t, time.Second)
	}
	late := &lateReader{Store: g.store, publish: func() { g.publish(t, time.Second) }, times: 3}
	s, err := heads.Current(ctx, late, testRoot)
	require.NoError(t, err)
	require.Equal(t, g.p.snap.Version, s.Version)
	late.times = 1 << 30
	_, err = heads.Current(ctx, late, testRoot)
	require.True(t, errors.Is(err, lance.ErrNotFound), "a bounded number of times: %v", err)
}

// lateReader publishes so often after each LIST that what it found is gone.
type lateReader struct {
	objstore.Store
	publish func()
	times   int
}

func (l *lateReader) List(ctx context.Context, prefix, after string, max int) ([]objstore.Info, error) {
	infos, err := l.Store.List(ctx, prefix, after, max)
	if l.times--; l.times >= 0 {
		for range 6 {
			l.publish()
		}
	}
	return infos, err
}
