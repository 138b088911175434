package run

import (
	"context"
	"errors"
	"fmt"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/ingest"
	"github.com/foldline/foldline/publisher"
	"github.com/foldline/foldline/wal"
)

// checkLoss refuses a log and a graph that do not belong together: one of them was restored from an older copy. The error names what is missing.
//
// With the loss accepted it names what is left behind instead: the entries above the cut of another open incarnation, whose disk may be gone, and what is
// missing between this log and the graph. In the latter case the log is set aside and a new incarnation begins, for numbers of the old one are no
// longer to be trusted; what it holds above its cut can be listed and replayed.
func (i *ingester) checkLoss(ctx context.Context, options wal.Options) error {
	s, err := heads.Current(ctx, i.store, graphRoot)
	if err != nil {
		return err
	}
	status, err := i.wal.Status(ctx)
	if err != nil {
		return err
	}
	if closedByChange(s, status) {
		i.log.Info("the lane count was changed; the log, of which every entry is folded, is set aside and a new one begins", "lane", status.Lane, "incarnation", status.Incarnation)
		_, err := i.setAside(ctx, options)
		return err
	}
	missing := mismatch(s, status)
	if !i.cfg.AcceptLoss {
		return missing
	}
	for _, c := range s.Cuts {
		if c.Lane == i.cfg.Lane && c.Open && c.Incarnation != status.Incarnation {
			i.log.Error("loss accepted: entries of the lane's other log are left behind; foldline wal dump --unfolded and wal replay find them on its disk",
				"lane", c.Lane, "incarnation", c.Incarnation, "above", c.Through)
		}
	}
	if missing == nil {
		return nil
	}
	aside, err := i.setAside(ctx, options)
	if err != nil {
		return err
	}
	i.log.Error("loss accepted: the log and the graph do not belong together; the log is set aside and a new one begins",
		"lane", status.Lane, "incarnation", status.Incarnation, "missing", missing, "set_aside", aside)
	return nil
}

// closedByChange tells whether a change of the lane count has closed the log's incarnation, of which every entry is folded.
func closedByChange(s *heads.Snapshot, log wal.Status) bool {
	cut, _ := s.Cut(log.Lane, log.Incarnation)
	return !cut.Open && cut.Drained() && uint64(log.SyncedThrough) == cut.End
}

// orChanged is a refused claim's error, and ingest.ErrLanesChanged with it when a change of the lane count has begun or ended since the graph was opened: the lane
// is to be opened once more, which waits for the end of one that is under way.
func (i *ingester) orChanged(ctx context.Context, refused error) error {
	lanes := errors.Is(refused, publisher.ErrIncarnation) || errors.Is(refused, publisher.ErrLanesChanging) || errors.Is(refused, publisher.ErrInvalid)
	if !lanes {
		return refused
	}
	s, err := heads.Resolve(ctx, i.store, graphRoot)
	if err != nil || s.LaneGeneration == i.graph.LaneGeneration && !errors.Is(refused, publisher.ErrLanesChanging) {
		return errors.Join(refused, err)
	}
	return fmt.Errorf("%w while lane %d was opened: %w", ingest.ErrLanesChanged, i.cfg.Lane, refused)
}

// setAside puts the log out of the way and opens a new one in its place.
func (i *ingester) setAside(ctx context.Context, options wal.Options) (aside string, err error) {
	if err := i.wal.Close(); err != nil {
		return "", err
	}
	i.step("aside.before")
	if aside, err = wal.SetAside(options); err != nil {
		return "", err
	}
	i.step("aside.after")
	i.wal, err = wal.Open(ctx, options)
	return aside, err
}

// mismatch says which entries are missing between a log and its graph: it is closed in the heads, ends below what is published, or has been released beyond
// it. nil when none are: a log that still holds all that a restored graph has lost is folded into it again.
func mismatch(s *heads.Snapshot, log wal.Status) error {
	cut, known := s.Cut(log.Lane, log.Incarnation)
	switch through := wal.Seq(cut.Through); {
	case known && !cut.Open:
		return fmt.Errorf("%w: incarnation %s of lane %d was closed at %d", publisher.ErrIncarnation, log.Incarnation, log.Lane, through)
	case log.SyncedThrough < through:
		return fmt.Errorf("%w: sequences above %d up to %d are published and not in the log", ingest.ErrLogBehind, log.SyncedThrough, through)
	case log.ReleasedThrough > through:
		return fmt.Errorf("%w: sequences above %d up to %d are released and not published", ingest.ErrGraphBehind, through, log.ReleasedThrough)
	}
	return nil
}

// usedEpoch is the highest epoch under which the log has numbered entries.
func (i *ingester) usedEpoch(ctx context.Context) uint64 {
	s, err := i.wal.Status(ctx)
	if err != nil {
		return 0 // the log says the same when it begins
	}
	return uint64(s.SyncedThrough.Epoch())
}
