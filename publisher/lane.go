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
	// Above is the highest epoch under which the log has numbered entries: a graph that was restored from an older copy may know less.
	Above uint64
}

// ClaimLane registers the incarnation and returns the lane's new epoch, above the last: before it has returned nothing may be
// acked. ErrIncarnation when another incarnation of the lane is open and not drained, or this one was closed; ErrInvalid for a lane
// that the graph does not have; ErrLanesChanging for a new incarnation while the lane count changes. One that is sealed may be claimed, to serve
// what is not folded yet; it takes no more entries.
func ClaimLane(ctx context.Context, o Options, c LaneClaim) (epoch uint64, err error) {
	m, err := newManifest(o)
	if err != nil {
		return 0, err
	}
	if err := checkIncarnation(c.Incarnation); err != nil {
		return 0, err
	}
	m.step("claim.before")
	s, err := m.laneCommit(ctx, heads.KindLane, c.Incarnation, func(next *heads.Snapshot) error {
		if err := openLane(next, c); err != nil {
			return err
		}
		epoch = max(next.LaneEpoch(c.Lane), c.Above) + 1
		next.SetLaneEpoch(c.Lane, epoch)
		return nil
	})
	if err != nil {
		return 0, err
	}
	m.step("claim.after")
	if now := s.LaneEpoch(c.Lane); now != epoch {
		return 0, fmt.Errorf("%w: lane %d is at epoch %d, ours was %d", ErrFenced, c.Lane, now, epoch)
	}
	return epoch, nil
}

// CheckClaim tells whether a claim would succeed on a state, by its error, as ClaimLane does. It changes nothing.
func CheckClaim(s *heads.Snapshot, c LaneClaim) error { return openLane(s.Clone(), c) }

// laneCommit makes a graph commit of a lane's owner.
func (m *manifest) laneCommit(ctx context.Context, kind, incarnation string, apply func(next *heads.Snapshot) error) (*heads.Snapshot, error) {
	id, err := m.mintID()
	if err != nil {
		return nil, err
	}
	return m.commit(ctx, nil, change{id: id, kind: kind, actor: incarnation,
		apply: func(next *heads.Snapshot, _ *heads.GraphCommit) error { return apply(next) }})
}

// openLane makes c's incarnation the lane's only open one.
func openLane(next *heads.Snapshot, c LaneClaim) error {
	known, ok := next.Cut(c.Lane, c.Incarnation)
	other, taken := otherOpen(next, c)
	switch changing := next.LaneTarget > 0; {
	case ok && !known.Open:
		return fmt.Errorf("%w: incarnation %q of lane %d was closed at %d", ErrIncarnation, c.Incarnation, c.Lane, known.Through)
	case c.Lane >= next.LaneCount && c.Lane < next.LaneTarget, changing && !ok && !taken:
		return fmt.Errorf("%w from %d to %d: lane %d can be claimed when that is done", ErrLanesChanging, next.LaneCount, next.LaneTarget, c.Lane)
	case c.Lane >= next.LaneCount:
		return invalid("lane %d: the graph has %d; foldline lanes changes that", c.Lane, next.LaneCount)
	case taken && (changing || !other.Drained()) && !c.AcceptLoss:
		return fmt.Errorf("%w: incarnation %q of lane %d is open, folded through %d", ErrIncarnation, other.Incarnation, c.Lane, other.Through)
	}
	if taken {
		other.Open = false
		next.SetCut(other)
	}
	if !ok {
		known = heads.Cut{Lane: c.Lane, Incarnation: c.Incarnation, Open: true, Generation: next.LaneGeneration}
	}
	next.SetCut(known)
	return nil
}

// otherOpen finds another open incarnation of the lane.
func otherOpen(s *heads.Snapshot, c LaneClaim) (heads.Cut, bool) {
	for _, other := range s.Cuts {
		if other.Lane == c.Lane && other.Incarnation != c.Incarnation && other.Open {
			return other, true
		}
	}
	return heads.Cut{}, false
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
