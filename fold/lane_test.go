package fold

import (
	"context"
	"errors"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/wal"
)

// script is a log that answers what a test wrote down.
type script struct {
	status  wal.Status
	batches []*wal.Batch
	err     error // after the batches
	request wal.ReadRequest
}

func (s *script) Status(context.Context) (wal.Status, error) { return s.status, nil }

func (s *script) Read(_ context.Context, r wal.ReadRequest) iter.Seq2[*wal.Batch, error] {
	s.request = r
	return func(yield func(*wal.Batch, error) bool) {
		for _, b := range s.batches {
			if !yield(b, nil) {
				return
			}
		}
		if s.err != nil {
			yield(nil, s.err)
		}
	}
}

// value is a stored value with the given ends and n rows of one table.
func value(prev, first, last wal.Seq, n int) *wal.Batch {
	return &wal.Batch{
		Prev: prev, First: first, Last: last, Bytes: int64(n), Time: time.Unix(int64(first), 0),
		Entries: make([]wal.BatchEntry, last-first+1),
		Tables:  []wal.BatchTable{{Table: 1, Ops: make([]wal.Op, n)}},
	}
}

func TestLaneReady(t *testing.T) {
	good := wal.Status{Incarnation: "I", Epoch: 3, ReleasedThrough: 10, SyncedThrough: 20}
	for name, c := range map[string]struct {
		change func(*wal.Status)
		want   error
	}{
		"good":                             {func(*wal.Status) {}, nil},
		"another incarnation":              {func(s *wal.Status) { s.Incarnation = "J" }, ErrIncarnation},
		"a stale owner":                    {func(s *wal.Status) { s.Epoch = 2 }, wal.ErrFenced},
		"released above the published cut": {func(s *wal.Status) { s.ReleasedThrough = 13 }, wal.ErrReleased},
		"ends below the published cut":     {func(s *wal.Status) { s.SyncedThrough = 11 }, wal.ErrGap},
	} {
		t.Run(name, func(t *testing.T) {
			st := good
			c.change(&st)
			l := &laneCut{incarnation: "I", epoch: 3, previous: 12, through: 12}
			require.ErrorIs(t, l.ready(st), c.want)
		})
	}
}

func TestLaneRead(t *testing.T) {
	broken := errors.New("broken off")
	for name, c := range map[string]struct {
		batches []*wal.Batch
		err     error
		budget  budget
		through wal.Seq
		rows    int
		want    error
	}{
		"all":                         {batches: []*wal.Batch{value(5, 6, 7, 2), value(7, 8, 9, 3)}, through: 9, rows: 5},
		"rows end the cut":            {batches: []*wal.Batch{value(5, 6, 7, 2), value(7, 8, 9, 3)}, budget: budget{rows: 4}, through: 7, rows: 2},
		"one value is always taken":   {batches: []*wal.Batch{value(5, 6, 7, 20)}, budget: budget{rows: 4}, through: 7, rows: 20},
		"an epoch leaves a hole":      {batches: []*wal.Batch{value(5, 6, 7, 1), value(7, 1000, 1000, 1)}, through: 1000, rows: 2},
		"a missing value":             {batches: []*wal.Batch{value(6, 7, 7, 1)}, through: 5, want: wal.ErrGap},
		"a missing value later":       {batches: []*wal.Batch{value(5, 6, 7, 1), value(8, 9, 9, 1)}, through: 7, rows: 1},
		"unsynced":                    {batches: []*wal.Batch{value(5, 6, 2000, 1)}, through: 5, want: wal.ErrGap},
		"sequences that do not rise":  {batches: []*wal.Batch{value(5, 4, 7, 1)}, through: 5, want: wal.ErrGap},
		"broken off at once":          {err: broken, through: 5, want: broken},
		"broken off after some":       {batches: []*wal.Batch{value(5, 6, 7, 1)}, err: broken, through: 7, rows: 1},
		"fenced while it was reading": {batches: []*wal.Batch{value(5, 6, 7, 1)}, err: wal.ErrFenced, through: 7, rows: 1, want: wal.ErrFenced},
	} {
		t.Run(name, func(t *testing.T) {
			if c.budget.rows == 0 {
				c.budget.rows = 100
			}
			source := &script{batches: c.batches, err: c.err}
			l := &laneCut{incarnation: "I", epoch: 3, source: source, previous: 5, through: 5, synced: 1500}
			require.ErrorIs(t, l.read(t.Context(), c.budget), c.want)
			require.Equal(t, c.through, l.through)
			require.Equal(t, c.rows, l.rows)
			require.Equal(t, wal.ReadRequest{Incarnation: "I", Epoch: 3, After: 5, Through: 1500}, source.request)
		})
	}
}

func TestShareNeverStarvesALane(t *testing.T) {
	require.Equal(t, budget{rows: 33, bytes: 10}, share(budget{rows: 100, bytes: 30}, 3))
	require.Equal(t, budget{rows: 1, bytes: 1}, share(budget{rows: 2, bytes: 1}, 3))
}
