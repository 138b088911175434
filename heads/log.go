package heads

import (
	"context"
	"slices"

	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
)

// Log returns the newest graph commits, newest first, at most limit of them (0 = all): the hot tail, then history. It costs a Current,
// and when the tail is not enough a read of the history.
func Log(ctx context.Context, store objstore.Store, root string, limit int) ([]GraphCommit, error) {
	s, err := Current(ctx, store, root)
	if err != nil {
		return nil, err
	}
	commits := slices.Clone(s.Journal)
	if s.History.Through > 0 && (limit <= 0 || limit > len(commits)) {
		older, err := s.history(ctx, store)
		if err != nil {
			return nil, err
		}
		commits = slices.Concat(older, commits)
	}
	slices.Reverse(commits)
	if limit > 0 && limit < len(commits) {
		commits = commits[:limit]
	}
	return commits, nil
}

// history reads the graph commits that were moved out of the hot fragment, oldest first. The history may hold more than the
// snapshot says: what is also in the journal is left out.
func (s *Snapshot) history(ctx context.Context, store objstore.Store) ([]GraphCommit, error) {
	t, err := lance.OpenVersion(ctx, store, Join(s.root, HistoryPath), s.History.Version)
	if err != nil {
		return nil, err
	}
	if err := CheckStamp(t.Metadata()); err != nil {
		return nil, err
	}
	rows, err := scan(ctx, t)
	if err != nil {
		return nil, err
	}
	d := newDecoder()
	for _, r := range rows {
		if r.kind != typeCommit && r.kind != typeVersion || d.once[r.id] {
			return nil, corrupt("history row %q: kind %q, or met twice", r.id, r.kind)
		}
		d.once[r.id] = true
		if err := d.journal(r); err != nil {
			return nil, err
		}
	}
	if err := d.finishJournal(); err != nil {
		return nil, err
	}
	first := s.Journal[0].Version
	return slices.DeleteFunc(d.s.Journal, func(c GraphCommit) bool { return c.Version >= first }), nil
}
