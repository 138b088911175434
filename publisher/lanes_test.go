package publisher

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/objstore"
)

// The incarnations that open after a change.
var nextIncarnations = []string{"01JDTN0000000000000000000D", "01JDTN0000000000000000000E"}

// sealAt seals the test's lane under its present epoch.
func sealAt(ctx context.Context, p *Publisher, end uint64) error {
	s, err := p.resolve(ctx)
	if err != nil {
		return err
	}
	return SealLane(ctx, p.o, LaneSeal{Incarnation: testIncarnation, Epoch: s.LaneEpoch(0), End: end})
}

// TestLaneChangeComparesInsideTheCommit: the count changes only when every open incarnation is sealed and folded to its end, on the parent that the commit lands on,
// under the folder's epoch; before, during and after it every claim and seal that would break W5 is refused (X2).
func TestLaneChangeComparesInsideTheCommit(t *testing.T) {
	ctx := context.Background()
	store, log := crashGraph(t)
	p, err := Claim(ctx, options(store), "folder")
	require.NoError(t, err)
	end := uint64(len(log))
	finish := func() error { _, err := p.FinishLanes(ctx); return err }
	claim := func(lane uint32, incarnation string) error {
		_, err := ClaimLane(ctx, p.o, LaneClaim{Lane: lane, Incarnation: incarnation})
		return err
	}
	require.ErrorIs(t, finish(), ErrConflict, "nothing is to be changed")
	require.ErrorIs(t, sealAt(ctx, p, end), ErrConflict, "nothing is to be changed")
	require.ErrorIs(t, claim(1, nextIncarnations[1]), ErrInvalid)
	for _, n := range []uint32{0, maxLanes + 1} {
		_, err := p.ChangeLanes(ctx, n)
		require.ErrorIs(t, err, ErrInvalid)
	}
	s, err := p.ChangeLanes(ctx, 1)
	require.NoError(t, err)
	require.Zero(t, s.LaneTarget, "it has one")

	s, err = p.ChangeLanes(ctx, 2)
	require.NoError(t, err)
	require.EqualValues(t, 2, s.LaneTarget)
	require.ErrorIs(t, finish(), ErrConflict, "not sealed")
	require.ErrorIs(t, claim(1, nextIncarnations[1]), ErrLanesChanging)
	require.ErrorIs(t, claim(0, nextIncarnations[0]), ErrIncarnation)
	require.ErrorIs(t, SealLane(ctx, p.o, LaneSeal{Incarnation: testIncarnation, Epoch: s.LaneEpoch(0) + 1, End: end}), ErrFenced)
	require.ErrorIs(t, sealAt(ctx, p, 1), ErrInvalid, "folded further")
	require.NoError(t, sealAt(ctx, p, end))
	require.NoError(t, sealAt(ctx, p, end))
	require.ErrorIs(t, sealAt(ctx, p, end+1), ErrConflict)
	require.ErrorIs(t, finish(), ErrConflict, "not drained")
	before := s.LaneEpoch(0)
	require.NoError(t, claim(0, testIncarnation), "what is left has to be served")
	_, err = publishThrough(ctx, p, log, end)
	require.NoError(t, err)

	require.NoError(t, claim(0, testIncarnation)) // between what the folder has read and its commit
	require.NoError(t, finish())
	s, err = p.Refresh(ctx)
	require.NoError(t, err)
	require.EqualValues(t, []uint32{2, 1, 0}, []uint32{s.LaneCount, s.LaneGeneration, s.LaneTarget})
	require.Equal(t, []heads.Cut{{Incarnation: testIncarnation, Through: end, Sealed: true, End: end}}, s.Cuts)
	require.Equal(t, before+3, s.LaneEpoch(0), "two claims, and the change")
	require.ErrorIs(t, finish(), ErrConflict)
	require.ErrorIs(t, claim(0, testIncarnation), ErrIncarnation)
	require.ErrorIs(t, sealAt(ctx, p, end), ErrFenced)
	require.ErrorIs(t, claim(2, nextIncarnations[0]), ErrInvalid)
	require.NoError(t, claim(0, nextIncarnations[0]))
	require.NoError(t, claim(1, nextIncarnations[1]))
	_, err = Init(ctx, p.o, InitSpec{Graph: testGraph, Lanes: 1})
	require.NoError(t, err, "the setting of before is no fault")

	stale := p
	p, err = Claim(ctx, options(store), "successor")
	require.NoError(t, err)
	_, err = stale.ChangeLanes(ctx, 4)
	require.ErrorIs(t, err, ErrFenced)
	_, err = stale.FinishLanes(ctx)
	require.ErrorIs(t, err, ErrFenced)
}

// changeToTwo is what folder and lane owners do for a change to two lanes, from wherever it was left.
func changeToTwo(ctx context.Context, store objstore.Store, log []entry) error {
	p, err := Claim(ctx, options(store), "folder")
	if err != nil {
		return err
	}
	s, err := p.Refresh(ctx)
	if err != nil {
		return err
	}
	if s.LaneCount == 1 {
		if _, err := p.ChangeLanes(ctx, 2); err != nil {
			return err
		}
		if err := sealAt(ctx, p, uint64(len(log))); err != nil {
			return err
		}
		if err := foldRest(ctx, p, log); err != nil {
			return err
		}
		if _, err := p.FinishLanes(ctx); err != nil {
			return err
		}
	}
	for lane, incarnation := range nextIncarnations {
		if _, err := ClaimLane(ctx, p.o, LaneClaim{Lane: uint32(lane), Incarnation: incarnation}); err != nil {
			return err
		}
	}
	return nil
}

// TestCrashInALaneChange cuts all processes off at every write of a change, before and after: what is begun again ends in the same state, with every entry
// folded once.
func TestCrashInALaneChange(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	first, log := crashGraph(t)
	want := wholeModel(log)
	for _, after := range []bool{false, true} {
		for k := 1; ; k++ {
			store := clone(t, first)
			cut, hit := cutOff(store, k, after)
			err := changeToTwo(ctx, cut, log)
			if !hit() {
				require.NoError(t, err)
				require.Greater(t, k, 20)
				break
			}
			require.NoError(t, changeToTwo(ctx, store, log), "after a crash at write %d (after %t)", k, after)
			require.NoError(t, want.check(ctx, store, log), "after a crash at write %d (after %t)", k, after)
			s, err := heads.Resolve(ctx, store, testRoot)
			require.NoError(t, err)
			require.EqualValues(t, []uint32{2, 1, 0}, []uint32{s.LaneCount, s.LaneGeneration, s.LaneTarget})
		}
	}
}
