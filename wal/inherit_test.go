package wal

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"
)

// heirOptions are options of a log in a directory of its own, on the file system of the others.
func heirOptions(fs vfs.FS, dir string, lane uint32) Options {
	opts := testOptions(fs)
	opts.Dir, opts.Lane = dir, lane
	return opts
}

// drained is a stopped log with the entries m<from>…, of one row each, and the receipts by message id.
func drained(t *testing.T, opts Options, from, n int) map[string]Receipt {
	t.Helper()
	receipts := map[string]Receipt{}
	r := openLog(t, opts)
	for i := from; i < from+n; i++ {
		receipts[fmt.Sprint("m", i)] = r.put(entryOf(fmt.Sprint("m", i), i, 1))
	}
	require.NoError(t, r.stop())
	return receipts
}

// predecessor opens a stopped log as what a successor inherits from.
func predecessor(t *testing.T, fs vfs.FS, dir string) Predecessor {
	t.Helper()
	l, err := OpenReadOnly(t.Context(), dir, fs)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	s, err := l.Status(t.Context())
	require.NoError(t, err)
	return Predecessor{Lane: s.Lane, Incarnation: s.Incarnation, Through: s.SyncedThrough, Source: l}
}

// heir opens a new log, inherits and runs it.
func heir(t *testing.T, opts Options, from ...Predecessor) *running {
	t.Helper()
	l, err := Open(t.Context(), opts)
	require.NoError(t, err)
	require.NoError(t, l.Inherit(t.Context(), from))
	require.NoError(t, l.Begin(7))
	return runLog(t, l)
}

// requireDuplicates retries every message and wants its first receipt.
func requireDuplicates(t *testing.T, r *running, receipts map[string]Receipt) {
	t.Helper()
	for id, want := range receipts {
		var n int
		_, err := fmt.Sscanf(id, "m%d", &n)
		require.NoError(t, err)
		want.Duplicate, want.DedupeSince = true, r.dedupeSince
		require.Equal(t, want, r.put(entryOf(id, n, 1)))
	}
}

// Issue 6: a retry of what a drained predecessor acknowledged is answered with that one's receipt, also after a restart, and through a chain of
// successors; another body under the id is refused, and it leaves the window when its time is over.
func TestSuccessorKnowsItsPredecessorsIDs(t *testing.T) {
	fs, clock := vfs.NewMem(), newTestClock()
	first, second, third := heirOptions(fs, "a", 0), heirOptions(fs, "b", 0), heirOptions(fs, "c", 0)
	for _, o := range []*Options{&first, &second, &third} {
		o.Clock, o.DedupeWindow = clock.Now, time.Minute
	}
	receipts := drained(t, first, 0, 20)
	clock.Add(10 * time.Second)
	r := heir(t, second, predecessor(t, fs, "a"))
	requireDuplicates(t, r, receipts)
	require.ErrorIs(t, (<-r.send(entryOf("m3", 4, 1))).err, ErrMsgIDReused)
	own := r.put(entryOf("m100", 100, 1))
	require.False(t, own.Duplicate)
	require.True(t, own.DedupeSince.IsZero())
	receipts["m100"] = own
	require.NoError(t, r.stop())
	r = openLog(t, second)
	requireDuplicates(t, r, receipts)
	require.NoError(t, r.stop())

	r = heir(t, third, predecessor(t, fs, "b"))
	requireDuplicates(t, r, receipts)
	status, err := r.Status(t.Context())
	require.NoError(t, err)
	require.Len(t, status.Predecessors, 2)
	report, err := r.Verify(t.Context())
	require.NoError(t, err)
	require.True(t, report.OK(), "%v", report.Problems)
	clock.Add(time.Minute - 10*time.Second)
	require.False(t, r.put(entryOf("m3", 3, 1)).Duplicate, "outside the window")
	require.True(t, r.put(entryOf("m100", 100, 1)).Duplicate)
	require.NoError(t, r.stop())
	left, err := OpenReadOnly(t.Context(), "c", fs)
	require.NoError(t, err)
	defer func() { require.NoError(t, left.Close()) }()
	for g, err := range left.Window(t.Context(), Status{Incarnation: left.Incarnation()}) {
		require.NoError(t, err)
		require.True(t, g.Time.After(clock.Now().Add(-time.Minute)), "what left the window is deleted")
	}
}

