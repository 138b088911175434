package publisher

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/fence"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/countstore"
)

// tiers are the options of these tests: four small fragments are worth it.
var tiers = lance.CompactOptions{MinFragments: 4, TargetRows: 1000, MaxRows: 1000}

// fragmented is a graph whose first table has six fragments, and the whole log that made it, with folds of crashGraph's log above it.
func fragmented(t *testing.T) (store objstore.Store, log []entry, folded uint64) {
	ctx := context.Background()
	store = objstore.NewMemory()
	p := newGraph(t, store)
	for i := range int64(6) {
		log = append(log, entry{{testTables[0], fmt.Sprint("k", i), i, "upsert"}, {testTables[0], "hot", i, "upsert"}, {testTables[1], "e", i, "upsert"}})
		_, err := publishThrough(ctx, p, log, uint64(len(log)))
		require.NoError(t, err)
	}
	folded = uint64(len(log))
	log = append(log,
		entry{{testTables[0], "k1", 70, "upsert"}, {testTables[0], "k2", 0, "delete"}, {testTables[0], "k3", 71, "insert"}, {testTables[2], "r", 72, "upsert"}},
		entry{{testTables[0], "hot", 73, "upsert"}, {testTables[1], "e", 74, "upsert"}})
	return store, log, folded
}

// foldOn folds what is left on the heads, as package fold does.
func foldOn(ctx context.Context, p *Publisher, log []entry) error {
	for {
		cut, _ := p.snap.Cut(0, testIncarnation)
		if cut.Through == uint64(len(log)) {
			return nil
		}
		f, err := planOn(ctx, p, log, cut.Through+1, atHead)
		if err != nil {
			return err
		}
		if _, err := p.Publish(ctx, f); err != nil {
			return err
		}
	}
}

func fragmentsOf(t *testing.T, store objstore.Store, key string) int {
	snap, err := heads.Resolve(context.Background(), store, testRoot)
	require.NoError(t, err)
	table, err := snap.OpenTable(context.Background(), store, key)
	require.NoError(t, err)
	return len(table.Fragments())
}

// TestCompact: fragments become one, rows and the fold that the table holds stay, all in one table commit and one graph commit of the kind; states of before are
// read as they were. What it costs is pinned, and nothing to do costs nothing.
func TestCompact(t *testing.T) {
	ctx := context.Background()
	memory, log, folded := fragmented(t)
	store := countstore.New(memory)
	p, err := Claim(ctx, options(store), "folder")
	require.NoError(t, err)
	_, err = p.Adopt(ctx) // the barriers
	require.NoError(t, err)
	require.NoError(t, p.Tidy(ctx))
	before := p.snap
	base, err := before.OpenTable(ctx, store, testTables[0])
	require.NoError(t, err)
	require.Len(t, base.Fragments(), 6)
	store.Reset()
	done, err := p.Compact(ctx, testTables[0], base, tiers)
	require.NoError(t, err)
	require.Equal(t, 6, done.Before)
	require.Equal(t, 1, done.After)
	require.EqualValues(t, 7, done.Rows)
	require.False(t, done.More)
	got := counted(store.Counts())
	// The heads and the table are looked at, each fragment is read (five of the six with a deletion file), and a file, a manifest, and the heads are written.
	require.Equal(t, requests{list: 2 + 1 + 1, put: 2 + 2, get: 6 + 5}, got, "%v", store.Calls())

	require.Equal(t, heads.KindCompact, done.Snapshot.Commit.Kind)
	require.Len(t, done.Snapshot.Commit.Tables, 1)
	require.Equal(t, base.MetadataValue(fence.MetaFold), done.Table.MetadataValue(fence.MetaFold))
	require.Equal(t, before.Fold, done.Snapshot.Fold)
	m := newModel()
	m.apply(log, 0, folded)
	require.NoError(t, m.check(ctx, store, log))
	old, err := heads.AtVersion(ctx, store, testRoot, before.Version)
	require.NoError(t, err)
	require.NoError(t, m.compare(ctx, store, old))

	store.Reset()
	again, err := p.Compact(ctx, testTables[0], done.Table, tiers)
	require.NoError(t, err)
	require.Equal(t, Compacted{}, again)
	require.Zero(t, store.Counts().Requests())
	require.NoError(t, foldOn(ctx, p, log))
	require.NoError(t, wholeModel(log).check(ctx, store, log))
}

