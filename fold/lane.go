package fold

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/wal"
)

// laneCut is one lane's part of a cut: the stored values of one incarnation
// above the published cut, up to through. It owns its batches.
type laneCut struct {
	lane        uint32
	incarnation string
	epoch       wal.Epoch
	source      wal.Source

	previous wal.Seq // the published cut
	synced   wal.Seq // the synced-through mark when the cut was chosen
	backlog  int64   // unreleased bytes then

	through wal.Seq // the cut; previous when nothing was taken
	batches []*wal.Batch
	rows    int
	entries int
	bytes   int64 // as stored
	memory  int64 // of the batches
	held    bool  // what remains waits for a table
}

// budget bounds what one lane may put into a cut. The first stored value is
// always taken, so that no value is too large to be folded.
type budget struct {
	rows  int
	bytes int64
}

// ready compares the published cut with the lane's own marks. Both faults mean
// that log and graph do not belong together any more: one of them was restored
// from an older copy.
func (l *laneCut) ready(st wal.Status) error {
	switch {
	case st.Incarnation != l.incarnation:
		return fmt.Errorf("%w: the lane has incarnation %q, the graph knows %q", ErrIncarnation, st.Incarnation, l.incarnation)
	case st.Epoch != l.epoch:
		return fmt.Errorf("%w: the log is at epoch %d, the graph at %d", wal.ErrFenced, st.Epoch, l.epoch)
	case st.ReleasedThrough > l.previous:
		return fmt.Errorf("the log was released beyond the heads, whose newest versions are missing: %w",
			&wal.RangeError{Err: wal.ErrReleased, From: l.previous, To: st.ReleasedThrough})
	case st.SyncedThrough < l.previous:
		return fmt.Errorf("the log ends below the heads, so it was restored from an older copy: %w",
			&wal.RangeError{Err: wal.ErrGap, From: st.SyncedThrough, To: l.previous})
	}
	l.synced, l.backlog = st.SyncedThrough, st.Bytes
	return nil
}

// pending says whether the lane has something to fold.
func (l *laneCut) pending() bool { return l.synced > l.previous }

// more says whether synced entries remain above the cut that could be folded at once.
func (l *laneCut) more() bool { return l.synced > l.through && !l.held }

// endBefore ends the cut before the first value with rows of one of the tables.
func (l *laneCut) endBefore(tables map[heads.TableID]bool) {
	at := slices.IndexFunc(l.batches, func(b *wal.Batch) bool {
		return slices.ContainsFunc(b.Tables, func(t wal.BatchTable) bool { return tables[heads.TableID(t.Table)] })
	})
	if at >= 0 {
		l.endAt(at)
	}
}

// indexOf finds one of the lane's values.
func (l *laneCut) indexOf(b *wal.Batch) int { return slices.Index(l.batches, b) }

// endAt ends the cut before a value; what remains waits.
func (l *laneCut) endAt(at int) {
	l.held = true
	for _, b := range l.batches[at:] {
		l.rows -= b.Rows()
		l.entries -= len(b.Entries)
		l.bytes, l.memory = l.bytes-b.Bytes, l.memory-b.Memory
		b.Release()
	}
	l.batches, l.through = l.batches[:at], l.previous
	if at > 0 {
		l.through = l.batches[at-1].Last
	}
}

// read takes stored values into the cut until the budget or the synced-through
// mark is reached. A read that breaks off after some values leaves a smaller
// cut, which is as good as any other: the fault comes back with the next fold,
// as the first thing that is read.
func (l *laneCut) read(ctx context.Context, b budget) error {
	request := wal.ReadRequest{
		Incarnation: l.incarnation, Epoch: l.epoch,
		After: l.previous, Through: l.synced, MaxBytes: b.bytes,
	}
	for batch, err := range l.source.Read(ctx, request) {
		if err == nil {
			err = l.follows(batch)
		}
		switch {
		case err != nil && ctx.Err() == nil && len(l.batches) > 0 && !errors.Is(err, wal.ErrFenced):
			return nil
		case err != nil:
			return err
		case len(l.batches) > 0 && (l.rows+batch.Rows() > b.rows || l.memory+batch.Memory > b.bytes):
			batch.Release()
			return nil
		}
		l.batches = append(l.batches, batch)
		l.through = batch.Last
		l.rows += batch.Rows()
		l.entries += len(batch.Entries)
		l.bytes, l.memory = l.bytes+batch.Bytes, l.memory+batch.Memory
	}
	return nil
}

// follows asserts that a value continues the cut: sequences rise and nothing is
// skipped (W3). It releases a batch that does not.
func (l *laneCut) follows(b *wal.Batch) error {
	if b.Prev == l.through && b.First > b.Prev && b.Last >= b.First && b.Last <= l.synced {
		return nil
	}
	defer b.Release()
	return &wal.RangeError{Err: wal.ErrGap, From: l.through, To: b.Prev}
}

// oldest is the log time of the first value of the cut.
func (l *laneCut) oldest() (time.Time, bool) {
	if len(l.batches) == 0 {
		return time.Time{}, false
	}
	return l.batches[0].Time, true
}

func (l *laneCut) release() {
	for _, b := range l.batches {
		b.Release()
	}
	l.batches = nil
}

// share splits the budget of a cut evenly over the lanes that have something to
// fold; what one lane leaves is not given to another, for the next fold follows
// at once.
func share(total budget, lanes int) budget {
	return budget{rows: max(1, total.rows/lanes), bytes: max(1, total.bytes/int64(lanes))}
}

// look asks the lane for its state and compares it with the graph's.
func (l *laneCut) look(ctx context.Context, graph string) error {
	st, err := l.source.Status(ctx)
	if err != nil {
		return err
	}
	if st.Graph != graph || st.Lane != l.lane {
		return fmt.Errorf("%w: it is lane %d of graph %q", ErrGraph, st.Lane, st.Graph)
	}
	return l.ready(st)
}
