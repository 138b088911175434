package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/foldline/foldline/wal"
)

// look asks the watcher for a look at the heads; it never blocks.
func (in *Ingester) look() {
	select {
	case in.hint <- struct{}{}:
	default:
	}
}

// hints subscribes to the published event. An event says only that looking is worth while.
func (in *Ingester) hints() (unsubscribe func(), err error) {
	sub, err := in.o.Conn.Subscribe(in.subjects.Published(), func(*nats.Msg) { in.look() })
	if err != nil {
		return nil, fmt.Errorf("ingest: subscribe %s: %w", in.subjects.Published(), err)
	}
	return func() {
		if err := sub.Unsubscribe(); err != nil {
			in.o.Logger.Debug("unsubscribe", "subject", sub.Subject, "error", err)
		}
	}, nil
}

// watch keeps the view, the visible waiters and the release up to date until ctx ends. Its error ends the ingester.
func (in *Ingester) watch(ctx context.Context) error {
	tick := time.NewTicker(in.o.RefreshInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-in.hint:
		case <-tick.C:
		}
		err := in.refresh(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case fatal(err):
			return err
		case err != nil:
			in.o.Logger.Warn("the heads could not be read; going on with those read before", "error", err)
		}
	}
}

// refresh reads the heads and does what follows from them.
func (in *Ingester) refresh(ctx context.Context) error {
	v, err := in.catalog.resolve(ctx)
	if err != nil {
		return err
	}
	through, err := in.judge(ctx, v)
	if err != nil && !errors.Is(err, ErrLanesChanged) {
		return err
	}
	in.visible.reached(ctx, v)
	if err := errors.Join(in.release(ctx, through), err); err != nil {
		return err
	}
	return in.sealFor(ctx, v)
}

// judge compares the heads with the log and tells how far the log may be released.
func (in *Ingester) judge(ctx context.Context, v *view) (wal.Seq, error) {
	s := v.snapshot
	cut, known := s.Cut(in.o.Lane, in.o.Log.Incarnation())
	if closed := known && !cut.Open && cut.Drained(); s.Graph != in.o.Graph || in.o.Lane >= max(s.LaneCount, 1) && !closed {
		return 0, fmt.Errorf("%w: the heads are of graph %q with %d lanes, this is lane %d of %q", ErrWrongGraph, s.Graph, s.LaneCount, in.o.Lane, in.o.Graph)
	}
	incarnation := in.o.Log.Incarnation()
	// The log is asked after the heads were read: it only moves on meanwhile.
	status, err := in.o.Log.Status(ctx)
	if err != nil {
		return 0, err
	}
	epoch := s.LaneEpoch(in.o.Lane)
	if known && !cut.Open && cut.Drained() && status.SyncedThrough == wal.Seq(cut.End) {
		return releasable(status, wal.Seq(cut.End)), fmt.Errorf("%w: the graph has %d by now", ErrLanesChanged, s.LaneCount)
	}
	if !known || !cut.Open || epoch > uint64(status.Epoch) {
		in.catalog.lost.Store(true)
		return 0, fmt.Errorf("%w: lane %d is at epoch %d, ours is %d; incarnation %s: known %t, open %t",
			ErrFenced, in.o.Lane, epoch, status.Epoch, incarnation, known, cut.Open)
	}
	through := wal.Seq(cut.Through)
	if status.SyncedThrough < through {
		return 0, fmt.Errorf("%w: sequences above %d up to %d are published and not in the log", ErrLogBehind, status.SyncedThrough, through)
	}
	if status.ReleasedThrough > through {
		return 0, fmt.Errorf("%w: sequences above %d up to %d are released and not published", ErrGraphBehind, through, status.ReleasedThrough)
	}
	if end := wal.Seq(cut.End); cut.Sealed && status.SyncedThrough != end {
		return 0, fmt.Errorf("%w: the lane is sealed at %d, the log ends at %d", ErrLogBehind, end, status.SyncedThrough)
	}
	return releasable(status, through), nil
}

// releasable is through, or zero when the log is released up to there.
func releasable(status wal.Status, through wal.Seq) wal.Seq {
	if status.ReleasedThrough == through {
		return 0
	}
	return through
}

// release gives back the log up to the cut of heads that this process read (W4); zero is nothing to do.
func (in *Ingester) release(ctx context.Context, through wal.Seq) error {
	if through == 0 {
		return nil
	}
	start := time.Now()
	err := in.o.Log.Release(ctx, through)
	in.metrics.released(time.Since(start), err)
	if err != nil {
		return fmt.Errorf("ingest: release through %d: %w", through, err)
	}
	return nil
}
