package publisher

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/countstore"
	"github.com/foldline/foldline/objstore/faultstore"
)

// fasterWriter is a store of a folder, slow, on which another program commits a row to a table right before each put of the folder's there.
type fasterWriter struct {
	armed atomic.Bool
	won   int
}

func (w *fasterWriter) around(t *testing.T, inner, theirs objstore.Store, latency time.Duration) objstore.Store {
	put := faultstore.Under(tableRoot(testTables[0])+"/_versions/", faultstore.PutIfAbsent)
	return faultstore.New(inner, func(ctx context.Context, c faultstore.Call) faultstore.Fault {
		if !w.armed.Load() {
			return faultstore.Fault{}
		}
		if put(c) {
			w.won++
			require.NoError(t, foreign{theirs}.append(ctx, testTables[0], fmt.Sprint("theirs", w.won), int64(w.won)))
		}
		return faultstore.Fault{Delay: latency}
	})
}

// Report C112: another program is faster than each of our commits to a table, on a store that answers at once and on one that takes five seconds. The clock
// moves only when everything waits. The wait that is declared, and a few tries, then the table is suspended with the reason named and its rows are dead
// letters; the other tables are published. The tries have pauses between them, and a bounded number of requests each. When the other program stops, the table
// is taken back.
func TestReportC112AForeignWriterIsAlwaysFaster(t *testing.T) {
	for _, latency := range []time.Duration{0, 5 * time.Second} {
		t.Run(latency.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { starve(t, latency) })
		})
	}
}

const starveAfter = 30 * time.Second

// patient are options that wait as long as the default does.
func patient(store objstore.Store) Options {
	o := options(store)
	o.SuspendAfter = starveAfter
	return o
}

func starve(t *testing.T, latency time.Duration) {
	ctx := context.Background()
	store, log := crashGraph(t)
	counted, rival := countstore.New(store), &fasterWriter{}
	p, err := Claim(ctx, patient(rival.around(t, counted, store, latency)), "folder")
	require.NoError(t, err)
	f, err := plan(ctx, p, log, 6)
	require.NoError(t, err)
	before, _ := p.snap.Table(testTables[0])
	rival.armed.Store(true)
	counted.Reset()
	began := time.Now()
	published, err := p.Publish(ctx, f)
	took := time.Since(began)
	rival.armed.Store(false)
	require.NoError(t, err)

	require.GreaterOrEqual(t, rival.won, leastTries)
	require.GreaterOrEqual(t, took, starveAfter)
	const each = 20 // requests of a try, beside two for each fragment: each of theirs adds one, whose keys are read
	requests := counted.Under(tableRoot(testTables[0])).Requests()
	require.LessOrEqual(t, requests, rival.won*(each+2*rival.won))
	t.Logf("%d tries, %d requests, %v", rival.won, requests, took)
	if latency == 0 { // tries cost nothing, so all that is waited are the pauses, and the last may begin right before the end
		require.Less(t, took, starveAfter+6*time.Second)
		require.Less(t, rival.won, 60)
	}

	head, _ := published.Snapshot.Table(testTables[0])
	require.Equal(t, heads.StateSuspended, head.Head.State)
	require.Contains(t, head.Head.Hold.Reason, ErrStarved.Error())
	require.Equal(t, before.Head.Version, head.Head.Version)
	want := newModel()
	want.apply(log, 0, 6)
	got, err := content(ctx, store, published.Snapshot, testTables[1])
	require.NoError(t, err)
	require.Equal(t, want.tables[testTables[1]], got, "the others did not wait for it")
	require.ElementsMatch(t, []string{`upsert table_unavailable {"id":"a","v":10}`, `delete table_unavailable {"id":"b"}`},
		rejectRows(t, store, published.Snapshot, testTables[0]))

	resumed, err := p.Resume(ctx, testTables[0])
	require.NoError(t, err)
	require.Equal(t, heads.StateLive, resumed.Head.State)
	require.NoError(t, foldRest(ctx, p, log), "the same folder goes on")
}

// Report C112, X3: the answer to the last try before the end is lost, and it has landed: the table is not given up.
func TestReportC112TheLastTryHasLanded(t *testing.T) {
	ctx := context.Background()
	store, log := crashGraph(t)
	p, err := Claim(ctx, options(store), "folder")
	require.NoError(t, err)
	put := faultstore.Under(tableRoot(testTables[0])+"/_versions/", faultstore.PutIfAbsent)
	tries := 0
	p.o.Store = faultstore.New(store, func(ctx context.Context, c faultstore.Call) faultstore.Fault {
		if !put(c) {
			return faultstore.Fault{}
		}
		if tries++; tries < leastTries {
			require.NoError(t, foreign{store}.append(ctx, testTables[0], fmt.Sprint("theirs", tries), 1))
			return faultstore.Fault{}
		}
		return faultstore.Fault{After: fmt.Errorf("%w: lost", objstore.ErrUnknownOutcome)}
	})
	f, err := plan(ctx, p, log, 6)
	require.NoError(t, err)
	published, err := p.Publish(ctx, f)
	require.NoError(t, err)
	require.Equal(t, leastTries, tries)
	head, _ := published.Snapshot.Table(testTables[0])
	require.Equal(t, heads.StateLive, head.Head.State)
	require.Empty(t, rejectRows(t, store, published.Snapshot, testTables[0]))
}

// Report C112: a claim whose barrier on a table always loses goes on without that table.
func TestReportC112ABarrierIsStarved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		store, log := crashGraph(t)
		rival := &fasterWriter{}
		rival.armed.Store(true)
		began := time.Now()
		p, err := Claim(ctx, patient(rival.around(t, store, store, time.Second)), "folder")
		took := time.Since(began)
		rival.armed.Store(false)
		require.NoError(t, err)
		require.Less(t, took, 4*starveAfter)
		require.GreaterOrEqual(t, rival.won, leastTries)
		head, _ := p.snap.Table(testTables[0])
		require.Equal(t, heads.StateSuspended, head.Head.State)
		require.Contains(t, head.Head.Hold.Reason, ErrStarved.Error())
		_, err = p.Resume(ctx, testTables[0])
		require.NoError(t, err)
		require.NoError(t, foldRest(ctx, p, log))
	})
}

// Report C112: the slot of every graph commit goes to another. The claim ends after manifestAttempts with a conflict, and pauses that grow.
func TestReportC112AGraphCommitIsStarved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		store, _ := crashGraph(t)
		put := faultstore.Under(heads.Join(testRoot, heads.ManifestPath)+"/_versions/", faultstore.PutIfAbsent)
		lost := 0
		faulty := faultstore.New(store, func(ctx context.Context, c faultstore.Call) faultstore.Fault {
			if put(c) {
				lost++
				_, err := ClaimLane(ctx, options(store), LaneClaim{Incarnation: testIncarnation})
				require.NoError(t, err)
			}
			return faultstore.Fault{}
		})
		_, err := Claim(ctx, options(faulty), "folder")
		require.ErrorIs(t, err, ErrConflict)
		require.Equal(t, manifestAttempts, lost)
	})
}
