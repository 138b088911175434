package publisher

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/faultstore"
)

// holdManifest holds the first put of a manifest of one table up.
func holdManifest(inner objstore.Store, key string) (store objstore.Store, held, release chan struct{}) {
	held, release = make(chan struct{}), make(chan struct{})
	match := faultstore.Under(heads.Join(testRoot, heads.TablePath(key))+"/_versions/", faultstore.PutIfAbsent)
	first := true
	return faultstore.New(inner, func(_ context.Context, c faultstore.Call) faultstore.Fault {
		if match(c) && first {
			first = false
			close(held)
			<-release
		}
		return faultstore.Fault{}
	}), held, release
}

// stopBeforePut lets a folder fold entries of one table and stops it before its put on that table.
func stopBeforePut(t *testing.T, store objstore.Store, log []entry, key string) (goOn func() error) {
	t.Helper()
	ctx := context.Background()
	stale, err := Claim(ctx, options(store), "stale")
	require.NoError(t, err)
	slow, held, release := holdManifest(store, key)
	stale.o.Store = slow
	done := make(chan error, 1)
	go func() {
		_, err := publishThrough(ctx, stale, log, uint64(len(log)))
		done <- err
	}()
	<-held
	return func() error { close(release); return <-done }
}

// TestBarriersAreOnUntouchedTablesToo: the successor folds a larger cut in which the stale folder's table nets to nothing, so it never commits
// there; the stale put must still fail, or a deleted row comes back (i6).
func TestBarriersAreOnUntouchedTablesToo(t *testing.T) {
	ctx := context.Background()
	store := objstore.NewMemory()
	newGraph(t, store)
	log := []entry{{{testTables[0], "ghost", 1, "upsert"}}}
	goOn := stopBeforePut(t, store, log, testTables[0])

	b, err := Claim(ctx, options(store), "successor")
	require.NoError(t, err)
	require.Nil(t, b.Recovered())
	larger := append(slices.Clone(log), entry{{testTables[1], "x", 2, "upsert"}})
	f, err := plan(ctx, b, larger, 2)
	require.NoError(t, err)
	f.Tables = slices.DeleteFunc(f.Tables, func(t PreparedTable) bool { return t.Table.Key == testTables[0] })
	_, err = b.Publish(ctx, f)
	require.NoError(t, err)

	require.ErrorIs(t, goOn(), ErrFenced)
	table, err := foreign{store}.open(ctx, testTables[0])
	require.NoError(t, err)
	require.Zero(t, table.Rows())
}

// TestRaceR17StalePutIntoAnEmptiedSlot: while a folder is stopped before a put, a successor folds on and a foreign cleanup empties the slot. The stale put
// succeeds there, is nobody's version, and is noticed (i3, R17).
func TestRaceR17StalePutIntoAnEmptiedSlot(t *testing.T) {
	ctx := context.Background()
	store := objstore.NewMemory()
	newGraph(t, store)
	log := []entry{{{testTables[0], "a", 1, "upsert"}}}
	goOn := stopBeforePut(t, store, log, testTables[0])

	b, err := Claim(ctx, options(store), "successor")
	require.NoError(t, err)
	_, err = publishThrough(ctx, b, log, 1)
	require.NoError(t, err)
	require.NoError(t, foreign{store}.cleanUp(ctx, testTables[0]))

	require.ErrorIs(t, goOn(), ErrFenced)
	m := newModel()
	m.apply(log, 0, 1)
	require.NoError(t, m.check(ctx, store, log))
}

// TestPutIntoAnEmptiedSlotIsTriedAgain: an idle table that a foreign writer moved on and cleaned up has an empty slot right above our base. A put
// succeeds there and would be lost; the fold lands above the newest version instead, and the foreign rows stay (protocol notes 1.8).
func TestPutIntoAnEmptiedSlotIsTriedAgain(t *testing.T) {
	ctx := context.Background()
	store := objstore.NewMemory()
	p := newGraph(t, store)
	log := []entry{{{testTables[0], "a", 1, "upsert"}}, {{testTables[0], "b", 2, "upsert"}}}
	f, err := plan(ctx, p, log, 1)
	require.NoError(t, err)
	for i, id := range []string{"f1", "f2", "f3"} {
		require.NoError(t, foreign{store}.append(ctx, testTables[0], id, int64(i)))
	}
	require.NoError(t, foreign{store}.cleanUp(ctx, testTables[0]))
	published, err := p.Publish(ctx, f)
	require.NoError(t, err)
	head, _ := published.Snapshot.Table(testTables[0])
	require.EqualValues(t, 4, head.Head.Rows)
	_, err = publishThrough(ctx, p, log, 2)
	require.NoError(t, err)
	got, err := content(ctx, store, p.snap, testTables[0])
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"a": 1, "b": 2, "f1": 0, "f2": 1, "f3": 2}, got)
}

