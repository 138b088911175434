package wal

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"
)

// isLogSync tells whether an operation is the sync of Pebble's log.
func isLogSync(op errorfs.Op) bool {
	switch op.Kind {
	case errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo:
		return strings.HasSuffix(op.Path, ".log")
	}
	return false
}

// gate blocks the syncs of the log while it is shut.
type gate struct {
	shut    atomic.Bool
	waiting chan struct{} // one item for each sync that waits
	open    chan struct{}
}

func newGate() *gate { return &gate{waiting: make(chan struct{}, 64), open: make(chan struct{})} }

func (g *gate) String() string { return "gate" }

func (g *gate) MaybeError(op errorfs.Op) error {
	if isLogSync(op) && g.shut.Load() {
		g.waiting <- struct{}{}
		<-g.open
	}
	return nil
}

func (g *gate) release() {
	g.shut.Store(false)
	close(g.open)
}

// requireNoAnswer checks that nothing was answered yet.
func requireNoAnswer(t *testing.T, what string, chans ...<-chan answer) {
	t.Helper()
	for _, ch := range chans {
		select {
		case a := <-ch:
			t.Fatalf("%s answered before the sync: %+v", what, a)
		default:
		}
	}
}

// TestCrashC7NothingBeforeTheSync holds a sync open: no ack (W1), no reader
// sees the entry, near or far (W3), and a retry waits for the same sync.
// report C02.
func TestCrashC7NothingBeforeTheSync(t *testing.T) {
	g := newGate()
	r := openLog(t, testOptions(errorfs.Wrap(vfs.NewMem(), g)))
	nc := startNATS(t)
	remote := NewRemote(nc, serve(t, nc, r.Log), RemoteOptions{})
	before := r.put(entryOf("m0", 0, 1))

	g.shut.Store(true)
	first := r.send(entryOf("m1", 1, 1))
	<-g.waiting
	retry := r.send(entryOf("m1", 1, 1))
	other := r.send(entryOf("m2", 2, 1))
	for _, s := range []Source{r, remote} {
		got := readAll(t, s, r.requestAll(0))
		require.Equal(t, []string{"id-0"}, rowIDs(got, 1))
		status, err := s.Status(t.Context())
		require.NoError(t, err)
		require.Equal(t, before.Seq, status.SyncedThrough)
		require.Equal(t, int64(1), status.Entries)
	}
	require.ErrorIs(t, r.Release(t.Context(), before.Seq+1), ErrInvalid)
	requireNoAnswer(t, "append", first, retry, other)

	g.release()
	a := <-first
	require.NoError(t, a.err)
	want := a.receipt
	want.Duplicate = true
	require.Equal(t, answer{receipt: want}, <-retry)
	require.NoError(t, (<-other).err)
	require.Equal(t, []string{"id-0", "id-1", "id-2"}, rowIDs(readAll(t, remote, r.requestAll(0)), 1))
	require.NoError(t, r.stop())
}
