package fold

import (
	"errors"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/publisher"
)

// compactSteps are those of a compaction, with the adoption that may come before it.
var compactSteps = func() []string {
	steps := []string{"adopt.before", "adopt.after", "compact.before", "compact.after"}
	for _, table := range modelTables {
		steps = append(steps, "rewrite."+table+".before", "rewrite."+table+".after")
	}
	return steps
}()

// compact lets a folder compact a table between two folds: the owner, or one that does not know of its successor. A folder that has met an error goes on: it leaves
// nothing begun.
func (h *line) compact(t *rapid.T) {
	stale := rapid.IntRange(0, 3).Draw(t, "stale") == 0
	trouble := trouble{}
	if rapid.Bool().Draw(t, "with trouble") {
		trouble = h.drawTrouble(t, compactSteps)
	}
	table := rapid.SampledFrom(modelTables).Draw(t, "compacted")
	i := h.ownerOr(0)
	if stale {
		i = 1 - i
	}
	p := h.folders[i]
	if i == h.stopped || p.folder == nil {
		return
	}
	foreign := len(trouble.foreign) > 0
	p.begin(trouble)
	done, err := p.folder.compact(h.w.ctx, table, 2)
	hit, dead := p.hurt()
	switch {
	case hit, h.owner < 0:
	case h.owner != i && err == nil:
		require.Nil(h.t, done.Table, "folder %d goes on after folder %d has claimed", i, h.owner)
	case h.owner != i:
		require.ErrorIs(h.t, err, ErrFenced, "folder %d goes on after folder %d has claimed", i, h.owner)
	case err != nil:
		require.True(h.t, foreign && errors.Is(err, publisher.ErrConflict) || p.lost && errors.Is(err, objstore.ErrUnknownOutcome), "%v", err)
	}
	if dead || errors.Is(err, ErrFenced) {
		p.folder = nil
	}
}