// What was not folded when its log was closed is to be applied when it is sent again. What is not known at all is told.
func TestSuccessorOfALostLog(t *testing.T) {
	fs := vfs.NewMem()
	receipts := drained(t, heirOptions(fs, "a", 0), 0, 10)
	cut := predecessor(t, fs, "a")
	cut.Through -= 4
	r := heir(t, heirOptions(fs, "b", 0), cut)
	for i := range 10 {
		require.Equal(t, i < 6, r.put(entryOf(fmt.Sprint("m", i), i, 1)).Duplicate, "m%d", i)
	}
	require.Zero(t, r.put(entryOf("x", 1, 1)).DedupeSince)

	opts := heirOptions(fs, "c", 0)
	gone := Predecessor{Incarnation: "01ARZ3NDEKTSV4RRFFQ69G5FAV", Through: 9}
	r = heir(t, opts, cut, gone)
	require.Equal(t, newTestClock().Now(), r.put(entryOf("y", 1, 1)).DedupeSince)
	requireDuplicates(t, r, map[string]Receipt{"m1": receipts["m1"]})
	require.NoError(t, r.Inherit(t.Context(), []Predecessor{cut, gone}), "once is enough")
	require.ErrorIs(t, r.Inherit(t.Context(), []Predecessor{{Incarnation: "01BX5ZZKBKACTAV9WEVGEMMVRZ"}}), ErrInvalid)
	require.NoError(t, r.stop())
	r = openLog(t, opts)
	require.True(t, newTestClock().Now().Equal(r.put(entryOf("z", 1, 1)).DedupeSince), "also after a restart")
	require.NoError(t, r.stop())

	// Its loss is its successor's, and so is a disk that is older than its graph.
	r = heir(t, heirOptions(fs, "d", 0), predecessor(t, fs, "c"))
	require.True(t, newTestClock().Now().Equal(r.put(entryOf("z", 1, 1)).DedupeSince))
	old := cut
	old.Through += 5
	r = heir(t, heirOptions(fs, "e", 0), old)
	require.True(t, newTestClock().Now().Equal(r.put(entryOf("z", 1, 1)).DedupeSince))

	other := cut
	other.Incarnation = gone.Incarnation
	l, err := Open(t.Context(), heirOptions(fs, "f", 0))
	require.NoError(t, err)
	require.ErrorIs(t, l.Inherit(t.Context(), []Predecessor{other}), ErrIdentity)
	require.NoError(t, l.Close())
}

// After a change of the lane count a lane inherits the windows of all lanes that went before; the parts of one message may have one id.
func TestLaneInheritsFromSeveralLanes(t *testing.T) {
	fs, clock := vfs.NewMem(), newTestClock()
	receipts := map[string]Receipt{}
	var from []Predecessor
	for lane := range 3 {
		opts := heirOptions(fs, fmt.Sprint("lane", lane), uint32(lane))
		opts.Clock = clock.Now
		for id, r := range drained(t, opts, 100*lane, 20) {
			receipts[id] = r
		}
		clock.Add(time.Second)
		r := openLog(t, opts)
		receipts[fmt.Sprint("m", 1000+lane)] = r.put(entryOf(fmt.Sprint("m", 1000+lane), 1000+lane, 1))
		_ = r.put(entryOf("split", lane, 1))
		require.NoError(t, r.stop())
		clock.Add(-500 * time.Millisecond)
		from = append(from, predecessor(t, fs, opts.Dir))
	}
	opts := heirOptions(fs, "new", 1)
	opts.Clock = clock.Now
	r := heir(t, opts, from...)
	requireDuplicates(t, r, receipts)
	for lane := range 3 {
		again := r.put(entryOf("split", lane, 1))
		require.True(t, again.Duplicate)
		require.Equal(t, uint32(lane), again.Lane)
	}
	last := time.Time{}
	for g, err := range r.Window(t.Context(), Status{Incarnation: r.Incarnation(), Epoch: 7}) {
		require.NoError(t, err)
		require.False(t, g.Time.Before(last), "they leave the window in this order")
		last = g.Time
	}
}

// The window of a log that runs is read through NATS, in as many replies as it takes.
func TestWindowOverNATS(t *testing.T) {
	nc := startNATS(t)
	fs := vfs.NewMem()
	receipts := drained(t, heirOptions(fs, "a", 0), 0, 30)
	r := heir(t, heirOptions(fs, "b", 0), predecessor(t, fs, "a"))
	var burst []<-chan answer
	for i := range 12_000 { // ids of a KiB: more than one reply holds
		burst = append(burst, r.send(entryOf(fmt.Sprintf("%01000d", i), i, 1)))
	}
	for _, ch := range burst {
		require.NoError(t, (<-ch).err)
	}
	remote := NewRemote(nc, serve(t, nc, r.Log), RemoteOptions{})
	status, err := remote.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, []Origin{{0, receipts["m1"].Incarnation}}, status.Predecessors)
	near, far := collectWindow(t, r, status), collectWindow(t, remote, status)
	require.Equal(t, near, far)
	ids := 0
	for _, g := range far {
		ids += g.IDs
	}
	require.Equal(t, 12_030, ids)

	next := heir(t, heirOptions(fs, "c", 0), Predecessor{Incarnation: r.Incarnation(), Through: status.SyncedThrough, Source: remote})
	requireDuplicates(t, next, receipts)
	require.True(t, next.put(entryOf(fmt.Sprintf("%01000d", 77), 77, 1)).Duplicate)
	for _, err := range remote.Window(t.Context(), Status{Incarnation: "another", Epoch: 7}) {
		require.ErrorIs(t, err, ErrFenced)
	}
}

