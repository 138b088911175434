package wal

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSeal (W1, W3): under concurrent appends a seal returns the end of everything that is ever acknowledged; nothing is taken after it, retries of what was
// taken still get their first receipt, and a log without room seals too.
func TestSeal(t *testing.T) {
	o := testOptions(nil)
	o.Dir = t.TempDir()
	r := openLog(t, o)
	first := r.put(entryOf("first", 0, 1))
	const writers = 8
	last, ended := make([]Seq, writers), make([]error, writers)
	var g sync.WaitGroup
	for w := range writers {
		g.Go(func() {
			for n := 0; ; n++ {
				answers := make(chan answer, 1)
				e := entryOf("", w*1_000_000+n, 1)
				ended[w] = r.Append(t.Context(), e, func(rc Receipt, err error) { answers <- answer{rc, err} })
				e.Rows[0].Record.Release()
				if ended[w] != nil {
					return
				}
				a := <-answers
				if ended[w] = a.err; a.err != nil {
					return
				}
				last[w] = max(last[w], a.receipt.Seq)
			}
		})
	}
	r.put(entryOf("second", 1, 1))
	end, err := r.Seal(t.Context())
	require.NoError(t, err)
	g.Wait()
	for w := range writers {
		require.LessOrEqual(t, last[w], end)
		require.ErrorIs(t, ended[w], ErrSealed)
	}
	again, err := r.Seal(t.Context())
	require.NoError(t, err)
	require.Equal(t, end, again)
	status, err := r.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, end, status.SyncedThrough)
	require.False(t, status.Ready)
	known := entryOf("first", 0, 1)
	known.Rows, known.Known = nil, true
	require.Equal(t, first.Seq, r.put(known).Seq)

	r.opts.MaxBytes = 1
	_, err = r.Seal(t.Context())
	require.NoError(t, err)
}
