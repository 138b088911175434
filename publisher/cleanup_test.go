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
	"github.com/foldline/foldline/objstore/countstore"
	"github.com/foldline/foldline/objstore/faultstore"
)

// fewStates keeps so few states of the heads that old versions of tables come to go.
var fewStates = Retention{MinVersions: 5, MaxVersions: 5, MaxAge: time.Hour}

// aged is a graph with a fold of one row each second, which no state of the heads but the last few names.
func aged(t *testing.T, store objstore.Store, folds int) *ticking {
	g := newTicking(t, store, fewStates)
	for range folds {
		g.publish(t, time.Second)
	}
	return g
}

func (g *ticking) cleaner(t *testing.T, store objstore.Store, olderThan time.Duration) *Cleaner {
	o := options(store)
	o.Clock = func() time.Time { return g.now }
	c, err := NewCleaner(o, CleanOptions{OlderThan: olderThan})
	require.NoError(t, err)
	return c
}

// versionsOf are those of the table that is folded into.
func (g *ticking) versionsOf(t *testing.T, key string) []uint64 {
	table, err := foreign{g.store}.open(context.Background(), key)
	require.NoError(t, err)
	versions, err := table.Versions(context.Background(), table.Version())
	require.NoError(t, err)
	return versions
}

// checkRetained reads every state of the heads that is retained, and every file of it.
func checkRetained(t *testing.T, store objstore.Store) {
	t.Helper()
	ctx := context.Background()
	newest, err := heads.Current(ctx, store, testRoot)
	require.NoError(t, err)
	for v := max(newest.PrunedThrough+1, 2); v <= newest.Version; v++ {
		s, err := heads.AtVersion(ctx, store, testRoot, v)
		require.NoError(t, err)
		for _, table := range s.Tables {
			at, err := s.OpenTable(ctx, store, table.Key)
			require.NoError(t, err, "state %d", v)
			require.NoError(t, checkReadable(ctx, store, at), "state %d", v)
		}
	}
	requireFiles(t, store)
}

// TestClean: versions below the oldest retained state go once they are as many as stay, and old enough, with their files; what is retained reads; a second call has nothing to
// do. A tag's version stays, and so do young ones.
func TestClean(t *testing.T) {
	ctx := context.Background()
	store := countstore.New(objstore.NewMemory())
	g := aged(t, store, 2*defaultMinCleaned)
	c := g.cleaner(t, store, time.Minute)
	tagged, err := foreign{store}.open(ctx, testTables[0])
	require.NoError(t, err)
	newest := tagged.Version()
	tagged, err = tagged.At(ctx, 17)
	require.NoError(t, err)
	require.NoError(t, tagged.CreateTag(ctx, "kept", g.now))
	before := g.versionsOf(t, testTables[0])
	oldest, err := heads.AtVersion(ctx, store, testRoot, g.p.snap.PrunedThrough+1)
	require.NoError(t, err)
	kept, _ := oldest.Table(testTables[0])

	done, err := c.Clean(ctx)
	require.NoError(t, err)
	require.Equal(t, 1, done.Tables)
	left := g.versionsOf(t, testTables[0])
	require.Equal(t, uint64(17), left[0], "the tag's")
	require.Less(t, left[1], kept.Head.Version)
	require.InDelta(t, 60, float64(newest-left[1]), 2, "those of the last minute")
	require.Len(t, before, len(left)+done.Versions)
	require.GreaterOrEqual(t, done.Files, done.Versions-2, "each fold has replaced the row of the one before")
	checkRetained(t, store)

	store.Reset()
	again, err := c.Clean(ctx)
	require.NoError(t, err)
	require.Equal(t, Cleaned{}, again)
	require.Zero(t, store.Under(heads.Join(testRoot, heads.TablePath(testTables[1]))).Requests(), "a table whose turn cannot be")
	under := counted(store.Under(heads.Join(testRoot, heads.TablePath(testTables[0]))))
	require.Zero(t, under.put+under.delete)
	require.LessOrEqual(t, under.get+under.list, 3)
}

// TestCleanIsAmortised: over 600 folds with a call at every tenth, manifests of the table are read less than three times each, and no more versions are there than
// twice those kept, the minimum, and what ten folds add.
func TestCleanIsAmortised(t *testing.T) {
	ctx := context.Background()
	store := countstore.New(objstore.NewMemory())
	g := newTicking(t, store, fewStates)
	c := g.cleaner(t, store, 30*time.Second)
	reads, most := 0, 0
	for i := range 600 {
		g.publish(t, time.Second)
		if i%10 != 9 {
			continue
		}
		store.Reset()
		_, err := c.Clean(ctx)
		require.NoError(t, err)
		under := store.Under(heads.Join(testRoot, heads.TablePath(testTables[0])) + "/_versions/")
		reads += under.Get + under.GetTail + under.GetRange
		most = max(most, len(g.versionsOf(t, testTables[0])))
	}
	require.Less(t, reads, 3*600)
	require.LessOrEqual(t, most, 2*30+defaultMinCleaned+10+5)
	checkRetained(t, store)
}

