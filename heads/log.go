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
		last := GraphCommit{Version: s.Version + 1, Parent: s.Commit.ID}
		down := func(commits []GraphCommit) (more bool) {
			for _, c := range slices.Backward(commits) {
				if c.Version >= last.Version {
					continue // the history may hold more than the snapshot says
				}
				if c.Version != last.Version-1 || c.ID != last.Parent {
					yield(GraphCommit{}, corrupt("graph commit %q of version %d is not the parent of version %d", c.ID, c.Version, last.Version))
					return false
				}
				if last = c; !yield(c, nil) {
					return false
				}
			}
			return true
		}
		if !down(s.Journal) || s.History.Through == 0 || last.Version == firstGraphVersion {
			return
		}
		t, err := s.openHistory(ctx, store)
		if err != nil {
			yield(GraphCommit{}, err)
			return
		}
		for _, f := range slices.Backward(t.Fragments()) {
			commits, err := journalOf(ctx, t, f.ID())
			if err != nil {
				yield(GraphCommit{}, err)
				return
			}
			if !down(commits) {
				return
			}
		}
		if last.Version != firstGraphVersion {
			yield(GraphCommit{}, corrupt("the history ends at version %d", last.Version))
		}
	}
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
