package publisher

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/fence"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/faultstore"
)

// deadFolder is what a folder left that died at a step of its second fold: entries 4 to 6 of the small log.
type deadFolder struct {
	t      *testing.T
	store  objstore.Store
	log    []entry
	fold   *Prepared
	record string
	old    *heads.Snapshot
}

// mortalStore fails every call once kill was called, as for a process that is gone.
func mortalStore(inner objstore.Store) (store objstore.Store, kill func()) {
	var dead atomic.Bool
	return faultstore.New(inner, func(context.Context, faultstore.Call) faultstore.Fault {
		if dead.Load() {
			return faultstore.Fault{Before: errCrash}
		}
		return faultstore.Fault{}
	}), func() { dead.Store(true) }
}

// dieAt lets a folder die at a step. Commits of the tables in held stand before their put then, and never make it.
func dieAt(t *testing.T, step Step, held ...string) *deadFolder {
	t.Helper()
	ctx := context.Background()
	store, log := crashGraph(t)
	mortal, kill := mortalStore(store)
	p, err := Claim(ctx, options(mortal), "first")
	require.NoError(t, err)
	f, err := plan(ctx, p, log, 6)
	require.NoError(t, err)
	d := &deadFolder{t: t, store: store, log: log, fold: f, record: recordName(f.Fold, p.epoch), old: p.snap}
	died := make(chan struct{})
	var once sync.Once
	p.o.Step = func(s Step) {
		if key, ok := strings.CutSuffix(strings.TrimPrefix(string(s), "commit."), ".before"); ok && slices.Contains(held, key) {
			<-died
		}
		if s == step {
			once.Do(func() { kill(); close(died) })
		}
	}
	_, err = p.Publish(ctx, f)
	if step != "publish.after" {
		require.ErrorIs(t, err, errCrash)
	}
	return d
}

// sees requires that a reader sees the entries up to through, and nothing of later ones.
func (d *deadFolder) sees(through uint64) *heads.Snapshot {
	d.t.Helper()
	ctx := context.Background()
	snap, err := heads.Resolve(ctx, d.store, testRoot)
	require.NoError(d.t, err)
	m := newModel()
	m.apply(d.log, 0, through)
	require.NoError(d.t, m.compare(ctx, d.store, snap))
	return snap
}

// succeed claims and returns the successor.
func (d *deadFolder) succeed() *Publisher {
	d.t.Helper()
	p, err := Claim(context.Background(), options(d.store), "successor")
	require.NoError(d.t, err)
	return p
}

// goesOn folds what is left and requires that all is there once, in as many folds as there were cuts.
func (d *deadFolder) goesOn() {
	d.t.Helper()
	ctx := context.Background()
	require.NoError(d.t, resumeOn(ctx, d.store, d.log))
	require.NoError(d.t, wholeModel(d.log).check(ctx, d.store, d.log))
	require.Nil(d.t, d.succeed().Recovered(), "a further pass finds nothing to do")
	commits, err := heads.Log(ctx, d.store, testRoot, 0)
	require.NoError(d.t, err)
	cuts := map[uint64]int{}
	for _, c := range commits {
		for _, cut := range c.Cuts {
			cuts[cut.Through]++
		}
	}
	require.Equal(d.t, map[uint64]int{3: 1, 6: 1, 7: 1}, cuts)
}

// holders are the tables whose newest version holds the fold.
func (d *deadFolder) holders() []string {
	d.t.Helper()
	var out []string
	for _, t := range d.old.Tables {
		newest, err := foreign{d.store}.at(context.Background(), t.Path)
		require.NoError(d.t, err)
		if newest.Metadata()[fence.MetaFold] == d.record {
			out = append(out, t.Key)
		}
	}
	slices.Sort(out)
	return out
}

// keepsTransactions requires that the successor has put the same transactions that were planned.
func (d *deadFolder) keepsTransactions(p *Publisher) {
	d.t.Helper()
	for _, part := range d.fold.Tables {
		now, _ := p.snap.TableByID(part.Table.ID)
		require.Equal(d.t, part.Tx.UUID, now.Head.Transaction, part.Table.Key)
	}
}

// Crash C8, c0: the cut is chosen, nothing is recorded. No effect, and the same cut is folded later.
func TestCrashC8CutChosenNotRecorded(t *testing.T) {
	t.Parallel()
	d := dieAt(t, "record.before")
	require.Empty(t, d.holders())
	d.sees(3)
	require.Nil(t, d.succeed().Recovered())
	d.goesOn()
}