// TestCleanLeavesOthersAlone: a table of another engine, one that takes no folds, and a copy of ours that was enrolled keep all their versions.
func TestCleanLeavesOthersAlone(t *testing.T) {
	ctx := context.Background()
	store := objstore.NewMemory()
	g := aged(t, store, 3)
	schema, err := lance.NewSchema(rowsOf(nil).Schema(), []string{"id"})
	require.NoError(t, err)
	_, err = lance.Create(ctx, store, testRoot+"/theirs.lance", schema, lance.CreateOptions{})
	require.NoError(t, err)
	_, err = g.p.EnrolTable(ctx, EnrolSpec{Path: "theirs.lance", TableSpec: TableSpec{Key: "node:Theirs"}})
	require.NoError(t, err)
	for range 2 * defaultMinCleaned {
		g.now = g.now.Add(time.Second)
		g.log = append(g.log, entry{{testTables[0], "a", int64(len(g.log)), "upsert"}, {"node:Theirs", "a", int64(len(g.log)), "upsert"}})
		f, err := planOn(ctx, g.p, g.log, uint64(len(g.log)), atHead)
		require.NoError(t, err)
		_, err = g.p.Publish(ctx, f)
		require.NoError(t, err)
		require.NoError(t, g.p.Tidy(ctx))
	}
	_, err = g.p.Pause(ctx, testTables[0], "their load", g.now.Add(time.Hour))
	require.NoError(t, err)
	c := g.cleaner(t, store, time.Second)
	done, err := c.Clean(ctx)
	require.NoError(t, err)
	require.Equal(t, Cleaned{}, done)
	_, err = g.p.Resume(ctx, testTables[0])
	require.NoError(t, err)
	done, err = c.Clean(ctx)
	require.NoError(t, err)
	require.Equal(t, 1, done.Tables)
	theirs, err := lance.OpenVersion(ctx, store, testRoot+"/theirs.lance", 1)
	require.NoError(t, err)
	require.NoError(t, checkReadable(ctx, store, theirs))
}

// TestStaleCleaner stops a cleaner before each of its deletions in turn, and at each read of a manifest; the folder goes on for as many folds, another cleaner cleans, and the
// stale one goes on: no state that is retained by then misses anything. What a fold had uploaded when the cleaner listed the files is there too (report C131).
func TestStaleCleaner(t *testing.T) {
	ctx := context.Background()
	first := objstore.NewMemory()
	at := aged(t, first, 2*defaultMinCleaned)
	for _, op := range []faultstore.Op{faultstore.Delete, faultstore.GetTail, faultstore.List} {
		for k := 1; k < 400; k += 97 {
			g := *at
			g.store = clone(t, first)
			g.claim(t, fewStates)
			slow, held, release := holdCall(g.store, k, faultstore.Ops(op))
			stale := g.cleaner(t, slow, time.Second)
			done := make(chan error, 1)
			go func() { _, err := stale.Clean(ctx); done <- err }()
			select {
			case <-held:
			case err := <-done:
				require.NoError(t, err)
				continue
			}
			f, err := plan(ctx, g.p, append(g.log, entry{{testTables[0], "a", 7, "upsert"}}), uint64(len(g.log))+1)
			require.NoError(t, err)
			_, err = g.cleaner(t, g.store, time.Second).Clean(ctx)
			require.NoError(t, err)
			close(release)
			require.NoError(t, <-done)
			_, err = g.p.Publish(ctx, f)
			require.NoError(t, err)
			checkRetained(t, g.store)
		}
	}
}

// TestCleanCrashes kills a cleaner at some of its deletions: retained states read, and the next one finishes.
func TestCleanCrashes(t *testing.T) {
	ctx := context.Background()
	first := objstore.NewMemory()
	at := aged(t, first, 2*defaultMinCleaned)
	for k := 1; ; k += 83 {
		g := *at
		g.store = clone(t, first)
		cut := faultstore.New(g.store, faultstore.FromCall(k, faultstore.Ops(faultstore.Delete), errCrash))
		_, err := g.cleaner(t, cut, time.Second).Clean(ctx)
		checkRetained(t, g.store)
		if err == nil {
			require.Greater(t, k, 2*defaultMinCleaned)
			return
		}
		require.True(t, errors.Is(err, errCrash), "%v", err)
		_, err = g.cleaner(t, g.store, time.Second).Clean(ctx)
		require.NoError(t, err)
		checkRetained(t, g.store)
		require.LessOrEqual(t, len(g.versionsOf(t, testTables[0])), defaultMinCleaned)
	}
}
