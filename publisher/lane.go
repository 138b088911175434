package publisher

import (
	"context"
	"fmt"

	"github.com/foldline/foldline/heads"
)

// LaneClaim asks for a lane.
type LaneClaim struct {
	Lane        uint32
	Incarnation string // of the log that will own it
	// AcceptLoss closes another open incarnation whose entries may not all be folded.
	AcceptLoss bool
	// Sealed is the last sequence of another open incarnation that was sealed durably: it is closed without loss when it is folded
	// through there. 0 = not sealed.
	Sealed uint64
	// Above is the highest epoch under which the log has numbered entries: a graph that was restored from an older copy may know less.
	Above uint64
}

// ClaimLane registers the incarnation and returns the lane's new epoch, above the last: before it has returned nothing may be
// acked. ErrIncarnation when another incarnation of the lane is open and not drained, or this one was closed; ErrInvalid for a lane
// that the graph does not have.
func ClaimLane(ctx context.Context, o Options, c LaneClaim) (epoch uint64, err error) {
	m, err := newManifest(o)
	if err != nil {
		return 0, err
	}
	if err := checkIncarnation(c.Incarnation); err != nil {
		return 0, err
	}
	id, err := m.mintID()
	if err != nil {
		return 0, err
	}
	m.step("claim.before")
	s, err := m.commit(ctx, nil, change{id: id, kind: heads.KindLane, actor: c.Incarnation,
		apply: func(next *heads.Snapshot, commit *heads.GraphCommit) error {
			if err := openLane(next, c); err != nil {
				return err
			}
			epoch = max(next.LaneEpoch(c.Lane), c.Above) + 1
			next.SetLaneEpoch(c.Lane, epoch)
			return nil
		}})
	if err != nil {
		return 0, err
	}
	m.step("claim.after")
	if now := s.LaneEpoch(c.Lane); now != epoch {
		return 0, fmt.Errorf("%w: lane %d is at epoch %d, ours was %d", ErrFenced, c.Lane, now, epoch)
	}
	return epoch, nil
}

// openLane makes c's incarnation the lane's only open one.
func openLane(next *heads.Snapshot, c LaneClaim) error {
	if c.Lane >= next.LaneCount {
		return invalid("lane %d: the graph has %d", c.Lane, next.LaneCount)
	}
	for _, other := range next.Cuts {
		if other.Lane != c.Lane || other.Incarnation == c.Incarnation || !other.Open {
			continue
		}
		drained := c.Sealed > 0 && other.Through >= c.Sealed
		if !drained && !c.AcceptLoss {
			return fmt.Errorf("%w: incarnation %q of lane %d is open, folded through %d", ErrIncarnation, other.Incarnation, c.Lane, other.Through)
		}
		other.Open = false
		next.SetCut(other)
	}
	known, ok := next.Cut(c.Lane, c.Incarnation)
	if ok && !known.Open {
		return fmt.Errorf("%w: incarnation %q of lane %d was closed at %d", ErrIncarnation, c.Incarnation, c.Lane, known.Through)
	}
	next.SetCut(heads.Cut{Lane: c.Lane, Incarnation: c.Incarnation, Through: known.Through, Open: true})
	return nil
}

// checkIncarnation refuses names that cannot be part of a row's id.
func checkIncarnation(name string) error {
	if name == "" || len(name) > 128 {
		return invalid("incarnation %q must have 1 to 128 characters", name)
	}
	for _, c := range name {
		if c <= ' ' || c > '~' || c == ':' || c == '"' {
			return invalid("incarnation %q: %q is not allowed", name, c)
		}
	}
	return nil
}
