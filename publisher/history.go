package publisher

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/foldline/foldline/fence"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
)

const (
	// journalKeep is how many graph commits stay in the hot fragment when older ones move to the history.
	journalKeep = heads.HotTail
	// journalLimit is how many there may be before the commit moves them itself.
	journalLimit = 64
)

// moveHistory appends commits (oldest first, contiguous, up to some version) to the history, unless it holds them already, and returns what
// the heads may then name. known is what they name now. Moving is idempotent: the history's own metadata says how far it goes, and
// the rows are facts that no later commit changes, so it does not matter which process moved them. With merge, the same commit makes one
// fragment of small ones; a publish that has to move its own does not.
func (m *manifest) moveHistory(ctx context.Context, commits []heads.GraphCommit, known heads.History, merge bool) (heads.History, error) {
	t, err := lance.Open(ctx, m.o.Store, heads.Join(m.o.Root, heads.HistoryPath))
	if err != nil {
		return heads.History{}, err
	}
	through, err := historyThrough(t)
	if err != nil {
		return heads.History{}, err
	}
	if through < known.Through {
		return heads.History{}, fmt.Errorf("%w: the history ends at version %d, the heads name %d", heads.ErrCorrupt, through, known.Through)
	}
	m.newestHistory = t
	commits = slices.DeleteFunc(slices.Clone(commits), func(c heads.GraphCommit) bool { return c.Version <= through })
	if len(commits) == 0 {
		return heads.History{Version: t.Version(), Through: through}, nil
	}
	update := &lance.Update{PreservedFields: fieldIDs(t.Schema())}
	var uploaded []lance.Fragment
	if merge {
		if uploaded, err = m.mergeHistory(ctx, t, update); err != nil {
			return heads.History{}, err
		}
	}
	moved, err := m.appendHistory(ctx, t, update, commits)
	if errors.Is(err, lance.ErrConflict) {
		m.drop(ctx, t, uploaded)
	}
	return moved, err
}

// historyThrough reads how far the history goes; 0 before the first move.
func historyThrough(t *lance.Table) (uint64, error) {
	if err := heads.CheckStamp(t.Metadata()); err != nil {
		return 0, err
	}
	through, err := strconv.ParseUint(t.MetadataValue(heads.HistoryThrough), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: %s: %w", heads.ErrCorrupt, heads.HistoryThrough, err)
	}
	return through, nil
}

// appendHistory commits on exactly the version that was read.
func (m *manifest) appendHistory(ctx context.Context, t *lance.Table, update *lance.Update, commits []heads.GraphCommit) (heads.History, error) {
	f, err := m.write(ctx, t, heads.JournalRecord(commits))
	if err != nil {
		return heads.History{}, err
	}
	update.NewFragments = append(update.NewFragments, f)
	if update.Filter, err = fence.NewFilter(t.Schema(), hashes(heads.JournalIDs(commits))); err != nil {
		return heads.History{}, err
	}
	through := commits[len(commits)-1].Version
	done, err := t.Commit(ctx, lance.NewTransaction(t, update), lance.CommitOptions{MaxAttempts: 1, Clock: m.o.Clock,
		SetMetadata: map[string]string{heads.HistoryThrough: strconv.FormatUint(through, 10)},
		Check: func(_ context.Context, a lance.Attempt) error {
			if a.Latest.Version() != t.Version() {
				return fmt.Errorf("%w: the history has moved on to version %d", lance.ErrConflict, a.Latest.Version())
			}
			return nil
		}})
	if errors.Is(err, lance.ErrConflict) {
		m.drop(ctx, t, []lance.Fragment{f})
	}
	if err != nil {
		return heads.History{}, err
	}
	m.newestHistory = done.Table
	return heads.History{Version: done.Table.Version(), Through: through}, nil
}

// dropMoved names the history in next and drops from its journal what the history holds.
func dropMoved(next *heads.Snapshot, moved heads.History) {
	if moved.Through <= next.History.Through {
		return
	}
	next.History = moved
	next.Journal = slices.DeleteFunc(slices.Clone(next.Journal), func(c heads.GraphCommit) bool {
		return c.Version <= moved.Through && c.ID != next.Commit.ID
	})
}
