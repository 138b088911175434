package wal

import (
	"context"
	"testing"

	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/stretchr/testify/require"
)

// sharedEntries are n entries of two rows each that share one record, whose first row is nobody's.
func sharedEntries(n int) []Entry {
	rec := airportRows(0, 1+2*n)
	entries := make([]Entry, n)
	for i := range entries {
		entries[i] = Entry{Rows: []Rows{{Table: 1, Record: rec, First: 1 + 2*i, Count: 2, Ops: []Op{OpUpsert}}}}
	}
	return entries
}

// TestAppendAll (W1, W3): entries of one call follow each other, share a record, and are each answered once; the call stops
// at the first that is refused, which is not durable.
func TestAppendAll(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(entries []Entry, o *Options)
		taken int
		want  error
	}{
		"all":       {func([]Entry, *Options) {}, 8, nil},
		"range":     {func(e []Entry, _ *Options) { e[5].Rows[0].First = 16 }, 5, ErrInvalid},
		"negative":  {func(e []Entry, _ *Options) { e[2].Rows[0].First = -1 }, 2, ErrInvalid},
		"no rows":   {func(e []Entry, _ *Options) { e[2].Rows = nil }, 2, ErrInvalid},
		"too many":  {func(_ []Entry, o *Options) { o.MaxInFlightEntries = 3 }, 3, ErrBusy},
		"the first": {func(e []Entry, _ *Options) { e[0].Rows[0].Ops = nil }, 0, ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			entries := sharedEntries(8)
			o := testOptions(nil)
			o.Dir = t.TempDir()
			c.spoil(entries, &o)
			r := openLog(t, o)
			results := make(chan Result, len(entries))
			next := 0
			n, err := r.AppendAll(context.Background(), entries, func(first int, answered []Result) {
				require.Equal(t, next, first)
				next += len(answered)
				for _, a := range answered {
					results <- a
				}
			})
			require.Equal(t, c.taken, n)
			require.ErrorIs(t, err, c.want)
			for i := range n {
				a := <-results
				require.NoError(t, a.Err)
				require.Equal(t, NewSeq(1, uint64(i+1)), a.Receipt.Seq)
				require.Equal(t, 2, a.Receipt.Rows)
			}
			requireRows(t, r, 2*n)
			require.NoError(t, r.stop())
			require.Empty(t, results)
		})
	}
}

// requireRows reads the log: ids 1 to rows, in order.
func requireRows(t *testing.T, r *running, rows int) {
	t.Helper()
	at := 0
	for batch, err := range r.Read(t.Context(), ReadRequest{Incarnation: r.Incarnation(), Epoch: 1}) {
		require.NoError(t, err)
		for _, table := range batch.Tables {
			require.True(t, array.RecordEqual(airportRows(1+at, int(table.Record.NumRows())), table.Record))
			at += int(table.Record.NumRows())
		}
		batch.Release()
	}
	require.Equal(t, rows, at)
}

// TestAppendAllocations: an entry of a large call costs no allocation of its own before the committer has it; the few of a
// call are shared.
func TestAppendAllocations(t *testing.T) {
	o := testOptions(nil)
	o.Dir = t.TempDir()
	r := openLog(t, o)
	const entries = 512
	all := sharedEntries(entries)
	done := make(chan struct{}, 1)
	left := 0
	perCall := testing.AllocsPerRun(20, func() {
		left = entries
		n, err := r.AppendAll(context.Background(), all, func(_ int, results []Result) {
			for i := range results {
				if results[i].Err != nil {
					panic(results[i].Err)
				}
			}
			if left -= len(results); left == 0 {
				done <- struct{}{}
			}
		})
		if n != entries || err != nil {
			panic(err)
		}
		<-done
	})
	// The rest is per call, per value and per sync, the storage engine's included.
	require.Less(t, perCall/entries, 0.5, "allocations per entry")
	require.NoError(t, r.stop())
}
