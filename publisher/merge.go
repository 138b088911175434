package publisher

import (
	"context"
	"errors"
	"math/bits"

	"github.com/foldline/foldline/lance"
)

const (
	// mergeFanout is how many fragments of the history of one size are made one. Each row is rewritten once for every level of sizes.
	mergeFanout = 8
	// maxMergedRows bounds a merge, and so how long one holds up the next publish: some 0.2 s. Fragments that are too large for another are never
	// touched again, and a history of any length has a few small ones behind them.
	maxMergedRows = 1 << 18
	// historyVersions is how many versions of the history are kept behind the one that the heads name, for readers that found an older one there.
	historyVersions = 8
)

// mergeable returns the newest fragments that are worth one, nil when there are none: at least mergeFanout in a row that are all below the next
// size. Sizes are powers of mergeFanout.
func mergeable(fragments []lance.Fragment) []lance.Fragment {
	var best []lance.Fragment
	largest, rows := 0, uint64(0)
	for i := len(fragments) - 1; i >= 0; i-- {
		n := fragments[i].Rows()
		if rows += n; rows > maxMergedRows {
			break
		}
		largest = max(largest, bits.Len64(n)/3) // 3 bits are a factor of mergeFanout
		run := fragments[i:]
		if next := i == 0 || bits.Len64(fragments[i-1].Rows())/3 > largest; next && len(run) >= mergeFanout {
			best = run
		}
	}
	return best
}

// mergeHistory makes update replace the history's mergeable fragments by one, whose rows it uploads in their order.
func (m *manifest) mergeHistory(ctx context.Context, t *lance.Table, update *lance.Update) (err error) {
	group := mergeable(t.Fragments())
	if len(group) == 0 {
		return nil
	}
	w := t.NewFragmentWriter(ctx, lance.WriteOptions{})
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Abort())
		}
	}()
	for rec, err := range t.ScanFragments(ctx, group, lance.ScanOptions{}) {
		if err != nil {
			return err
		}
		err = w.Write(rec)
		rec.Release()
		if err != nil {
			return err
		}
	}
	if update.NewFragments, err = w.Finish(); err != nil {
		return err
	}
	for _, f := range group {
		update.RemovedFragmentIDs = append(update.RemovedFragmentIDs, f.ID())
	}
	return nil
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
