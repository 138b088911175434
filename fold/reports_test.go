package fold

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/faultstore"
	"github.com/foldline/foldline/wal"
)

// TestReportC53SmallerFoldAfterACrash: what a fold takes is chosen when it begins, so a folder that dies over a large cut goes on with smaller ones: no plan of the dead one stands in
// the way.
func TestReportC53SmallerFoldAfterACrash(t *testing.T) {
	inner := objstore.NewMemory()
	w := newWorld(t, inner, 1, noteTable("node:T"))
	defer w.close()
	m := newModel()
	for i := range 16 {
		rows := []row{upsert(i, i), upsert(i+1, i)}
		m.apply("node:T", rows)
		w.write("node:T", rows...)
	}
	d := &doom{}
	w.opts.MaxRows = 1000
	w.opts.Step = func(step string) {
		if step == "prepared" {
			d.hit.Store(true) // the process dies of what it has in memory
		}
	}
	died := errors.New("died")
	w.claim(faultstore.New(inner, func(_ context.Context, _ faultstore.Call) faultstore.Fault {
		if d.hit.Load() {
			return faultstore.Fault{Before: died}
		}
		return faultstore.Fault{}
	}))
	_, err := w.folder.FoldOnce(w.ctx)
	require.Error(t, err)
	w.opts.Step = nil
	for most, left := 16, 32; left > 0; most = max(4, most/2) {
		w.opts.MaxRows = most
		w.claim(inner)
		r, err := w.folder.FoldOnce(w.ctx)
		require.NoError(t, err)
		require.LessOrEqual(t, r.Rows, most)
		require.Positive(t, r.Rows)
		left -= r.Rows
	}
	require.Equal(t, m.lines("node:T"), w.scan("node:T"))
}

// TestReportC97NoColumnAbove2GiB: what a fold may hold at most, and one value above it, stays below what offsets of 32 bits can tell; settings cannot lift that.
func TestReportC97NoColumnAbove2GiB(t *testing.T) {
	const packedMost = 64 << 20 // FORMAT.md of wal: what packed buffers of a value hold
	require.Less(t, int64(maxMaxBytes+wal.MaxEntryBytes+packedMost), int64(math.MaxInt32))
	o := Options{MaxBytes: maxMaxBytes + 1}
	o.EnsureDefaults()
	err := o.Validate()
	require.ErrorIs(t, err, ErrInvalid)
	require.ErrorContains(t, err, "MaxBytes must be positive and at most 1 GiB")
}
