package fold

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/testkit"
	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/faultstore"
	"github.com/foldline/foldline/publisher"
)

// suspendTable suspends a table as a claim or an adoption does that could not read it, long enough ago that its rows do not wait any more.
func (w *world) suspendTable(key string) {
	w.t.Helper()
	_, err := w.folder.publisher.Suspend(w.ctx, map[heads.TableID]error{w.table(key).ID: errors.New("a fault that has passed")})
	require.NoError(w.t, err)
	w.clock.seconds.Add(60)
}

// missed is what a suspended table misses, over three folds: the last write of each key counts, and two inserts lose.
func (w *world) missed() {
	w.t.Helper()
	w.write("node:T", upsert("kept", 2), insert("first", 3), upsert("gone", 4))
	w.fold()
	w.write("node:T", upsert("first", 5), insert("kept", 6), remove("gone"))
	w.write("node:T", insert("first", 7), insert("late", 8))
	w.fold()
	w.write("node:T", remove("late"), upsert("last", 9))
	w.fold()
}

// requireCaughtUp requires what missed leaves behind after a replay.
func (w *world) requireCaughtUp() {
	w.t.Helper()
	require.Equal(w.t, []string{"first=5", "kept=2", "last=9"}, w.scan("node:T"))
	require.ElementsMatch(w.t, []string{`node:T insert key_exists {"id":"kept","value":6}`, `node:T insert key_exists {"id":"first","value":7}`}, w.rejects())
}

// TestResumeReplaysInOrder: a table that is taken back holds what it would hold had it never been away, and takes new rows after that (architecture 7.6).
func TestResumeReplaysInOrder(t *testing.T) {
	w := damageable(t)
	defer w.close()
	w.suspendTable("node:T")
	w.missed()
	require.Len(t, w.rejects(), 10)
	require.Equal(t, []string{"kept=1"}, w.scan("node:T"))

	table, r, err := w.folder.resume(t.Context(), "node:T")
	require.NoError(t, err)
	require.Equal(t, heads.StateLive, table.Head.State)
	require.Equal(t, ReplayReport{Replayed: 8, Rejected: 2}, r)
	w.requireCaughtUp()
	w.write("node:T", upsert("kept", 100))
	w.fold()
	require.Contains(t, w.scan("node:T"), "kept=100")

	_, r, err = w.folder.resume(t.Context(), "node:T")
	require.NoError(t, err)
	require.Zero(t, r, "a table that is not held has nothing to replay")
}

// TestResumeSurvivesEveryCrash cuts the folder off at the k-th store call of a resume, for every k; the successor's resume does what is left, once.
// report C164.
func TestResumeSurvivesEveryCrash(t *testing.T) {
	faults := map[string]func(k int) faultstore.Injector{
		"dead": func(k int) faultstore.Injector { return faultstore.FromCall(k, faultstore.Ops(), errKilled) },
		"lost": func(k int) faultstore.Injector { return faultstore.Lose(k, faultstore.Ops(faultstore.Writes()...)) },
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			for k := 1; ; k++ {
				if !resumeUnder(t, fault(k)) || t.Failed() {
					require.Greater(t, k, 8, "a resume has more calls than that")
					return
				}
			}
		})
	}
}

// resumeUnder resumes a table under a fault and then without, and reports whether the fault was met.
func resumeUnder(t *testing.T, fault faultstore.Injector) (met bool) {
	w := damageable(t)
	defer w.close()
	w.suspendTable("node:T")
	w.missed()
	var armed, hit atomic.Bool
	w.claim(faultstore.New(w.store, func(ctx context.Context, c faultstore.Call) (f faultstore.Fault) {
		if armed.Load() {
			f = fault(ctx, c)
			hit.Store(hit.Load() || f.Before != nil || f.After != nil)
		}
		return f
	}))
	armed.Store(true)
	_, _, err := w.folder.resume(t.Context(), "node:T")
	armed.Store(false)
	if !hit.Load() {
		require.NoError(t, err)
	}
	w.claim(w.store)
	_, _, err = w.folder.resume(t.Context(), "node:T")
	require.NoError(t, err)
	w.requireCaughtUp()
	w.write("node:T", upsert("new", 1))
	w.fold()
	require.Contains(t, w.scan("node:T"), "new=1")
	return hit.Load()
}

