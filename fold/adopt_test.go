package fold

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/testkit"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/publisher"
)

// adopting is a running folder whose clock stands until the test moves it.
type adopting struct {
	*world
	seconds, readings atomic.Int64 // of the clock
	published         chan *publisher.Published
}

func newAdopting(t *testing.T) *adopting {
	a := &adopting{world: newWorld(t, objstore.NewMemory(), 1, noteTable("node:T"), noteTable("node:Idle")), published: make(chan *publisher.Published, 100)}
	a.opts.Interval = time.Millisecond
	a.opts.Notify = func(_ context.Context, p *publisher.Published) { a.published <- p }
	a.opts.Clock = func() time.Time {
		a.readings.Add(1)
		return time.Unix(1_800_000_000+a.seconds.Load(), 0)
	}
	a.claim(a.store)
	return a
}

// run runs the folder until the function that it returns is called.
func (a *adopting) run(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.folder.Run(ctx) }()
	return func() {
		cancel()
		require.NoError(t, testkit.Receive(t, "the end of Run", ended))
	}
}

// turns waits until the folder has looked at its clock some more times, which it does in every turn.
func (a *adopting) turns(t *testing.T) {
	from := a.readings.Load()
	testkit.WaitFor(t, "more turns", func() bool { return a.readings.Load() > from+10 })
}

func (a *adopting) head(t *testing.T, key string) heads.Head {
	table, ok := a.heads().Table(key)
	require.True(t, ok)
	return table.Head
}

// TestRunAdoptsIdleTables: what another writer commits to a table that no fold touches is in the heads after the interval, and not before; folds go
// on over it.
func TestRunAdoptsIdleTables(t *testing.T) {
	a := newAdopting(t)
	defer a.close()
	stop := a.run(t)
	before := a.heads().Version
	a.foreign("node:Idle", true, map[string]int64{"theirs": 1})
	a.seconds.Store(59)
	a.turns(t)
	require.Equal(t, before, a.heads().Version, "the interval has not passed")

	a.seconds.Store(60)
	adopted := testkit.Receive(t, "the adoption", a.published)
	require.Equal(t, heads.KindAdopt, adopted.Commit.Kind)
	require.Equal(t, before+1, adopted.Snapshot.Version)
	require.Equal(t, a.newestVersion("node:Idle"), a.head(t, "node:Idle").Version)
	require.Equal(t, []string{"theirs=1"}, a.scan("node:Idle"))

	a.seconds.Store(120)
	a.turns(t)
	require.Equal(t, before+1, a.heads().Version, "nothing to adopt is no commit")
	require.Empty(t, a.published)

	a.write("node:Idle", upsert("theirs", 2), insert("theirs", 3))
	testkit.Receive(t, "the fold", a.published)
	stop()
	require.Equal(t, []string{"theirs=2"}, a.scan("node:Idle"))
	require.Len(t, a.rejects(), 1)
}

// TestFoldAdoptsWhenTheHeadIsGone: a foreign cleanup that took the head of a table does not stall folds until the interval has passed; the rows
// land on the version that is left.
func TestFoldAdoptsWhenTheHeadIsGone(t *testing.T) {
	a := newAdopting(t)
	defer a.close()
	a.write("node:T", upsert("ours", 1), upsert("both", 1))
	a.fold()
	require.Equal(t, heads.KindFold, testkit.Receive(t, "the fold", a.published).Commit.Kind)
	a.claim(a.store) // the new folder has not opened the table yet
	a.foreign("node:T", true, map[string]int64{"theirs": 100, "both": 100})
	a.cleanUp("node:T")
	a.write("node:T", upsert("both", 2), remove("theirs"), upsert("new", 2))
	a.fold()
	require.Equal(t, heads.KindAdopt, testkit.Receive(t, "the adoption", a.published).Commit.Kind)
	require.Equal(t, heads.KindFold, testkit.Receive(t, "the fold", a.published).Commit.Kind)
	require.Equal(t, []string{"both=2", "new=2", "ours=1"}, a.scan("node:T"))
}

// cleanUp deletes all versions of a table but the newest, as another engine's cleanup does.
func (w *world) cleanUp(key string) {
	w.t.Helper()
	entry, _ := w.heads().Table(key)
	latest, err := lance.Open(w.ctx, w.store, entry.Path)
	require.NoError(w.t, err)
	old, err := latest.Versions(w.ctx, latest.Version()-1)
	require.NoError(w.t, err)
	require.NoError(w.t, latest.DeleteVersions(w.ctx, old))
}

// refusing answers Adopt with an error; everything else is an empty graph.
type refusing struct {
	failing
	err error
}

func (r *refusing) Adopt(context.Context) (*heads.Snapshot, error) { return nil, r.err }

// TestRunAndFailedAdoptions: an adoption that fails leaves folds alone, unless the folder is fenced.
func TestRunAndFailedAdoptions(t *testing.T) {
	for name, c := range map[string]struct{ adopt, run error }{
		"fenced":         {publisher.ErrFenced, ErrFenced},
		"damaged":        {lance.ErrCorrupt, nil},
		"unpublished":    {publisher.ErrConflict, nil},
		"used up":        {publisher.ErrUsedUp, nil},
		"lost an answer": {lance.ErrUnknownOutcome, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var seconds atomic.Int64
			f, _ := failingFolder(t, Options{Clock: func() time.Time { return time.Unix(60*seconds.Add(1), 0) }})
			p := &refusing{failing{refreshes: make(chan struct{}, 100)}, c.adopt}
			f.publisher = p
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- f.Run(ctx) }()
			if c.run == nil {
				for range 3 {
					testkit.Receive(t, "another fold", p.refreshes)
				}
				cancel()
			}
			require.ErrorIs(t, testkit.Receive(t, "the end of Run", ended), c.run)
			cancel()
		})
	}
}