// TestWitnessSurvivesACleanup: all tables are committed, the folder dies before the publish, and a foreign cleanup takes our versions and their
// transactions. The metadata that later versions carry still tells, and the fold is completed once (c4).
func TestWitnessSurvivesACleanup(t *testing.T) {
	ctx := context.Background()
	store, log := crashGraph(t)
	p, err := Claim(ctx, options(store), "first")
	require.NoError(t, err)
	f, err := plan(ctx, p, log, 6)
	require.NoError(t, err)
	dieBeforePublish(ctx, t, p, f)
	for _, key := range testTables {
		require.NoError(t, foreign{store}.append(ctx, key, "theirs", 5))
		require.NoError(t, foreign{store}.cleanUp(ctx, key))
	}
	b, err := Claim(ctx, options(store), "successor")
	require.NoError(t, err)
	require.NotNil(t, b.Recovered())
	require.Equal(t, f.Fold, b.Recovered().Commit.Fold)
	m := newModel()
	m.apply(log, 0, 6)
	for _, key := range testTables {
		m.tables[key]["theirs"] = 5
	}
	require.NoError(t, m.compare(ctx, store, b.snap))
}

// dieBeforePublish publishes a fold whose folder loses the store when all tables hold it and the heads do not name it.
func dieBeforePublish(ctx context.Context, t *testing.T, p *Publisher, f *Prepared) {
	t.Helper()
	mortal, kill := mortalStore(p.o.Store)
	p.moveTo(ctx, t, mortal)
	p.o.Step = func(s Step) {
		if s == "publish.before" {
			kill()
		}
	}
	_, err := p.Publish(ctx, f)
	require.ErrorIs(t, err, errCrash)
}

// moveTo lets a publisher make all its calls on another store with the same objects.
func (p *Publisher) moveTo(ctx context.Context, t require.TestingT, store objstore.Store) {
	p.o.Store = store
	var err error
	p.snap, err = p.resolve(ctx)
	require.NoError(t, err)
}

// TestLostMetadataFallsBackToTransactions: somebody replaced the table's metadata after our commit. The transactions above the head still name the fold,
// also when a foreign commit took the slot above our base; without them nobody knows, and the table is suspended.
func TestLostMetadataFallsBackToTransactions(t *testing.T) {
	cases := map[string]struct{ cleaned, between bool }{"plain": {}, "a foreign commit came first": {between: true}, "cleaned up": {cleaned: true}}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			store, log := crashGraph(t)
			p, err := Claim(ctx, options(store), "first")
			require.NoError(t, err)
			f, err := plan(ctx, p, log, 6)
			require.NoError(t, err)
			m := newModel()
			m.apply(log, 0, 6)
			if c.between {
				require.NoError(t, foreign{store}.append(ctx, testTables[0], "theirs", 7))
				m.tables[testTables[0]]["theirs"] = 7
			}
			dieBeforePublish(ctx, t, p, f)
			for _, key := range testTables {
				loseMetadata(t, store, key)
				if c.cleaned {
					require.NoError(t, foreign{store}.cleanUp(ctx, key))
				}
			}
			b, err := Claim(ctx, options(store), "successor")
			require.NoError(t, err)
			if c.cleaned {
				require.NotZero(t, b.Recovered().Rejects, "the dead letters hold the fold, and say that it goes on without them")
				for _, key := range testTables {
					head, _ := b.snap.Table(key)
					require.Equal(t, heads.StateSuspended, head.Head.State)
					require.NotEmpty(t, head.Head.Hold.Reason)
				}
				return
			}
			require.NoError(t, m.compare(ctx, store, b.snap))
		})
	}
}

func loseMetadata(t *testing.T, store objstore.Store, key string) {
	table, err := foreign{store}.open(context.Background(), key)
	require.NoError(t, err)
	tx := lance.NewTransaction(table, &lance.UpdateConfig{TableMetadata: &lance.MapUpdate{Replace: true}})
	_, err = table.Commit(context.Background(), tx, lance.CommitOptions{})
	require.NoError(t, err)
}