// TestCompactDeadLetters: they grow by a fragment with each fold that rejects something, and are compacted like any table.
func TestCompactDeadLetters(t *testing.T) {
	ctx := context.Background()
	store := objstore.NewMemory()
	p := newGraph(t, store)
	log := []entry{{{testTables[0], "a", 0, "upsert"}}}
	for i := range int64(5) {
		_, err := publishThrough(ctx, p, log, uint64(len(log)))
		require.NoError(t, err)
		log = append(log, entry{{testTables[0], "a", i, "insert"}})
	}
	log = log[:5]
	require.Equal(t, 4, fragmentsOf(t, store, heads.RejectsKey))
	done, err := p.Compact(ctx, heads.RejectsKey, nil, tiers)
	require.NoError(t, err)
	require.Equal(t, 1, done.After)
	require.NoError(t, wholeModel(log).check(ctx, store, log))
}

// TestCompactRefuses: a table that is not there, takes no rows from anybody, or no folds now.
func TestCompactRefuses(t *testing.T) {
	ctx := context.Background()
	store, _, _ := fragmented(t)
	p, err := Claim(ctx, options(store), "folder")
	require.NoError(t, err)
	_, err = p.Compact(ctx, "node:None", nil, tiers)
	require.ErrorIs(t, err, heads.ErrNotFound)
	_, err = p.Pause(ctx, testTables[0], "their load", pauseEnd)
	require.NoError(t, err)
	_, err = p.Compact(ctx, testTables[0], nil, tiers)
	require.ErrorIs(t, err, ErrConflict)
	require.ErrorContains(t, err, "paused: their load")
	require.NoError(t, held(ctx, p))
	_, err = p.Compact(ctx, testTables[0], nil, tiers)
	require.ErrorIs(t, err, ErrConflict)
	require.Equal(t, 6, fragmentsOf(t, store, testTables[0]))
}

// TestCompactMeetsForeignCommits: versions of others are adopted before a compaction; one that is committed while it writes wins, its files are removed, and
// the next call takes both in. An overwrite freezes the table.
func TestCompactMeetsForeignCommits(t *testing.T) {
	ctx := context.Background()
	store, log, folded := fragmented(t)
	value := int64(theirValue)
	o := options(store)
	var at Step
	var theirs func() error
	o.Step = func(s Step) {
		if s == at {
			at = ""
			require.NoError(t, theirs())
		}
	}
	p, err := Claim(ctx, o, "folder")
	require.NoError(t, err)
	require.NoError(t, foreign{store}.merge(ctx, testTables[0], "z", &value))
	at, theirs = "rewrite.node:Airport.before", func() error { return foreign{store}.merge(ctx, testTables[0], "y", &value) }
	files := func() int {
		infos, err := store.List(ctx, heads.Join(testRoot, heads.TablePath(testTables[0]))+"/data/", "", 0)
		require.NoError(t, err)
		return len(infos)
	}
	before := files()
	_, err = p.Compact(ctx, testTables[0], nil, tiers)
	require.ErrorIs(t, err, lance.ErrConflict)
	require.Equal(t, before+1, files(), "theirs, and not ours")
	done, err := p.Compact(ctx, testTables[0], nil, tiers)
	require.NoError(t, err)
	require.Equal(t, 8, done.Before)
	require.Equal(t, 1, done.After)
	m := newModel()
	m.apply(log, 0, folded)
	m.tables[testTables[0]]["z"], m.tables[testTables[0]]["y"] = value, value
	require.NoError(t, m.check(ctx, store, log))

	at, theirs = "rewrite.node:Airport.before", func() error { return foreign{store}.overwrite(ctx, testTables[0]) }
	for i := range int64(4) {
		require.NoError(t, foreign{store}.append(ctx, testTables[0], fmt.Sprint("more", i), i))
	}
	_, err = p.Adopt(ctx)
	require.NoError(t, err)
	_, err = p.Compact(ctx, testTables[0], nil, tiers)
	require.ErrorIs(t, err, lance.ErrConflict)
	_, err = p.Compact(ctx, testTables[0], nil, tiers)
	require.ErrorIs(t, err, ErrConflict)
	require.ErrorContains(t, err, "it is replaced")
}

