package ingest_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/envelope"
	"github.com/foldline/foldline/internal/ingest"
	"github.com/foldline/foldline/internal/testkit"
	"github.com/foldline/foldline/publisher"
	"github.com/foldline/foldline/wal"
)

// TestLaneIsSealedForAChange (W1, W5): when the heads say that the lane count changes, an ingester takes nothing new, answers retries of what its log holds with
// their first receipts, publishes the end of its log, and ends when the change is made, with everything released.
func TestLaneIsSealedForAChange(t *testing.T) {
	l := newLine(t, settings{options: func(o *ingest.Options) {
		store, log := o.Store, o.Log
		o.Seal = func(ctx context.Context, end wal.Seq) error {
			s, err := heads.Resolve(ctx, store, "")
			if err != nil {
				return err
			}
			return publisher.SealLane(ctx, publisher.Options{Store: store},
				publisher.LaneSeal{Incarnation: log.Incarnation(), Epoch: s.LaneEpoch(0), End: uint64(end)})
		}
	}})
	row := message("node:Airport", `{"id":"ARN","name":"x"}`, envelope.HeaderMsgID, "one")
	first := l.ack(row)
	s, err := l.pub.ChangeLanes(t.Context(), 2)
	require.NoError(t, err)
	l.notify(t.Context(), &publisher.Published{Snapshot: s})
	testkit.WaitFor(t, "the lane to be sealed", func() bool {
		s, err := heads.Resolve(t.Context(), l.store, "")
		require.NoError(t, err)
		cut, _ := s.Cut(0, l.log.Incarnation())
		return cut.Sealed
	})
	for _, headers := range [][]string{nil, {envelope.HeaderMsgID, "two"}} {
		e := l.refusal(message("node:Airport", `{"id":"OSL","name":"x"}`, headers...))
		require.Equal(t, envelope.CodeLanesChanging, e.Code)
		require.ErrorIs(t, e, envelope.ErrBusy)
		require.Positive(t, e.RetryAfter)
	}
	again := l.ack(row)
	require.True(t, again.Duplicate)
	require.Equal(t, first.Seq, again.Seq)

	l.fold()
	s, err = l.pub.FinishLanes(t.Context())
	require.NoError(t, err)
	l.notify(t.Context(), &publisher.Published{Snapshot: s})
	err = testkit.Receive(t, "the end of the ingester", l.stopped)
	l.stopped <- err
	require.ErrorIs(t, err, ingest.ErrLanesChanged)
	status, err := l.log.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, wal.Seq(first.Seq), status.ReleasedThrough)
}
