package run

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/wal"
)

// inherit makes a new log know the message ids that the logs of before acknowledged: those that the heads have closed. They are looked for in the directories
// that the operator names, and beside the log, where one that was set aside is; of one that is not found, receipts tell (dedupe_since). It comes
// after the claim, when their windows are final, and before the log begins.
func (i *ingester) inherit(ctx context.Context) (err error) {
	status, err := i.wal.Status(ctx)
	if err != nil {
		return err
	}
	if status.SyncedThrough > 0 {
		if len(i.cfg.Predecessors) > 0 {
			i.log.Warn("this log has entries; it inherits no message ids any more", "lane", i.cfg.Lane, "incarnation", status.Incarnation)
		}
		if i.cfg.AcceptLoss {
			return i.wal.MarkLoss() // what another log of the lane knew is not known here
		}
		return nil
	}
	s, err := heads.Current(ctx, i.store, graphRoot)
	if err != nil {
		return err
	}
	found, err := i.findPredecessors(ctx)
	defer func() {
		for _, log := range found {
			err = errors.Join(err, log.Close())
		}
	}()
	if err != nil {
		return err
	}
	from, err := predecessors(ctx, s, status, found)
	if err != nil || len(from) == 0 {
		return err
	}
	for _, p := range from {
		i.log.Info("message ids of a closed log", "lane", p.Lane, "incarnation", p.Incarnation, "folded_through", p.Through, "reached", p.Source != nil)
	}
	return i.wal.Inherit(ctx, from)
}

// findPredecessors opens the directories of closed logs, to be read.
func (i *ingester) findPredecessors(ctx context.Context) (found []*wal.Log, err error) {
	aside, err := wal.ListAside(i.cfg.WAL.Dir, nil)
	if err != nil {
		return nil, err
	}
	for _, dir := range slices.Concat(i.cfg.Predecessors, aside) {
		log, err := wal.OpenReadOnly(ctx, dir, nil)
		if err != nil {
			return found, fmt.Errorf("predecessor %s: %w", dir, err)
		}
		found = append(found, log)
	}
	return found, nil
}

// predecessors are the closed logs that may hold the first copy of a message that is sent to the lane now, and that no other one of them has inherited from, with
// those that were found: the lane's own, and all that the last change of the lane count has closed, for the keys were divided otherwise then.
func predecessors(ctx context.Context, s *heads.Snapshot, heir wal.Status, found []*wal.Log) ([]wal.Predecessor, error) {
	logs, inherited := map[wal.Origin]*wal.Log{}, map[wal.Origin]bool{}
	for _, log := range found {
		status, err := log.Status(ctx)
		if err != nil {
			return nil, err
		}
		logs[wal.Origin{Lane: status.Lane, Incarnation: status.Incarnation}] = log
		for _, o := range status.Predecessors {
			inherited[o] = true
		}
	}
	var from []wal.Predecessor
	own, _ := s.Cut(heir.Lane, heir.Incarnation)
	for _, c := range s.Cuts {
		o := wal.Origin{Lane: c.Lane, Incarnation: c.Incarnation}
		divided := c.Drained() && c.Generation+1 == own.Generation
		if c.Open || c.Lane != heir.Lane && !divided || inherited[o] {
			continue
		}
		p := wal.Predecessor{Lane: o.Lane, Incarnation: o.Incarnation, Through: wal.Seq(c.Through)}
		if log := logs[o]; log != nil {
			p.Source = log
		}
		from = append(from, p)
	}
	return from, nil
}
