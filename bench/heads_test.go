package bench

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// TestHeadsAreFlat publishes whole folds on local disk, with pruning and the history mover at work, and counts them in windows around several depths: the
// same requests at every depth, DELETEs among them, bytes within 1.02 (P3). Deeper and wider cells, and times, are `make bench-heads`.
func TestHeadsAreFlat(t *testing.T) {
	c := HeadsConfig{Dir: t.TempDir(), Tables: []int{8, 64}, Depths: slices.Compact([]int{7, 97, deepest}), Window: 10 * moverTurn, Rounds: 1}
	cells, err := Heads(t.Context(), c)
	require.NoError(t, err)
	require.Len(t, cells, len(c.Tables))
	for _, cell := range cells {
		require.Len(t, cell.Windows, len(c.Depths))
		base := cell.base()
		for _, w := range cell.Windows {
			t.Logf("%d tables, %s", cell.Tables, w.line())
			require.Equal(t, Span{Verbs{Put: 2, List: 1}, Verbs{Put: 2, List: 1}, true}, w.Manifest)
			require.Equal(t, Span{Verbs{Put: 4, List: 2}, Verbs{Put: 4, List: 2}, true}, w.Publish, "the record and one table's commit beside the heads")
			require.Equal(t, Span{Verbs{Get: 2, List: 1}, Verbs{Get: 2, List: 1}, true}, w.Resolve)
			if w.Depth == 7 {
				continue // the hot tail fills, and there is nothing to prune yet
			}
			require.Equal(t, Span{Verbs{Get: 1, Delete: 3}, Verbs{Get: 1, Delete: 3}, true}, w.Tidy, "one version of the manifest with its file goes, and the record of the fold before")
			for _, v := range [][2][]int64{{base.HeadsBytes, w.HeadsBytes}, {base.ReadHeads, w.ReadHeads}} {
				require.InEpsilon(t, median(v[0]), median(v[1]), flatBytes-1)
				require.InEpsilon(t, slices.Max(v[0]), slices.Max(v[1]), flatBytes-1)
			}
			require.LessOrEqual(t, w.Travel.Log.Get, 3+100/moverTurn, "the newest 100 commits")
			require.LessOrEqual(t, w.Travel.AtTime.Get, 4+2*6, "a search in 64 versions")
		}
	}
	require.NotEmpty(t, HeadsTable(c, cells, ""))
	for _, f := range HeadsFigures(cells) {
		if f.Unit != "ms" {
			require.True(t, *f.Met, f.String())
		}
	}
}

// TestDisjointFoldsLand: the figure of two folds that share no key.
func TestDisjointFoldsLand(t *testing.T) {
	f, err := Disjoint(t.Context())
	require.NoError(t, err)
	require.Equal(t, 2.0, f.Ours)
	require.Equal(t, 1.0, *f.Peer)
	require.InDelta(t, 50, sharedBitFrom(), 20)
}
