package fold

import (
	"context"

	"github.com/foldline/foldline/wal"
)

// laneMark is a lane as the last fold left it.
type laneMark struct {
	source wal.Source
	folded wal.Seq
}

// mark remembers how far the lanes of a published cut are folded.
func (f *Folder) mark(c *cut) {
	for _, l := range c.lanes {
		for i := range f.marks {
			if f.marks[i].source == l.source {
				f.marks[i].folded = l.through
			}
		}
	}
}

// backlogReached says whether a lane holds as many unfolded rows or bytes as a
// cut may have, so that the next fold should not wait for its time. A lane that
// has not yet released what was folded, or does not answer, says nothing.
func (f *Folder) backlogReached(ctx context.Context) bool {
	for _, m := range f.marks {
		st, err := m.source.Status(ctx)
		if err != nil || st.ReleasedThrough < m.folded {
			continue
		}
		if st.Rows >= int64(f.opts.MaxRows) || st.Bytes >= f.opts.MaxBytes {
			return true
		}
	}
	return false
}

// laneFaults remembers what was logged about each lane, so that a lane that
// stays away is one line and not one for each fold.
type laneFaults map[uint32]string

func (l laneFaults) log(ctx context.Context, f *Folder, failed []LaneError) {
	now := make(map[uint32]bool, len(failed))
	for _, e := range failed {
		now[e.Lane] = true
		if text := e.Err.Error(); l[e.Lane] != text {
			l[e.Lane] = text
			f.opts.Logger.WarnContext(ctx, "lane takes no part in folds", "lane", e.Lane, "error", e.Err)
		}
	}
	for lane := range l {
		if !now[lane] {
			delete(l, lane)
			f.opts.Logger.InfoContext(ctx, "lane takes part in folds again", "lane", lane)
		}
	}
}

func (f *Folder) logFold(ctx context.Context, r Report) {
	f.opts.Logger.DebugContext(ctx, "fold published", "fold", r.Fold, "entries", r.Entries, "rows", r.Rows, "tables", r.Tables,
		"inserted", r.Inserted, "updated", r.Updated, "deleted", r.Deleted, "missing", r.Missing, "rejected", r.Rejected,
		"duration", r.Duration, "lag", r.Lag)
}
