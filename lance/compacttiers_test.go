package lance

import (
	"math"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/foldline/foldline/lance/internal/pb"
)

// tiered is a table's fragments under appends, deletes and compactions, without its rows.
type tiered struct {
	o                           CompactOptions
	fragments                   []*pb.DataFragment
	next                        uint64
	live                        int64
	written, deleted, rewritten int64
}

func newTiered(minFragments int, target int64) *tiered {
	s := &tiered{o: CompactOptions{MinFragments: minFragments, TargetRows: target, MaxRows: target, DeletedShare: 0.2}}
	s.o.ensureDefaults()
	return s
}

func (s *tiered) add(rows int64) {
	s.fragments = append(s.fragments, &pb.DataFragment{Id: s.next, PhysicalRows: uint64(rows)})
	s.next++
	s.live += rows
}

func (s *tiered) write(rows int64) {
	s.add(rows)
	s.written += rows
}

// remove deletes rows of one fragment, as many as it has at most.
func (s *tiered) remove(i int, rows int64) {
	f := s.fragments[i]
	dead := f.GetDeletionFile().GetNumDeletedRows()
	rows = min(rows, int64(f.GetPhysicalRows()-dead))
	f.DeletionFile = &pb.DeletionFile{NumDeletedRows: dead + uint64(rows)}
	s.live -= rows
	s.deleted += rows
	if f.GetDeletionFile().GetNumDeletedRows() == f.GetPhysicalRows() { // a commit drops it
		s.fragments = append(s.fragments[:i:i], s.fragments[i+1:]...)
	}
}

// compact makes one compaction and tells whether there was one.
func (s *tiered) compact(t require.TestingT) bool {
	groups := planTiers(wrapFragments(s.fragments), roaring.New(), s.o)
	total := int64(0)
	for _, g := range groups {
		rows := liveRows(g)
		if total > 0 && total+rows > s.o.MaxRows { // as Compact does
			break
		}
		total += rows
		gone := map[uint64]bool{}
		for _, f := range g {
			require.False(t, gone[f.ID()], "a fragment is in a group once")
			gone[f.ID()] = true
		}
		kept := s.fragments[:0:0]
		for _, f := range s.fragments {
			if !gone[f.GetId()] {
				kept = append(kept, f)
			}
		}
		require.Len(t, kept, len(s.fragments)-len(g))
		s.fragments = kept
		s.live -= rows
		for left := rows; left > 0; left -= s.o.TargetRows {
			s.add(min(left, s.o.TargetRows))
		}
	}
	s.rewritten += total
	return len(groups) > 0
}

// settle compacts until nothing is to be done and holds what is left to the bound of planTiers, and what it took to the other.
func (s *tiered) settle(t require.TestingT) {
	for s.compact(t) {
	}
	depth := math.Log2(float64(s.o.TargetRows))
	require.LessOrEqual(t, float64(len(s.fragments)), float64(s.o.MinFragments)+depth+4*float64(s.live)/float64(s.o.TargetRows), "fragments")
	require.LessOrEqual(t, float64(s.rewritten), float64(s.written)*depth+float64(s.deleted)*(1/s.o.DeletedShare-1+1.5), "rows rewritten")
	worst := 0.0
	for _, f := range s.fragments {
		if dead := int64(f.GetDeletionFile().GetNumDeletedRows()); deletedPart*dead >= s.o.TargetRows {
			worst = max(worst, float64(dead)/float64(f.GetPhysicalRows()))
		}
	}
	require.LessOrEqual(t, worst, s.o.DeletedShare, "deleted rows of a fragment that has many")
}

// TestTiersStayBounded: whatever is appended and deleted, the fragments that are left and the rows that are rewritten stay within the bounds that planTiers
// states (report C132).
func TestTiersStayBounded(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := newTiered(rapid.IntRange(2, 16).Draw(rt, "min fragments"), int64(rapid.IntRange(2, 20_000).Draw(rt, "target")))
		most := int64(rapid.SampledFrom([]int{1, 100, 10_000}).Draw(rt, "largest write"))
		for range rapid.IntRange(1, 60).Draw(rt, "rounds") {
			for range rapid.IntRange(0, 30).Draw(rt, "folds") {
				s.write(rapid.Int64Range(1, min(most, s.o.TargetRows)).Draw(rt, "rows"))
			}
			for range rapid.IntRange(0, 4).Draw(rt, "deletes") {
				if len(s.fragments) > 0 {
					s.remove(rapid.IntRange(0, len(s.fragments)-1).Draw(rt, "of"), rapid.Int64Range(1, most).Draw(rt, "dead"))
				}
			}
			s.settle(rt)
		}
	})
}

// TestADayOfFolds: a fold of 100 rows each second and a compaction each minute, for a day. 8,640,000 rows are in fragments whose number the bound of planTiers
// holds all the time, and each row was rewritten less than five times.
func TestADayOfFolds(t *testing.T) {
	const minute, day = 60, 1440
	s := newTiered(16, 1<<18)
	for range day {
		for range minute {
			s.write(100)
		}
		s.settle(t)
	}
	require.EqualValues(t, 100*minute*day, s.live)
	require.LessOrEqual(t, len(s.fragments), 16+18+4*int(s.live)/(1<<18))
	require.Less(t, s.rewritten, 5*s.written, "write amplification")
}

// TestADayOfUpserts: 100,000 keys, each fold replaces 100 of them, the oldest ones. A day's fragments and dead rows stay bounded by the live ones.
func TestADayOfUpserts(t *testing.T) {
	s := newTiered(16, 1<<18)
	s.write(100_000)
	for range 1440 {
		for range 60 {
			s.write(100)
			for left := int64(100); left > 0; {
				gone := min(left, int64(s.fragments[0].GetPhysicalRows()-s.fragments[0].GetDeletionFile().GetNumDeletedRows()))
				s.remove(0, gone)
				left -= gone
			}
		}
		s.settle(t)
		physical := uint64(0)
		for _, f := range s.fragments {
			physical += f.GetPhysicalRows()
		}
		require.LessOrEqual(t, physical, uint64(2*s.live))
	}
	require.EqualValues(t, 100_000, s.live)
	require.Less(t, s.rewritten, 7*s.written, "write amplification")
}