// Crash C9, c1: the record is there, no table holds the fold. Nothing is visible, it is planned afresh, and its number is not used again.
func TestCrashC9RecordedNothingCommitted(t *testing.T) {
	t.Parallel()
	d := dieAt(t, "record.after", testTables...)
	require.Empty(t, d.holders())
	d.sees(3)
	p := d.succeed()
	require.Nil(t, p.Recovered())
	require.Equal(t, d.fold.Fold+1, p.NextFold())
	d.goesOn()
}

// Crash C10, c2: one table of three holds the fold. It is not visible, and the successor puts the same transactions on the others.
func TestCrashC10TableOneOfNCommitted(t *testing.T) {
	t.Parallel()
	for i, first := range testTables {
		t.Run(strings.ReplaceAll(first, ":", "_"), func(t *testing.T) {
			others := slices.Delete(slices.Clone(testTables), i, i+1)
			d := dieAt(t, Step("commit."+first+".after"), others...)
			require.Equal(t, []string{first}, d.holders())
			d.sees(3)
			p := d.succeed()
			require.Equal(t, d.fold.Fold, p.Recovered().Commit.Fold)
			d.keepsTransactions(p)
			d.sees(6)
			d.goesOn()
		})
	}
}

// Crash C11, c4: all tables hold the fold, the heads do not name it. Readers stay on the old state, and it is rolled forward once.
func TestCrashC11CommittedNotPublished(t *testing.T) {
	t.Parallel()
	d := dieAt(t, "publish.before")
	require.Len(t, d.holders(), len(testTables)+1)
	d.sees(3)
	p := d.succeed()
	require.Equal(t, d.fold.Fold, p.Recovered().Commit.Fold)
	d.keepsTransactions(p)
	d.sees(6)
	d.goesOn()
}

// Crash C13, c6: published, and dead before it said so. The successor finds the cut in the heads and folds none of it again.
func TestCrashC13PublishedNotTold(t *testing.T) {
	t.Parallel()
	d := dieAt(t, "publish.after")
	before := d.sees(6)
	p := d.succeed()
	require.Nil(t, p.Recovered())
	require.Equal(t, before.Fold, p.snap.Fold)
	d.goesOn()
}

// Crash C15: dead letters written and the fold not published, and the reverse: a reader sees both or neither, and the reject counts once.
func TestCrashC15DeadLettersAndPublish(t *testing.T) {
	t.Parallel()
	for _, step := range []Step{"commit._rejects.before", "commit._rejects.after", "publish.before"} {
		t.Run(string(step), func(t *testing.T) {
			d := dieAt(t, step)
			d.sees(3)
			require.NotNil(t, d.succeed().Recovered())
			snap := d.sees(6)
			rejects, err := rejectIDs(context.Background(), d.store, snap)
			require.NoError(t, err)
			require.Len(t, rejects, 1)
			d.goesOn()
		})
	}
}

// Crash C17: the record of a half committed fold is lost, damaged, or another's. The successor refuses with an error that names it and changes no
// head; when the record is back it completes the fold.
func TestCrashC17RecordIsLost(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, spoil := range map[string]func(data []byte) []byte{
		"lost":      func([]byte) []byte { return nil },
		"empty":     func([]byte) []byte { return []byte{} },
		"truncated": func(data []byte) []byte { return data[:len(data)/2] },
		"flipped":   func(data []byte) []byte { data[len(data)/2] ^= 1; return data },
	} {
		t.Run(name, func(t *testing.T) {
			d := dieAt(t, Step("commit."+testTables[0]+".after"), testTables[1:]...)
			key := heads.Join(testRoot, recordPath(d.record))
			good, err := d.store.Get(ctx, key)
			require.NoError(t, err)
			require.NoError(t, d.store.Delete(ctx, key))
			if bad := spoil(slices.Clone(good)); bad != nil {
				require.NoError(t, d.store.Put(ctx, key, bad))
			}
			_, err = Claim(ctx, options(d.store), "successor")
			require.ErrorIs(t, err, ErrCorrupt)
			require.ErrorContains(t, err, d.record)
			d.sees(3)
			require.NoError(t, d.store.Put(ctx, key, good))
			require.NotNil(t, d.succeed().Recovered())
			d.goesOn()
		})
	}
}

// Report C114: objects that were listed are gone when they are looked at, because another process was faster: nobody notices.
func TestListedObjectsThatAreGone(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	d := dieAt(t, "publish.after")
	p := d.succeed()
	left, err := d.store.List(ctx, heads.Join(testRoot, heads.FoldsPath)+"/", "", 0)
	require.NoError(t, err)
	require.NotEmpty(t, left)
	for _, object := range left {
		require.NoError(t, d.store.Delete(ctx, object.Key))
	}
	_, err = publishThrough(ctx, p, d.log, 7)
	require.NoError(t, err)
	require.NoError(t, p.Tidy(ctx))
	d.goesOn()
}
