package fold

import (
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/fence"
	"github.com/foldline/foldline/heads"
)

// listen notes what the heads say.
func (h *line) listen(snap *heads.Snapshot) {
	for _, key := range modelTables {
		t, ok := snap.Table(key)
		require.True(h.t, ok)
		if said := h.said[key]; len(said) == 0 || said[len(said)-1] != t.Head {
			h.said[key] = append(said, t.Head)
		}
	}
}

// verifyRepeated holds every number of repeated keys that the heads have given for a version to what the version holds. That there are none is only
// a claim when everything has come to rest: a folder may not have looked yet.
func (h *line) verifyRepeated(key string, states []plainTable) {
	for _, head := range h.said[key] {
		if head.State != heads.StateDuplicateKeys || head.Duplicates.Stale {
			continue
		}
		n := uint64(0)
		for _, values := range states[head.Version] {
			if len(values) > 1 {
				n++
			}
		}
		require.Equal(h.t, n, head.Duplicates.Keys, "version %d of %s", head.Version, key)
		h.met["repeated keys in the heads"]++
	}
}

// buildIndexes makes the last folder's index know all tables.
func (h *line) buildIndexes() {
	snap := h.w.heads()
	for _, key := range modelTables {
		t, _ := snap.Table(key)
		at, err := snap.OpenTable(h.w.ctx, h.w.store, key)
		require.NoError(h.t, err)
		require.NoError(h.t, h.folders[0].index.Follow(h.w.ctx, uint64(t.ID), at))
	}
}

// requireRepeated adopts what is left to adopt and holds the heads to what is there: the state of each table is exact then.
func (h *line) requireRepeated() {
	h.w.adopt()
	snap := h.w.heads()
	for _, key := range modelTables {
		at, err := snap.OpenTable(h.w.ctx, h.w.store, key)
		require.NoError(h.t, err)
		d, err := fence.FindDuplicates(h.w.ctx, at, fence.SearchLimits{})
		require.NoError(h.t, err)
		said := h.w.table(key).Head.Duplicates
		require.Equal(h.t, d.Keys, said.Keys, key)
		require.False(h.t, said.Stale, key)
	}
	h.listen(snap)
}
