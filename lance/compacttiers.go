package lance

import (
	"cmp"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

// deletedPart is the part of a full fragment's rows that must be deleted in one fragment before it is rewritten for them alone: less is not worth a commit.
const deletedPart = 64

// planTiers plans one compaction of many. Fragments of more than half of TargetRows are full. Of the others, which no index covers, it takes the longest
// run of the smallest ones that fits into TargetRows and has twice the live rows of its largest, if that are at least MinFragments or no more would fit.
// Beside that it rewrites fragments for their deleted rows, when those are more than their share and more than a part of TargetRows.
//
// What it costs: a row that is joined ends up in a fragment at least twice as large as the one it was in, so it is joined at most log2(TargetRows) times; a
// row that is deleted costs at most 1/share - 1 rewritten ones, and 1.5 for the fragment that becomes smaller by it.
//
// What it leaves: without such a run each of the sorted small fragments, from the MinFragments-th on, is larger than all before it together, up to those of a
// quarter of TargetRows. So when nothing is to be done there are at most MinFragments + log2(TargetRows) fragments without an index, and four for each
// TargetRows live rows. The rule that a table is compacted by size, and not by place, is that of tiered log-structured merge trees; in a table
// the place of a fragment means nothing, for a commit puts new ones behind all others.
func planTiers(fragments []Fragment, indexed *roaring.Bitmap, o CompactOptions) [][]Fragment {
	var small, rest []Fragment
	for _, f := range fragments {
		if !indexed.Contains(uint32(f.ID())) && f.PhysicalRows() > 0 && 2*int64(f.Rows()) <= o.TargetRows {
			small = append(small, f)
		} else {
			rest = append(rest, f)
		}
	}
	slices.SortStableFunc(small, func(a, b Fragment) int { return cmp.Compare(a.Rows(), b.Rows()) })
	n := tier(small, o)
	groups := [][]Fragment{slices.Clone(small[:n])}
	if n == 0 {
		groups = nil
	}
	for _, f := range append(rest, small[n:]...) {
		share := o.DeletedShare
		if indexed.Contains(uint32(f.ID())) {
			share = o.IndexedDeletedShare
		}
		if deletedShare(f) > share && deletedPart*int64(f.DeletedRows()) >= o.TargetRows {
			groups = append(groups, []Fragment{f})
		}
	}
	for _, g := range groups {
		slices.SortFunc(g, func(a, b Fragment) int { return cmp.Compare(a.ID(), b.ID()) })
	}
	return groups
}

// tier is how many of the fragments, which are sorted by their live rows, are joined.
func tier(sorted []Fragment, o CompactOptions) (n int) {
	total, doubles := int64(0), 0
	for i, f := range sorted {
		rows := int64(f.Rows())
		if total+rows > o.TargetRows { // no more would fit
			if doubles == i {
				n = max(n, i)
			}
			break
		}
		total += rows
		if i > 0 && total >= 2*rows {
			doubles = i + 1
			if doubles >= o.MinFragments {
				n = doubles
			}
		}
	}
	return n
}
