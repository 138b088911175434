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
	"github.com/foldline/foldline/lance"
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
// moves only when everything waits. The fold ends after commitRounds attempts with a conflict that says how many, with a pause between them and a bounded
// number of requests in each; a reader sees nothing of it, and the other tables hold their part. When the other program stops, a claim completes the fold.
func TestReportC112AForeignWriterIsAlwaysFaster(t *testing.T) {
	for _, latency := range []time.Duration{0, 5 * time.Second} {
		t.Run(latency.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { starve(t, latency) })
		})
	}
}

func starve(t *testing.T, latency time.Duration) {
	ctx := context.Background()
	store, log := crashGraph(t)
	counted, rival := countstore.New(store), &fasterWriter{}
	p, err := Claim(ctx, options(rival.around(t, counted, store, latency)), "folder")
	require.NoError(t, err)
	f, err := plan(ctx, p, log, 6)
	require.NoError(t, err)
	rival.armed.Store(true)
	counted.Reset()
	began := time.Now()
	_, err = p.Publish(ctx, f)
	took := time.Since(began)
	rival.armed.Store(false)

	require.ErrorIs(t, err, lance.ErrConflict)
	require.ErrorContains(t, err, fmt.Sprintf("attempt %d:", commitRounds))
	require.Equal(t, commitRounds, rival.won)
	const each = 20 // of an attempt, beside two for each fragment: each of theirs adds one, whose keys are read
	requests := counted.Under(tableRoot(testTables[0])).Requests()
	require.LessOrEqual(t, requests, commitRounds*(each+commitRounds))
	t.Logf("%d attempts, %d requests, %v", rival.won, requests, took)
	if latency == 0 { // all that is waited are the pauses: up to 10.2 ms more after each attempt, and 102 ms from the tenth on
		require.Greater(t, took, 50*time.Millisecond)
		require.Less(t, took, 2*time.Second)
	}
	d := &deadFolder{t: t, store: store, log: log, fold: f, record: recordName(f.Fold, p.epoch), old: p.snap}
	d.sees(3)
	require.Subset(t, d.holders(), []string{testTables[1]}, "the others did not wait for it")

	successor := d.succeed()
	require.Equal(t, f.Fold, successor.Recovered().Commit.Fold)
	require.NoError(t, resumeOn(ctx, store, log))
	want := wholeModel(log)
	for i := range rival.won {
		want.tables[testTables[0]][fmt.Sprint("theirs", i+1)] = int64(i + 1)
	}
	snap, err := heads.Resolve(ctx, store, testRoot)
	require.NoError(t, err)
	require.NoError(t, want.compare(ctx, store, snap))
}
