package wal

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/internal/testkit"
)

// TestReleaseGivesSpaceBack: round after round of entries in and released, what is on disk beside the unreleased bytes
// stays what Pebble's log takes for its memtables. make bench-space does it with 1 GB a round.
// report C36.
func TestReleaseGivesSpaceBack(t *testing.T) {
	const memTable, roundBytes = 1 << 20, 16 << 20
	opts := testOptions(nil)
	opts.Dir, opts.memTableBytes = t.TempDir(), memTable
	r := openLog(t, opts)
	for range 4 {
		for n, st := 0, r.status(); st.Bytes < roundBytes; n, st = n+1, r.status() {
			r.put(entryOf("", n, 10_000))
		}
		released := r.status().SyncedThrough
		require.NoError(t, r.Release(t.Context(), released))
		require.Zero(t, r.status().Bytes)
		// The storage engine deletes files on a goroutine of its own.
		testkit.WaitFor(t, "the space", func() bool {
			return r.db.Metrics().DiskSpaceUsage() < (memTablesStopWrites+4)*memTable
		})
	}
	require.NoError(t, r.stop())
}

// TestBallastIsKeptOnce: an open makes it, whole, the next one leaves it as it is, one that a crash left short is made again; without a minimum of free space
// nobody has asked for it. make disk shows what it is for.
// report C38.
func TestBallastIsKeptOnce(t *testing.T) {
	opts := testOptions(nil)
	opts.Dir, opts.memTableBytes, opts.MinFreeBytes = t.TempDir(), 256<<10, -1
	path := filepath.Join(opts.Dir, ballastName)
	reopen := func() {
		l, err := Open(t.Context(), opts)
		require.NoError(t, err)
		require.NoError(t, l.Close())
	}
	reopen()
	require.NoFileExists(t, path)

	opts.MinFreeBytes = 1
	reopen()
	made, err := os.Stat(path)
	require.NoError(t, err)
	require.EqualValues(t, 5*opts.memTableBytes, made.Size())
	reopen()
	kept, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, made.ModTime(), kept.ModTime())

	require.NoError(t, os.Truncate(path, 1))
	reopen()
	again, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, made.Size(), again.Size())
}

func (r *running) status() Status {
	st, err := r.Status(r.t.Context())
	require.NoError(r.t, err)
	return st
}

// TestCompactionsLeaveValuesAlone: a backlog is written to the log and flushed, and not rewritten by compactions, though
// the dedupe groups of its message ids are.
func TestCompactionsLeaveValuesAlone(t *testing.T) {
	opts := testOptions(nil)
	opts.Dir, opts.memTableBytes = t.TempDir(), 256<<10
	r := openLog(t, opts)
	for n := 0; r.status().Bytes < 16<<20; n++ {
		r.put(entryOf(strconv.Itoa(n), n, 2000))
	}
	testkit.WaitFor(t, "the end of compactions", func() bool { return r.db.Metrics().Compact.NumInProgress == 0 })
	m := r.db.Metrics()
	compacted := uint64(0)
	for _, level := range m.Levels {
		compacted += level.TableBytesCompacted
	}
	require.Less(t, compacted, m.WAL.BytesWritten/10)
	require.NoError(t, r.stop())
}
