package fold

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/faultstore"
	"github.com/foldline/foldline/publisher"
)

// TestSequentialRequestsOfAFold gates how many requests of a fold with its publish wait for each other, which is what it
// takes on an object store. Each request takes a second of a clock that moves only when everything waits, so the seconds
// of a fold are the length of its longest chain, exactly. It does not grow with the tables.
func TestSequentialRequestsOfAFold(t *testing.T) {
	for _, tables := range []int{1, 3, 8} {
		t.Run(fmt.Sprintf("%d tables", tables), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { checkChain(t, tables, nil) })
		})
	}
	// A table that others refer to is committed before them: its manifest, and that it did not fall into a hole.
	for _, refers := range [][]int{{1}, {1, 2}} {
		t.Run(fmt.Sprintf("references from %v to the one before", refers), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { checkChain(t, 3, refers) })
		})
	}
}

func checkChain(t *testing.T, tables int, refers []int) {
	inner := objstore.NewMemory()
	specs := noteTables(tables)
	w := newWorld(t, inner, 1, specs...)
	defer w.close()
	for _, i := range refers {
		w.setReferences(specs[i].Key, to(specs[i-1].Key, "id"))
	}
	var (
		start, visible time.Time
		mu             sync.Mutex
		chain          [][]string // of the last fold, the operations that each second began with
	)
	w.opts.Notify = func(context.Context, *publisher.Published) { visible = time.Now() }
	request := faultstore.Ops(faultstore.Get, faultstore.GetRange, faultstore.GetTail, faultstore.Put, faultstore.PutIfAbsent,
		faultstore.Commit, faultstore.List, faultstore.Stat, faultstore.Delete)
	w.claim(faultstore.New(inner, faultstore.Delay(time.Second, request), faultstore.Watch(request, func(c faultstore.Call) {
		mu.Lock()
		defer mu.Unlock()
		second := int(time.Since(start) / time.Second)
		if second == len(chain) {
			chain = append(chain, nil)
		}
		if op := string(c.Op); second < len(chain) && !slices.Contains(chain[second], op) {
			chain[second] = append(chain[second], op)
		}
	})))
	for fold := range 5 {
		for _, s := range specs {
			w.write(s.Key, upsert(fmt.Sprint("k", fold), 1), upsert(fmt.Sprint("k", fold-1), 2))
		}
		start, chain = time.Now(), nil
		report, err := w.folder.FoldOnce(w.ctx)
		require.NoError(t, err)
		require.Equal(t, tables, report.Tables)
	}
	// The heads are still the newest; the files of all tables; the record; each table's manifest; that it did not fall into a hole, and beside
	// it the heads' data file; the heads' manifest, and the same for it; the record before goes.
	want := [][]string{{"list"}, {"commit", "put"}, {"put_if_absent"}, {"put_if_absent"}}
	for range refers {
		want = append(want, []string{"list"}, []string{"put_if_absent"})
	}
	want = append(want, []string{"commit", "list"}, []string{"put_if_absent"}, []string{"list"}, []string{"delete"})
	for i := range chain {
		slices.Sort(chain[i])
	}
	require.Equal(t, want, chain)
	require.Equal(t, time.Duration(len(want)-1)*time.Second, visible.Sub(start), "until the fold is visible")
	require.Equal(t, time.Duration(len(want))*time.Second, time.Since(start), "and until the record before is gone")
}
