package fold

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/countstore"
	"github.com/foldline/foldline/publisher"
)

// blobTable is a table of rows that are larger than what is kept of them.
func blobTable(key string) publisher.TableSpec {
	return publisher.TableSpec{Key: key, Columns: []heads.Column{{Name: "id", Type: "string"}, {Name: "blob", Type: "string", Nullable: true}}}
}

const blobBytes = 2000

// blobs are n rows from key number first on.
func blobs(first, n int) []row {
	out := make([]row, n)
	for i := range out {
		out[i] = upsert(fmt.Sprintf("k%08d", first+i), strings.Repeat("x", blobBytes))
	}
	return out
}

// TestReportC74MemoryAndRequestsAreFlat: a table grows fold by fold, by new keys and by new versions of old ones, to four times the rows. The last fold
// has no more columns in memory at one time than fold n had, gives all of them back, and makes exactly the same requests. The heap of the whole process
// is no measure here: the memtables of log and index and other tests are in it.
func TestReportC74MemoryAndRequestsAreFlat(t *testing.T) {
	const n, rows = 12, 200
	t.Chdir(t.TempDir()) // the world's log and index are in folders below
	inner, err := objstore.OpenLocal("store")
	require.NoError(t, err)
	store := countstore.New(inner)
	w := newWorldOn(t, store, func() vfs.FS { return vfs.Default }, 1, blobTable("node:T"))
	defer w.close()
	alloc := &peakAllocator{Allocator: memory.DefaultAllocator}
	w.opts.Memory = alloc
	w.claim(w.store)
	var peaks []int
	var requests []countstore.Counts
	for fold := 1; fold <= 4*n; fold++ {
		first := (fold - 1) * rows
		w.write("node:T", append(blobs(first, rows), blobs(max(0, first-rows), 10)...)...)
		store.Reset()
		alloc.peak = 0
		report, err := w.folder.FoldOnce(w.ctx)
		require.NoError(t, err)
		require.Positive(t, report.Inserted)
		require.Zero(t, alloc.now, "all is given back")
		if fold == n || fold == 4*n {
			requests, peaks = append(requests, plain(store.Counts())), append(peaks, alloc.peak)
		}
	}
	t.Logf("%v bytes of columns at once after %d and %d folds; %d requests a fold", peaks, n, 4*n, requests[1].Requests())
	require.Equal(t, requests[0], requests[1])
	require.Positive(t, peaks[0])
	require.Less(t, peaks[1], peaks[0]+peaks[0]/10)
}

// peakAllocator notes the most bytes that were allocated at one time.
type peakAllocator struct {
	memory.Allocator
	mu        sync.Mutex
	now, peak int
}

func (a *peakAllocator) note(bytes int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.now += bytes
	a.peak = max(a.peak, a.now)
}

func (a *peakAllocator) Allocate(size int) []byte {
	a.note(size)
	return a.Allocator.Allocate(size)
}

func (a *peakAllocator) Reallocate(size int, b []byte) []byte {
	a.note(size - len(b))
	return a.Allocator.Reallocate(size, b)
}

func (a *peakAllocator) Free(b []byte) {
	a.note(-len(b))
	a.Allocator.Free(b)
}

// TestReportC74TooMuchAtOnceIsASmallerCut: what a fold allocates is bounded by what bounds its cut, rows or bytes, whatever waits in the log; the rest
// goes with further folds.
func TestReportC74TooMuchAtOnceIsASmallerCut(t *testing.T) {
	for name, limit := range map[string]func(*Options){
		"rows":  func(o *Options) { o.MaxRows = 100 },
		"bytes": func(o *Options) { o.MaxBytes = 256 << 10 },
	} {
		t.Run(name, func(t *testing.T) {
			var peaks, folds []int
			for _, messages := range []int{40, 160} {
				w := newWorld(t, objstore.NewMemory(), 1, blobTable("node:T"))
				alloc := &peakAllocator{Allocator: memory.DefaultAllocator}
				w.opts.Memory = alloc
				limit(&w.opts)
				w.claim(w.store)
				for i := range messages {
					w.write("node:T", blobs(i*10, 10)...)
				}
				report := w.fold()
				require.Equal(t, messages*10, report.Inserted)
				require.Len(t, w.scan("node:T"), messages*10)
				require.Zero(t, alloc.now, "all is given back")
				peaks, folds = append(peaks, alloc.peak), append(folds, len(w.events))
				w.close()
			}
			t.Logf("%v folds, at most %v bytes at once", folds, peaks)
			require.GreaterOrEqual(t, folds[1], 3*folds[0])
			require.Positive(t, peaks[0])
			require.Equal(t, peaks[0], peaks[1])
		})
	}
}
