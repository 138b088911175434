package publisher

import (
	"context"
	"fmt"

	"github.com/foldline/foldline/heads"
)

// LaneSeal tells where a lane's log ends.
type LaneSeal struct {
	Lane        uint32
	Incarnation string
	Epoch       uint64 // under which its owner stopped to take entries
	End         uint64 // its last sequence, synced; 0 when it is empty
}

// SealLane publishes that an incarnation takes no more entries and ends at s.End, which is so for ever: its owner must have stopped to take any, and whoever
// opens the log again finds it sealed. Sealing what is sealed changes nothing. ErrFenced when the lane has another owner, ErrConflict when the lane count is
// not being changed, or when the incarnation is sealed at another end.
func SealLane(ctx context.Context, o Options, s LaneSeal) error {
	m, err := newManifest(o)
	if err != nil {
		return err
	}
	m.step("seal.before")
	_, err = m.laneCommit(ctx, heads.KindSeal, s.Incarnation, func(next *heads.Snapshot) error { return seal(next, s) })
	if err != nil {
		return fmt.Errorf("seal lane %d: %w", s.Lane, err)
	}
	m.step("seal.after")
	return nil
}

func seal(next *heads.Snapshot, s LaneSeal) error {
	cut, ok := next.Cut(s.Lane, s.Incarnation)
	switch epoch := next.LaneEpoch(s.Lane); {
	case !ok || !cut.Open || epoch != s.Epoch:
		return fmt.Errorf("%w: lane %d is at epoch %d, ours is %d; incarnation %s: known %t, open %t", ErrFenced, s.Lane, epoch, s.Epoch, s.Incarnation, ok, cut.Open)
	case cut.Sealed && cut.End != s.End:
		return fmt.Errorf("%w: incarnation %s is sealed at %d, not at %d", ErrConflict, s.Incarnation, cut.End, s.End)
	case next.LaneTarget == 0:
		return fmt.Errorf("%w: the lane count is not being changed", ErrConflict)
	case s.End < cut.Through:
		return invalid("incarnation %s ends at %d and is folded through %d", s.Incarnation, s.End, cut.Through)
	}
	cut.Sealed, cut.End = true, s.End
	next.SetCut(cut)
	return nil
}

// ChangeLanes publishes that the graph is to have n lanes, and returns the state that says so. From then on owners of lanes seal them;
// [Publisher.FinishLanes] makes the change when all are drained. Another n while a change is under way replaces its target, also by the present count: the
// lanes are then sealed, drained and opened again all the same. Nothing is changed when the graph has n lanes and is not changing.
func (p *Publisher) ChangeLanes(ctx context.Context, n uint32) (*heads.Snapshot, error) {
	if n == 0 || n > maxLanes {
		return nil, invalid("%d lanes: a graph has 1 to %d", n, maxLanes)
	}
	s, err := p.Refresh(ctx)
	if err != nil || s.LaneTarget == n || s.LaneTarget == 0 && s.LaneCount == n {
		return s, err
	}
	err = p.alter(ctx, heads.KindLanes, func(next *heads.Snapshot, _ *heads.GraphCommit) error {
		next.LaneTarget = n
		return nil
	})
	return p.snap, err
}

// FinishLanes makes the change that is under way in one graph commit, compared inside of it: when every open incarnation is sealed and folded to its end they
// are all closed, every lane's epoch rises, and the count and its generation change. Its owners open new incarnations then; a key is so in one lane only at every
// moment (W5). ErrConflict, and nothing is changed, while a lane is not drained or none is to be changed.
func (p *Publisher) FinishLanes(ctx context.Context) (*heads.Snapshot, error) {
	err := p.alter(ctx, heads.KindLanes, func(next *heads.Snapshot, _ *heads.GraphCommit) error { return changeLanes(next) })
	return p.snap, err
}

func changeLanes(next *heads.Snapshot) error {
	if next.LaneTarget == 0 {
		return fmt.Errorf("%w: the lane count is not being changed", ErrConflict)
	}
	for _, c := range next.Cuts {
		if !c.Open {
			continue
		}
		if !c.Drained() {
			return fmt.Errorf("%w: incarnation %q of lane %d is folded through %d, sealed %t at %d", ErrConflict, c.Incarnation, c.Lane, c.Through, c.Sealed, c.End)
		}
		c.Open = false
		next.SetCut(c)
	}
	for _, l := range next.Lanes {
		next.SetLaneEpoch(l.ID, l.Epoch+1)
	}
	next.LaneCount, next.LaneTarget = next.LaneTarget, 0
	next.LaneGeneration++
	return nil
}
