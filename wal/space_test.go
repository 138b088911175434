package wal

import (
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
