package wal

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"
)

// crashMonitor is a file system's injector that, at every k-th write or sync,
// clones what a power cut would leave and checks a log reopened from it against
// what producers and readers had been told until then.
type crashMonitor struct {
	t       *testing.T
	mem     *vfs.MemFS
	every   int
	percent int // of unsynced data that survives
	rng     *rand.Rand

	mu        sync.Mutex
	ops       int
	checked   int
	acked     map[string]Receipt
	seen      Seq // newest entry that a reader was given
	requested Seq // highest release asked for
	nested    bool
}

// MaybeError implements errorfs.Injector; it never injects an error.
func (m *crashMonitor) MaybeError(op errorfs.Op) error {
	if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ops++
	orderDirectory(m.t, m.mem, m.percent, op)
	if m.ops%m.every != 0 {
		return nil
	}
	clone := m.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: m.percent, RNG: m.rng})
	m.check(clone, fmt.Sprintf("operation %d on %s", m.ops, op.Path))
	return nil
}

// orderDirectory makes earlier changes of a directory durable before the next
// one. File systems with a metadata journal keep that order, and Pebble relies
// on it (a new manifest and the marker that names it are two entries); the
// memory file system would let the later entry survive without the earlier.
func orderDirectory(t *testing.T, mem *vfs.MemFS, percent int, op errorfs.Op) {
	switch op.Kind {
	case errorfs.OpCreate, errorfs.OpLink, errorfs.OpRemove, errorfs.OpRename, errorfs.OpReuseForWrite:
		if percent == 0 {
			return
		}
		require.NoError(t, syncDir(mem, mem.PathDir(op.Path)))
	}
}

func (m *crashMonitor) String() string { return "crash monitor" }

// check reopens a clone and compares. Every thirtieth reopening is itself cut at
// each of its writes.
func (m *crashMonitor) check(mem *vfs.MemFS, where string) {
	m.checked++
	var fs vfs.FS = mem
	if !m.nested && m.checked%30 == 0 {
		fs = errorfs.Wrap(mem, &crashMonitor{
			t: m.t, mem: mem, every: 1, percent: m.percent, rng: m.rng, nested: true,
			acked: m.acked, seen: m.seen, requested: m.requested,
		})
	}
	l, err := Open(context.Background(), crashOptions(fs))
	require.NoError(m.t, err, where)
	defer func() { require.NoError(m.t, l.Close(), where) }()
	synced, released := Seq(l.synced.Load()), Seq(l.released.Load())
	require.GreaterOrEqual(m.t, synced, m.seen, "W3: a reader saw an unsynced entry; %s", where)
	require.LessOrEqual(m.t, released, m.requested, "W4; %s", where)
	found := m.entries(l, released, where)
	for id, receipt := range m.acked {
		require.LessOrEqual(m.t, receipt.Seq, synced, "W1; %s", where)
		if receipt.Seq > released {
			require.Equal(m.t, id, found[receipt.Seq], "W2; %s", where)
		}
		rec, err := l.commit.window.find(id, [32]byte{})
		require.NoError(m.t, err, where)
		require.NotNil(m.t, rec, "dedupe record of %s; %s", id, where)
		require.Equal(m.t, receipt.Seq, rec.seq, where)
	}
}

// entries reads the whole log and checks W3: order, no gap, no entry twice.
func (m *crashMonitor) entries(l *Log, after Seq, where string) map[Seq]string {
	found, ids := map[Seq]string{}, map[string]bool{}
	last := after
	for b, err := range l.Read(context.Background(), ReadRequest{Incarnation: l.Incarnation(), After: after}) {
		require.NoError(m.t, err, where)
		for i, e := range b.Entries {
			require.Greater(m.t, e.Seq, last, where)
			last = e.Seq
			require.False(m.t, ids[e.MsgID], "entry %s twice; %s", e.MsgID, where)
			found[e.Seq], ids[e.MsgID] = e.MsgID, true
			var n int
			_, err := fmt.Sscanf(e.MsgID, "m%d", &n)
			require.NoError(m.t, err)
			require.Contains(m.t, rowsOfEntry(b, i), fmt.Sprintf("id-%d", n*10), where)
		}
		b.Release()
	}
	return found
}

// rowsOfEntry gives the ids of an entry's rows in a batch.
func rowsOfEntry(b *Batch, entry int) []string {
	var ids []string
	for _, t := range b.Tables {
		all := rowIDs([]*Batch{{Tables: []BatchTable{t}}}, t.Table)
		for row, e := range t.Entry {
			if int(e) == entry {
				ids = append(ids, all[row])
			}
		}
	}
	return ids
}

func crashOptions(fs vfs.FS) Options {
	opts := testOptions(fs)
	opts.memTableBytes = 64 << 10
	return opts
}

// told records an ack.
func (m *crashMonitor) told(id string, r Receipt) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.acked[id] = r
}

// TestCrashC1C4C14AtEveryWrite cuts the power before every file operation that
// changes something: with nothing unsynced left, and with a random part of it.
// reports C42, C48.
func TestCrashC1C4C14AtEveryWrite(t *testing.T) {
	for _, c := range []struct{ percent, every int }{{0, 1}, {50, 2}, {100, 5}} {
		t.Run(fmt.Sprintf("unsynced=%d%%", c.percent), func(t *testing.T) {
			m := &crashMonitor{
				t: t, mem: vfs.NewCrashableMem(), every: c.every, percent: c.percent,
				rng: rand.New(rand.NewPCG(1, uint64(c.percent))), acked: map[string]Receipt{},
			}
			for round := range 3 {
				crashRound(m, errorfs.Wrap(m.mem, m), round)
			}
			t.Logf("%d operations, %d crash points", m.ops, m.checked)
			require.Greater(t, m.checked, 50)
		})
	}
}

// crashRound opens the log, appends from several producers beside a reader,
// retries, releases half, and closes.
func crashRound(m *crashMonitor, fs vfs.FS, round int) {
	r := openLog(m.t, crashOptions(fs))
	stopReader := watch(m, r)
	var producers sync.WaitGroup
	for p := range 3 {
		producers.Go(func() {
			for i := range 8 {
				n := round*1000 + p*100 + i
				id := fmt.Sprintf("m%d", n)
				receipt := r.put(entryOf(id, n*10, 1+i*i*3))
				m.told(id, receipt)
				if i%3 == 0 {
					again := r.put(entryOf(id, n*10, 1+i*i*3))
					require.Equal(m.t, receipt.Seq, again.Seq)
					require.True(m.t, again.Duplicate)
				}
			}
		})
	}
	producers.Wait()
	stopReader()
	release(m, r)
	require.NoError(m.t, r.stop())
}

// watch reads the log over and over and notes the newest entry it was given.
func watch(m *crashMonitor, r *running) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		after := Seq(r.released.Load())
		for ctx.Err() == nil {
			for b, err := range r.Read(ctx, r.requestAll(after)) {
				if errors.Is(err, context.Canceled) {
					return
				}
				require.NoError(m.t, err)
				after = b.Last
				b.Release()
				m.mu.Lock()
				m.seen = max(m.seen, after)
				m.mu.Unlock()
			}
		}
	}()
	return func() { cancel(); <-done }
}

// release gives up half of what is there.
func release(m *crashMonitor, r *running) {
	batches := readAll(m.t, r, r.requestAll(Seq(r.released.Load())))
	through := batches[len(batches)/2].Last
	m.mu.Lock()
	m.requested = through
	m.mu.Unlock()
	require.NoError(m.t, r.Release(m.t.Context(), through))
}
