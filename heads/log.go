package heads

import (
	"context"
	"iter"
	"slices"

	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
)

// Log returns the newest graph commits, newest first, at most limit of them (0 = all): the hot tail, then history. It costs a Current,
// and when the tail is not enough one LIST-free open of the history and one GET for each of its fragments that is needed, from the newest on.
func Log(ctx context.Context, store objstore.Store, root string, limit int) ([]GraphCommit, error) {
	return again(func() ([]GraphCommit, error) {
		s, err := Current(ctx, store, root)
		if err != nil {
			return nil, err
		}
		var commits []GraphCommit
		for c, err := range s.newestFirst(ctx, store) {
			if err != nil {
				return nil, err
			}
			if commits = append(commits, c); len(commits) == limit {
				break
			}
		}
		return commits, nil
	})
}

// newestFirst goes down the lineage from s: its hot tail, then the history that it names, fragment by fragment, each read when it is its
// turn. The versions are without a gap; ErrCorrupt where they are not. An error ends the sequence.
func (s *Snapshot) newestFirst(ctx context.Context, store objstore.Store) iter.Seq2[GraphCommit, error] {
	return func(yield func(GraphCommit, error) bool) {
		d := descent{last: GraphCommit{Version: s.Version + 1, Parent: s.Commit.ID}, yield: yield}
		err := d.down(s.Journal)
		if err == nil && !d.done && s.History.Through > 0 {
			err = d.history(ctx, store, s)
		}
		if err != nil {
			yield(GraphCommit{}, err)
		}
	}
}

// descent goes down a lineage commit by commit.
type descent struct {
	last  GraphCommit // that was yielded
	yield func(GraphCommit, error) bool
	done  bool // the first commit was reached, or the consumer has had enough
}

// down yields commits, which are oldest first, from the last on; those that were yielded before are left out.
func (d *descent) down(commits []GraphCommit) error {
	for _, c := range slices.Backward(commits) {
		switch {
		case d.done:
			return nil
		case c.Version >= d.last.Version:
			continue // the history may hold more than the snapshot says
		case c.Version != d.last.Version-1 || c.ID != d.last.Parent:
			return corrupt("graph commit %q of version %d is not the parent of version %d", c.ID, c.Version, d.last.Version)
		}
		d.last = c
		d.done = !d.yield(c, nil) || c.Version == firstGraphVersion
	}
	return nil
}

func (d *descent) history(ctx context.Context, store objstore.Store, s *Snapshot) error {
	t, err := s.openHistory(ctx, store)
	if err != nil {
		return err
	}
	for _, f := range slices.Backward(t.Fragments()) {
		commits, err := journalOf(ctx, t, f.ID())
		if err != nil {
			return err
		}
		if err := d.down(commits); err != nil || d.done {
			return err
		}
	}
	return corrupt("the history ends at version %d", d.last.Version)
}

// openHistory opens the history as s names it, for reading whole files.
func (s *Snapshot) openHistory(ctx context.Context, store objstore.Store) (*lance.Table, error) {
	path := Join(s.root, HistoryPath)
	t, err := lance.OpenVersion(ctx, newWholeReads(store, path), path, s.History.Version)
	if err != nil {
		return nil, err
	}
	return t, CheckStamp(t.Metadata())
}

// journalOf reads one fragment of the history: a run of graph commits, oldest first, whole with their table versions.
func journalOf(ctx context.Context, t *lance.Table, fragment uint64) ([]GraphCommit, error) {
	if w, ok := t.Store().(*wholeReads); ok {
		defer w.forget()
	}
	rows, err := scan(ctx, t, fragment)
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
	return d.s.Journal, d.finishJournal()
}