// TestResumeKnowsWhatHasLanded: the commit of a fold landed, nobody could tell, and its rows were rejected too. A strict insert among them is in the
// table: it is no dead letter after the replay.
func TestResumeKnowsWhatHasLanded(t *testing.T) {
	w := damageable(t)
	defer w.close()
	w.suspendTable("node:T")
	w.write("node:T", insert("landed", 1), insert("other", 1), upsert("kept", 5))
	w.fold()
	w.foreign("node:T", true, map[string]int64{"landed": 1, "other": 2})
	_, r, err := w.folder.resume(t.Context(), "node:T")
	require.NoError(t, err)
	require.Equal(t, ReplayReport{Replayed: 2, Rejected: 1}, r)
	require.Equal(t, []string{"kept=5", "landed=1", "other=2"}, w.scan("node:T"))
	require.Equal(t, []string{`node:T insert key_exists {"id":"other","value":1}`}, w.rejects())
}

// rival is another program that commits a row to a table right before each put of the folder's there. Reading the table's files takes a minute.
type rival struct {
	w     *world
	table string
	path  string
	armed bool
	won   int
}

func (r *rival) between(_ context.Context, c faultstore.Call) faultstore.Fault {
	switch {
	case !r.armed:
	case faultstore.Under(r.path+"/_versions/", faultstore.PutIfAbsent)(c):
		r.won++
		r.w.foreign(r.table, false, map[string]int64{fmt.Sprint("theirs", r.won): 1})
	case faultstore.Under(r.path+"/data/", faultstore.Get, faultstore.GetRange, faultstore.GetTail)(c):
		r.w.clock.seconds.Add(60)
	}
	return faultstore.Fault{}
}

// TestStarvedTableIsTakenBack: another writer wins each try of a fold on a table. The table is suspended and says why, the other is published; a replay that the
// same happens to leaves the dead letters as they are, and one after that catches up (report C112).
func TestStarvedTableIsTakenBack(t *testing.T) {
	w := damageable(t)
	defer w.close()
	w.write("node:T", upsert("kept", 1))
	w.fold()
	rival := &rival{w: w, table: "node:T", path: w.table("node:T").Path}
	faulty := faultstore.New(w.store, rival.between)
	w.claim(faulty)

	rival.armed = true
	w.write("node:T", upsert("kept", 2), insert("new", 3))
	w.write("node:Other", upsert("goes on", 1))
	w.fold()
	require.Equal(t, heads.StateSuspended, w.table("node:T").Head.State)
	require.Contains(t, w.table("node:T").Head.Hold.Reason, publisher.ErrStarved.Error())
	require.Contains(t, w.scan("node:Other"), "goes on=1")
	letters := w.rejects()
	require.ElementsMatch(t, []string{`node:T upsert table_unavailable {"id":"kept","value":2}`, `node:T insert table_unavailable {"id":"new","value":3}`}, letters)

	_, _, err := w.folder.resume(w.ctx, "node:T")
	require.ErrorIs(t, err, publisher.ErrStarved)
	rival.armed = false
	w.claim(faulty)
	require.Equal(t, letters, w.rejects())

	_, _, err = w.folder.resume(w.ctx, "node:T")
	require.NoError(t, err)
	require.Empty(t, w.rejects())
	require.Subset(t, w.scan("node:T"), []string{"kept=2", "new=3"})
}

// TestReplacedTableIsTakenBack: somebody overwrote the table. It is frozen, what it misses are dead letters, and resuming it continues on what is there.
func TestReplacedTableIsTakenBack(t *testing.T) {
	w := damageable(t)
	defer w.close()
	w.overwrite("node:T", map[string]int64{"theirs": 1})
	_, err := w.folder.publisher.Adopt(t.Context())
	require.NoError(t, err)
	require.Equal(t, heads.StateReplaced, w.table("node:T").Head.State)
	require.Contains(t, w.table("node:T").Head.Hold.Reason, "Overwrite")
	w.write("node:T", upsert("ours", 2))
	require.Equal(t, 1, w.fold().Rejected)
	_, _, err = w.folder.resume(t.Context(), "node:T")
	require.NoError(t, err)
	require.Equal(t, []string{"ours=2", "theirs=1"}, w.scan("node:T"))
	require.Empty(t, w.rejects())
}

