package fold

import (
	"errors"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
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

// observation is a version of a table as it was when it was new: it may be gone when the history is verified.
type observation struct {
	tx    *lance.Transaction
	lines []string
}

// observe reads the versions that have come since the last time.
func (h *line) observe() {
	for _, key := range modelTables {
		newest, err := lance.Open(h.w.ctx, h.w.store, tablePaths[key])
		require.NoError(h.t, err)
		for v := uint64(len(h.observed[key]) + 1); v <= newest.Version(); v++ {
			at, err := newest.At(h.w.ctx, v)
			require.NoError(h.t, err)
			tx, err := at.Transaction(h.w.ctx)
			require.NoError(h.t, err)
			h.observed[key] = append(h.observed[key], observation{tx, h.w.scanVersion(at)})
		}
	}
}

// cleanUp removes what may go of the tables' old versions, whoever owns the graph and whoever is stopped meanwhile: every state that the heads retain is still read.
func (h *line) cleanUp(*rapid.T) {
	cleaner, err := publisher.NewCleaner(publisher.Options{Store: h.w.store, Retention: h.w.retention}, publisher.CleanOptions{MinVersions: 2})
	require.NoError(h.t, err)
	done, err := cleaner.Clean(h.w.ctx)
	require.NoError(h.t, err)
	h.met["version removed"] += done.Versions
	snap := h.w.heads()
	for v := max(snap.PrunedThrough+1, 2); v <= snap.Version; v++ {
		s, err := heads.AtVersion(h.w.ctx, h.w.store, "", v)
		require.NoError(h.t, err)
		for _, t := range s.Tables {
			at, err := s.OpenTable(h.w.ctx, h.w.store, t.Key)
			require.NoError(h.t, err)
			require.Len(h.t, h.w.scanVersion(at), int(t.Head.Rows))
		}
	}
}
