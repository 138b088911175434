package wal

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

// liveHeap is what the heap holds after a collection.
func liveHeap() int64 {
	runtime.GC()
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}

// bigLog is a stopped log on disk with entries of a MiB of text that does not shrink.
func bigLog(t *testing.T, entries int) string {
	t.Helper()
	dir := t.TempDir()
	r := openLog(t, Options{Dir: dir, Graph: "demo", MinFreeBytes: -1})
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.BinaryTypes.String}}, nil))
	defer b.Release()
	text := make([]byte, 1<<20)
	for i := range entries {
		state := uint64(i)*2862933555777941757 + 3037000493
		for j := range text {
			state = state*6364136223846793005 + 1442695040888963407
			text[j] = 'A' + byte(state>>59)
		}
		b.Field(0).(*array.StringBuilder).Append(string(text))
		r.put(Entry{Rows: []Rows{{Table: 1, Record: b.NewRecord(), Ops: []Op{OpUpsert}}}})
	}
	require.NoError(t, r.stop())
	return dir
}

// peakOfReplay opens a log and reads all of it, and gives the most that the heap held meanwhile above what it held before.
func peakOfReplay(t *testing.T, dir string, entries int) (peak int64) {
	t.Helper()
	before := liveHeap()
	l, err := Open(t.Context(), Options{Dir: dir, Graph: "demo", MinFreeBytes: -1})
	require.NoError(t, err)
	peak = liveHeap() - before
	n := 0
	for b, err := range l.Read(t.Context(), ReadRequest{Incarnation: l.Incarnation()}) {
		require.NoError(t, err)
		if n += len(b.Entries); n%8 == 0 {
			peak = max(peak, liveHeap()-before)
		}
		b.Release()
	}
	require.Equal(t, entries, n)
	require.NoError(t, l.Close())
	return peak
}

// TestReportC39C40C45MemoryOfAStart: what opening a log and reading it takes in memory does not follow the backlog: 96 MiB more add a third of it at most, which is the collector's timing.
func TestReportC39C40C45MemoryOfAStart(t *testing.T) {
	small := peakOfReplay(t, bigLog(t, 32), 32)
	large := peakOfReplay(t, bigLog(t, 128), 128)
	t.Logf("peak %d KiB for 32 MiB, %d KiB for 128 MiB", small>>10, large>>10)
	require.Less(t, large, small+32<<20)
}

// TestReportC46ReleaseWhileAReaderStarts: a reader that starts at the published cut is never told that its start is gone, however often the owner is opened
// again and releases up to that cut meanwhile, and it misses nothing.
func TestReportC46ReleaseWhileAReaderStarts(t *testing.T) {
	fs := vfs.NewMem()
	published, next := Seq(0), 0
	var want, got []string
	for range 150 {
		r := openLog(t, testOptions(fs))
		for range 3 {
			id := fmt.Sprint("m", next)
			r.put(entryOf(id, next, 1))
			want, next = append(want, id), next+1
		}
		cut := published
		var reader sync.WaitGroup
		reader.Go(func() {
			for b, err := range r.Read(context.Background(), r.requestAll(cut)) {
				require.NoError(t, err)
				for _, e := range b.Entries {
					got = append(got, e.MsgID)
				}
				published = b.Last
				b.Release()
			}
		})
		require.NoError(t, r.Release(t.Context(), cut))
		reader.Wait()
		require.NoError(t, r.stop())
	}
	require.Equal(t, strings.Join(want, " "), strings.Join(got, " "))
	r := openLog(t, testOptions(fs))
	require.NoError(t, r.Release(t.Context(), published))
	err := readError(t, r, r.requestAll(published-1))
	var gone *RangeError
	require.True(t, errors.As(err, &gone) && errors.Is(err, ErrReleased), "below the cut it is told so: %v", err)
}