// TestReplayOfSingleRejects: dead letters of any code can be replayed by id, or all of a table; those that fail again stay, with the new reason.
func TestReplayOfSingleRejects(t *testing.T) {
	w := damageable(t)
	defer w.close()
	w.write("node:T", insert("kept", 2))
	w.write("node:Other", insert("kept", 2), insert("kept", 3))
	w.fold()
	require.Len(t, w.rejects(), 3)
	w.write("node:Other", remove("kept"))
	w.fold()
	ids := w.rejectIDs("node:Other")
	require.Len(t, ids, 2)
	r, err := w.folder.replay(t.Context(), "node:Other", Selection{IDs: ids[1:]})
	require.NoError(t, err)
	require.Equal(t, ReplayReport{Replayed: 1}, r)
	require.Equal(t, []string{"kept=3"}, w.scan("node:Other"))
	r, err = w.folder.replay(t.Context(), "node:Other", Selection{})
	require.NoError(t, err)
	require.Equal(t, ReplayReport{Rejected: 1}, r)
	require.ElementsMatch(t, []string{`node:T insert key_exists {"id":"kept","value":2}`, `node:Other insert key_exists {"id":"kept","value":2}`}, w.rejects())
	r, err = w.folder.replay(t.Context(), "node:Other", Selection{IDs: []string{"none"}})
	require.NoError(t, err)
	require.Zero(t, r)
}

// TestPauseGivesAWindow: nothing is committed to a paused table; rows that come all the same are dead letters and replayed when the pause ends, by
// whoever is the folder then.
func TestPauseGivesAWindow(t *testing.T) {
	w := damageable(t)
	defer w.close()
	w.write("node:T", upsert("before", 1))
	pause := func(length time.Duration) heads.Table {
		var table heads.Table
		stop := w.runFolder()
		defer stop()
		table, err := w.folder.Pause(t.Context(), "node:T", "a merge", length)
		require.NoError(t, err)
		return table
	}
	table := pause(10 * time.Minute)
	require.Equal(t, heads.StatePaused, table.Head.State)
	require.Equal(t, w.clock.now().Add(10*time.Minute).UTC(), table.Head.Hold.Until)
	require.Equal(t, []string{"before=1", "kept=1"}, w.scan("node:T"), "what was acknowledged before is folded first")

	version := w.newestVersion("node:T")
	w.write("node:T", upsert("kept", 2), insert("straggler", 3))
	w.write("node:Other", upsert("goes on", 4))
	require.Equal(t, 2, w.fold().Rejected)
	require.Contains(t, w.scan("node:Other"), "goes on=4")
	require.Equal(t, version, w.newestVersion("node:T"))
	w.foreign("node:T", true, map[string]int64{"merged": 5})

	w.clock.seconds.Add(590)
	w.write("node:T", upsert("last", 6))
	require.True(t, w.fold().Empty(), "the pause ends soon: the row waits")
	w.claim(w.store) // the barrier of a claim is metadata only
	w.clock.seconds.Add(10)
	w.fold()
	require.Equal(t, heads.StateLive, w.table("node:T").Head.State)
	require.Equal(t, []string{"before=1", "kept=2", "last=6", "merged=5", "straggler=3"}, w.scan("node:T"))
	require.Empty(t, w.rejects())
}

// TestPauseOfADamagedTableEndsInASuspension.
func TestPauseOfADamagedTableEndsInASuspension(t *testing.T) {
	w := damageable(t)
	defer w.close()
	_, err := w.folder.publisher.Pause(t.Context(), "node:T", "a merge", w.clock.now().Add(time.Minute))
	require.NoError(t, err)
	require.NoError(t, testkit.Damages()[0].Do(t.Context(), w.store, w.table("node:T").Path))
	w.clock.seconds.Add(60)
	w.write("node:Other", upsert("goes on", 1))
	w.fold()
	require.Equal(t, heads.StateSuspended, w.table("node:T").Head.State)
	require.Contains(t, w.scan("node:Other"), "goes on=1")
	_, err = w.folder.publisher.Pause(t.Context(), "node:T", "a merge", w.clock.now().Add(time.Minute))
	require.ErrorIs(t, err, publisher.ErrConflict)
}

// runFolder runs the folder; the function stops it.
func (w *world) runFolder() (stop func()) {
	ctx, cancel := context.WithCancel(w.ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.folder.Run(ctx) }()
	return func() {
		cancel()
		require.NoError(w.t, <-ended)
	}
}

// TestTasksOfAStoppedFolder: nobody waits for a folder that has stopped.
func TestTasksOfAStoppedFolder(t *testing.T) {
	f, _ := failingFolder(t, Options{}, fmt.Errorf("first: %w", publisher.ErrFenced))
	require.ErrorIs(t, f.Run(t.Context()), ErrFenced)
	require.ErrorIs(t, f.Do(t.Context(), func(context.Context) error { return nil }), ErrStopped)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	idle, _ := failingFolder(t, Options{Store: objstore.NewMemory()})
	require.ErrorIs(t, idle.Do(ended, func(context.Context) error { return nil }), context.Canceled)
}