// TestCompactCrashes kills the folder at every write of a compaction, before and after. What is left is nothing but files, or a version that a successor folds
// over and adopts: all folds are there once, and the successor's own compaction goes through.
func TestCompactCrashes(t *testing.T) {
	ctx := context.Background()
	first, log, _ := fragmented(t)
	want := wholeModel(log)
	behind := 0
	for _, after := range []bool{false, true} {
		for k := 1; ; k++ {
			store := clone(t, first)
			p, err := Claim(ctx, options(store), "folder")
			require.NoError(t, err)
			_, err = p.Adopt(ctx)
			require.NoError(t, err)
			cut, hit := cutOff(store, k, after)
			p.o.Store = cut
			_, err = p.Compact(ctx, testTables[0], nil, tiers)
			if !hit() {
				require.NoError(t, err)
				require.Greater(t, k, 3)
				break
			}
			name := fmt.Sprintf("died at write %d (after %t)", k, after)
			for _, adopts := range []bool{false, true} {
				left := clone(t, store)
				p, err = Claim(ctx, options(left), "successor")
				require.NoError(t, err, name)
				if adopts {
					_, err = p.Adopt(ctx)
					require.NoError(t, err, name)
					if fragmentsOf(t, left, testTables[0]) == 1 {
						behind++
					}
				}
				require.NoError(t, foldOn(ctx, p, log), name)
				require.NoError(t, want.check(ctx, left, log), name)
				_, err = p.Compact(ctx, testTables[0], nil, tiers)
				require.NoError(t, err, name)
				require.NoError(t, want.check(ctx, left, log), name)
				require.Less(t, fragmentsOf(t, left, testTables[0]), 4, name)
				requireFiles(t, left)
			}
		}
	}
	require.Positive(t, behind, "some crashes leave a version above the head")
}

// TestFoldOverAnUnpublishedCompaction: a compaction has landed and its folder died before the heads; the successor folds without an adoption and dies at every
// write of that; a third one completes the fold whose plan the compaction has overtaken (crash C18).
func TestFoldOverAnUnpublishedCompaction(t *testing.T) {
	ctx := context.Background()
	first, log, _ := fragmented(t)
	p, err := Claim(ctx, options(first), "folder")
	require.NoError(t, err)
	_, err = p.Adopt(ctx)
	require.NoError(t, err)
	p.o.Step = func(s Step) {
		if s == "rewrite.node:Airport.after" {
			p.o.Store, _ = cutOff(first, 1, false)
		}
	}
	_, err = p.Compact(ctx, testTables[0], nil, tiers)
	require.ErrorIs(t, err, errCrash)
	require.Equal(t, 6, fragmentsOf(t, first, testTables[0]), "the heads do not have it")
	recovered := 0
	for k := 1; ; k++ { // dying before the next write is dying after this one, but for what is written at once
		store := clone(t, first)
		cut, hit := cutOff(store, k, k%2 == 0)
		p, err := Claim(ctx, options(cut), "second")
		if err == nil {
			err = foldOn(ctx, p, log)
		}
		if !hit() {
			require.NoError(t, err)
			break
		}
		third, err := Claim(ctx, options(store), "third")
		require.NoError(t, err, "died at write %d", k)
		if third.Recovered() != nil {
			recovered++
		}
		require.NoError(t, foldOn(ctx, third, log), "died at write %d", k)
		require.NoError(t, wholeModel(log).check(ctx, store, log), "died at write %d", k)
	}
	require.Positive(t, recovered)
}

// TestStaleCompactionAtEveryWrite stops a compaction before each of its writes; a successor takes over, folds and compacts. The stale one goes on, does no harm and
// is fenced, unless all it still had to do was to remove files (race R5, X2).
func TestStaleCompactionAtEveryWrite(t *testing.T) {
	ctx := context.Background()
	first, log, _ := fragmented(t)
	want := wholeModel(log)
	for k := 1; ; k++ {
		store := clone(t, first)
		stale, err := Claim(ctx, options(store), "stale")
		require.NoError(t, err)
		_, err = stale.Adopt(ctx)
		require.NoError(t, err)
		slow, held, release := holdAt(store, k)
		stale.o.Store = slow
		done := make(chan error, 1)
		go func() {
			_, err := stale.Compact(ctx, testTables[0], nil, tiers)
			done <- err
		}()
		select {
		case <-held:
		case err := <-done:
			require.NoError(t, err)
			require.Greater(t, k, 3)
			return
		}
		p, err := Claim(ctx, options(store), "successor")
		require.NoError(t, err)
		require.NoError(t, foldOn(ctx, p, log))
		_, err = p.Compact(ctx, testTables[0], nil, tiers)
		require.NoError(t, err)
		close(release)
		if err := <-done; !errors.Is(err, ErrFenced) {
			require.NoError(t, err, "stopped at write %d", k)
		}
		require.NoError(t, want.check(ctx, store, log), "stopped at write %d", k)
		requireFiles(t, store)
		require.NoError(t, p.Tidy(ctx))
		_, err = p.Refresh(ctx)
		require.NoError(t, err)
	}
}