func collectWindow(t *testing.T, s WindowSource, owner Status) (all []WindowGroup) {
	t.Helper()
	for g, err := range s.Window(t.Context(), owner) {
		require.NoError(t, err)
		all = append(all, *g)
	}
	return all
}

// TestCrashInInherit cuts the power before every write of an import, with nothing unsynced left and with a part of it, on a log that an earlier import was
// cut off in. What is found then either knows nothing of predecessors, and inherits again, or knows all of them.
func TestCrashInInherit(t *testing.T) {
	for _, percent := range []int{0, 50, 100} {
		t.Run(fmt.Sprintf("unsynced=%d%%", percent), func(t *testing.T) {
			mem := vfs.NewCrashableMem()
			receipts := drained(t, heirOptions(mem, "a", 0), 0, 40)
			for id, r := range drained(t, heirOptions(mem, "b", 1), 100, 40) {
				receipts[id] = r
			}
			opts := heirOptions(mem, "new", 0)
			l, err := Open(t.Context(), opts)
			require.NoError(t, err)
			require.NoError(t, l.db.Set(storedKey{kindImported, 3}.bytes(), encodeImported(&Origin{9, "x"}, encodeDedupe(goldenGroup())), pebble.Sync))
			require.NoError(t, l.Close())

			m := &inheritMonitor{t: t, mem: mem, percent: percent, rng: rand.New(rand.NewPCG(2, uint64(percent))), receipts: receipts}
			opts.FS = errorfs.Wrap(mem, m)
			r := heir(t, opts, predecessor(t, mem, "a"), predecessor(t, mem, "b"), Predecessor{Lane: 2, Incarnation: "gone"})
			requireDuplicates(t, r, receipts)
			require.NoError(t, r.stop())
			require.Positive(t, m.before)
			require.Positive(t, m.after)
			t.Logf("%d crash points before the import counted, %d after", m.before, m.after)
		})
	}
}

// inheritMonitor is the injector of TestCrashInInherit.
type inheritMonitor struct {
	t             *testing.T
	mem           *vfs.MemFS
	percent       int
	rng           *rand.Rand
	receipts      map[string]Receipt
	mu            sync.Mutex
	before, after int
}

func (m *inheritMonitor) String() string { return "inherit monitor" }

// MaybeError implements errorfs.Injector; it never injects an error.
func (m *inheritMonitor) MaybeError(op errorfs.Op) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
		orderDirectory(m.t, m.mem, m.percent, op)
		m.check(m.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: m.percent, RNG: m.rng}), op.Path)
	}
	return nil
}

func (m *inheritMonitor) check(mem *vfs.MemFS, where string) {
	l, err := Open(context.Background(), heirOptions(mem, "new", 0))
	require.NoError(m.t, err, where)
	from := []Predecessor{predecessor(m.t, mem, "a"), predecessor(m.t, mem, "b"), {Lane: 2, Incarnation: "gone"}}
	if m.after++; l.lineage == nil {
		m.after, m.before = m.after-1, m.before+1
		require.Zero(m.t, l.dedupeSince, where)
		none, err := l.commit.window.find("m1", [32]byte{})
		require.NoError(m.t, err)
		require.Nil(m.t, none, "half an import does not count; %s", where)
	}
	require.NoError(m.t, l.Inherit(context.Background(), from), where)
	require.False(m.t, l.dedupeSince.IsZero(), where)
	for id, receipt := range m.receipts {
		r, err := l.commit.window.find(id, [32]byte{})
		require.NoError(m.t, err, where)
		require.NotNil(m.t, r, "%s; %s", id, where)
		require.Equal(m.t, [2]any{receipt.Seq, Origin{receipt.Lane, receipt.Incarnation}}, [2]any{r.seq, *r.origin}, where)
	}
	require.Equal(m.t, len(m.receipts), l.commit.window.old.count, where)
	require.NoError(m.t, l.Close(), where)
}
