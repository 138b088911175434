package publisher

import (
	"context"
	"errors"
	"slices"

	"github.com/foldline/foldline/lance"
)

const (
	// mergeFanout is how many fragments of the history are made one at least; each merge makes the largest mergeGrowth times larger, so that a row is rewritten
	// once for every power of it.
	mergeFanout, mergeGrowth = 8, 4
	// mergeBehind is how many of the newest fragments are left alone, so that a short look back reads little: 128 graph commits, after the hot tail's.
	mergeBehind = 8
	// maxMergedRows bounds a merge, and so how long one holds up the next publish: some 0.2 s. Fragments that are too large for another are never
	// touched again, and a history of any length has a few small ones behind them.
	maxMergedRows = 1 << 18
	// historyVersions is how many versions of the history are kept behind the one that the heads name, for readers that found an older one there.
	historyVersions = 8
)

// mergeable returns the range of fragments, given by their rows, that are worth one, an empty one when there are none: as many as can be in front of the newest
// mergeBehind, at least mergeFanout, of which the largest grows to mergeGrowth times its size, so that no row is rewritten often.
func mergeable(fragments []uint64) (from, to int) {
	to = max(0, len(fragments)-mergeBehind)
	largest, rows := uint64(0), uint64(0)
	from = to
	for i := to - 1; i >= 0; i-- {
		if rows += fragments[i]; rows > maxMergedRows {
			break
		}
		if largest = max(largest, fragments[i]); to-i >= mergeFanout && rows >= mergeGrowth*largest {
			from = i
		}
	}
	return from, to
}

// mergeHistory makes update replace the history's mergeable fragments by one, whose rows it uploads in their order. Fragments are read by ascending id, so
// those behind them are added again as they are: the same files. It returns what it uploaded.
func (m *manifest) mergeHistory(ctx context.Context, t *lance.Table, update *lance.Update) ([]lance.Fragment, error) {
	all := t.Fragments()
	rows := make([]uint64, len(all))
	for i, f := range all {
		rows[i] = f.Rows()
	}
	from, to := mergeable(rows)
	if from == to {
		return nil, nil
	}
	merged, err := copyRows(ctx, t, all[from:to])
	if err != nil {
		return nil, err
	}
	update.NewFragments = slices.Clone(merged)
	for i, f := range all[from:] {
		update.RemovedFragmentIDs = append(update.RemovedFragmentIDs, f.ID())
		if from+i >= to {
			update.NewFragments = append(update.NewFragments, f.Unplaced())
		}
	}
	return merged, nil
}

// copyRows uploads the rows of fragments as new ones.
func copyRows(ctx context.Context, t *lance.Table, fragments []lance.Fragment) (copied []lance.Fragment, err error) {
	w := t.NewFragmentWriter(ctx, lance.WriteOptions{})
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Abort())
		}
	}()
	for rec, err := range t.ScanFragments(ctx, fragments, lance.ScanOptions{}) {
		if err != nil {
			return nil, err
		}
		err = w.Write(rec)
		rec.Release()
		if err != nil {
			return nil, err
		}
	}
	return w.Finish()
}

// pruneHistory removes old versions of the history, which only readers that hold an old state of the heads may still look for: they resolve
// again.
func (p *Publisher) pruneHistory(ctx context.Context) error {
	named := p.snap.History.Version
	if named <= historyVersions {
		return nil
	}
	_, err := p.history.remove(ctx, p.newestHistory, named-historyVersions)
	return err
}
