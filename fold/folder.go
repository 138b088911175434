package fold

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/publisher"
	"github.com/foldline/foldline/wal"
)

// Folder turns cuts into publishes, one after the other.
type Folder struct {
	opts      Options
	publisher Publisher
	metrics   *metrics
	trigger   chan struct{}
	tasks     chan task
	stopped   chan struct{} // closed when Run has returned
	lastTurn  atomic.Pointer[turnEnd]

	// tables are the versions opened last, by table id; a hint that the head row judges before each use.
	mu     sync.Mutex
	tables map[heads.TableID]*lance.Table

	// nextAdoption is when foreign versions are looked for again, adopted the manifest version of the last adoption; Run's goroutine only.
	nextAdoption time.Time
	adopted      uint64

	// found are tables that this folder has suspended while planning, so that none of their rows is a dead letter yet, and when it last tried
	// them again.
	found map[heads.TableID]time.Time

	// pausing is a table whose pause has begun and whose rows are still folded, 0 when there is none.
	pausing heads.TableID

	// changing: the lane count is being changed; Run's goroutine only.
	changing bool

	// seen is the newest manifest version that was read or published, last the newest state that was.
	seen uint64
	last *heads.Snapshot

	// compactions are the tables to compact next, by key, nextCompaction is when they are looked for again, first after the first fold; Run's goroutine
	// only.
	compactions    []string
	nextCompaction time.Time

	// marks are the lanes as the last look found them; Run's goroutine only.
	marks []laneMark

	// lanesSeen are their ends then, by lane; laneWaits the rows that wait for other lanes.
	lanesSeen map[uint32]laneSeen
	laneWaits map[uint32]laneWait
}

// New makes a folder. It starts nothing.
func New(o Options) (*Folder, error) {
	o.EnsureDefaults()
	if err := o.Validate(); err != nil {
		return nil, err
	}
	m, err := newMetrics(o.Meter)
	if err != nil {
		return nil, fmt.Errorf("fold: instruments: %w", err)
	}
	f := &Folder{
		opts: o, publisher: o.Publisher, metrics: m,
		trigger: make(chan struct{}, 1), tasks: make(chan task, maxTasks), stopped: make(chan struct{}), tables: make(map[heads.TableID]*lance.Table),
		found: make(map[heads.TableID]time.Time), laneWaits: make(map[uint32]laneWait),
	}
	f.remember(o.Opened)
	return f, nil
}

// Trigger asks Run for a fold now. It never blocks; several requests before the fold begins are one.
func (f *Folder) Trigger() {
	select {
	case f.trigger <- struct{}{}:
	default:
	}
}

// FoldOnce folds what the lanes hold above the published cut, at most MaxRows and MaxBytes of it. It answers an empty
// report when there is nothing. A lane that cannot take part is named in the report and does not stop the others; when no
// lane can, that is an error. After an error the publisher may be used up (see [publisher.Publisher.Publish]); ErrFenced
// means that another folder owns the graph.
func (f *Folder) FoldOnce(ctx context.Context) (Report, error) {
	start := f.opts.Clock()
	snap, err := f.publisher.Refresh(ctx)
	if err != nil {
		return Report{}, fmt.Errorf("fold: refresh: %w", err)
	}
	if snap.Version < f.seen {
		return Report{}, heads.WentBack(snap.Version, f.seen)
	}
	f.seen, f.last = snap.Version, snap
	if snap, err = f.endPauses(ctx, snap); err != nil {
		return Report{}, fmt.Errorf("fold: end a pause: %w", err)
	}
	if snap, err = f.finishLanes(ctx, snap); err != nil {
		return Report{}, fmt.Errorf("fold: change of the lane count: %w", err)
	}
	f.metrics.states(ctx, snap)
	c, err := f.chooseCut(ctx, snap)
	if err != nil {
		return Report{}, err
	}
	defer c.release()
	if snap, err = f.holdBack(ctx, snap, c); err != nil {
		return Report{Lanes: c.failed}, err
	}
	if c.entries == 0 {
		if len(c.failed) == 0 {
			f.metrics.idle(ctx)
		}
		return Report{Lanes: c.failed}, nil
	}
	f.opts.Step("cut")
	ctx, span := f.startSpan(ctx, c)
	defer span.End()
	report, err := f.foldCut(ctx, snap, c, start)
	if err != nil {
		span.RecordError(err)
		f.metrics.failed(ctx, err, c.lag(f.opts.Clock()))
		return Report{Lanes: c.failed}, err
	}
	return report, nil
}

// foldCut prepares and publishes a cut that holds entries.
func (f *Folder) foldCut(ctx context.Context, snap *heads.Snapshot, c *cut, start time.Time) (Report, error) {
	prepared, tables, err := f.prepareAround(ctx, snap, c)
	if err != nil {
		return Report{}, fmt.Errorf("fold: prepare: %w", err)
	}
	if prepared == nil {
		return Report{Lanes: c.failed}, nil
	}
	f.opts.Step("prepared")
	published, err := f.publish(ctx, prepared)
	if err != nil {
		return Report{}, fmt.Errorf("fold: publish fold %d: %w", prepared.Fold, err)
	}
	f.seen, f.last = max(f.seen, published.Snapshot.Version), published.Snapshot
	f.opts.Step("published")
	f.remember(published.Tables)
	now, totals := f.opts.Clock(), sum(tables)
	report := Report{
		Fold: prepared.Fold, Entries: c.entries, Rows: c.rows, Tables: len(prepared.Tables), Bytes: c.bytes,
		Inserted: totals.inserted, Updated: totals.updated, Deleted: totals.deleted, Missing: totals.missing,
		Rejected: published.Rejects, Duration: now.Sub(start), Lag: c.lag(now), More: c.more(), Lanes: c.failed,
	}
	f.mark(c)
	f.metrics.published(ctx, report, totals.codes)
	f.traceVisible(ctx, c, now)
	f.opts.Notify(context.WithoutCancel(ctx), published)
	f.opts.Step("notified")
	f.index(ctx, published.Snapshot, tables)
	if err := f.publisher.Tidy(ctx); err != nil && ctx.Err() == nil { // nobody waits for it, and a later call does what is left
		f.opts.Logger.WarnContext(ctx, "old objects left behind", "error", err)
	}
	return report, nil
}

// publish finishes what it has begun: a stop request lets it go on for stopLimit,
// so that the next folder finds nothing to complete.
func (f *Folder) publish(ctx context.Context, prepared *publisher.Prepared) (*publisher.Published, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		if sleep(lasting, stopLimit) {
			cancel()
		}
	})()
	return f.publisher.Publish(lasting, prepared)
}

// cut is what one fold takes: a part of every lane that has something.
type cut struct {
	lanes   []*laneCut
	failed  []LaneError
	entries int
	rows    int
	bytes   int64
	open    int                 // lanes that may have something, those that failed too
	before  map[uint32]laneSeen // the lanes as the fold before had found them
}

func (c *cut) release() {
	for _, l := range c.lanes {
		l.release()
	}
}

func (c *cut) more() bool {
	for _, l := range c.lanes {
		if l.more() {
			return true
		}
	}
	return false
}

// lag is the age of the cut's oldest entry.
func (c *cut) lag(now time.Time) time.Duration {
	var lag time.Duration
	for _, l := range c.lanes {
		if at, ok := l.oldest(); ok {
			lag = max(lag, now.Sub(at))
		}
	}
	return lag
}

// previous and through are the two ends of the cut, for the lanes that moved.
func (c *cut) previous() []heads.Cut { return c.ends(func(l *laneCut) wal.Seq { return l.previous }) }
func (c *cut) through() []heads.Cut  { return c.ends(func(l *laneCut) wal.Seq { return l.through }) }

func (c *cut) ends(at func(*laneCut) wal.Seq) []heads.Cut {
	var out []heads.Cut
	for _, l := range c.lanes {
		if len(l.batches) > 0 {
			out = append(out, heads.Cut{Lane: l.lane, Incarnation: l.incarnation, Through: uint64(at(l)), Open: true})
		}
	}
	return out
}

// chooseCut asks every lane how far it is synced, shares the budget among those that have something, and reads.
func (f *Folder) chooseCut(ctx context.Context, snap *heads.Snapshot) (*cut, error) {
	c := &cut{}
	open := openLanes(snap, f.opts.Lanes)
	errs := make([]error, len(open))
	f.eachLane(open, func(i int, l *laneCut) { errs[i] = l.look(ctx, snap.Graph) })
	backlog := int64(0)
	f.marks = f.marks[:0]
	for i, l := range open {
		backlog += l.backlog
		f.marks = append(f.marks, laneMark{source: l.source, folded: l.previous})
		if errs[i] != nil {
			c.failed = append(c.failed, LaneError{Lane: l.lane, Err: errs[i]})
		} else if l.pending() {
			c.lanes = append(c.lanes, l)
		}
	}
	f.metrics.backlog.Record(ctx, backlog)
	f.noteSeen(c, open)
	if len(c.lanes) > 0 {
		b := share(budget{rows: f.opts.MaxRows, bytes: f.opts.MaxBytes}, len(c.lanes))
		errs = make([]error, len(c.lanes))
		f.eachLane(c.lanes, func(i int, l *laneCut) { errs[i] = l.read(ctx, b) })
		c.take(errs)
	}
	if err := ctx.Err(); err != nil {
		c.release()
		return nil, err
	}
	return c, c.allFailed(len(open))
}

// take keeps the lanes that were read and sums them up.
func (c *cut) take(errs []error) {
	kept := c.lanes[:0]
	for i, l := range c.lanes {
		if errs[i] != nil {
			l.release()
			c.failed = append(c.failed, LaneError{Lane: l.lane, Err: errs[i]})
			continue
		}
		kept = append(kept, l)
		c.entries += l.entries
		c.rows += l.rows
		c.bytes += l.bytes
	}
	c.lanes = kept
}

// endBefore ends the cut, on every lane, before the first value with rows of one of the tables.
func (c *cut) endBefore(tables map[heads.TableID]bool) {
	for _, l := range c.lanes {
		l.endBefore(tables)
	}
	c.sum()
}

// sum counts what the lanes have taken.
func (c *cut) sum() {
	c.entries, c.rows, c.bytes = 0, 0, 0
	for _, l := range c.lanes {
		c.entries += l.entries
		c.rows += l.rows
		c.bytes += l.bytes
	}
}

// allFailed is an error when there are lanes and none could take part.
func (c *cut) allFailed(lanes int) error {
	if lanes == 0 || len(c.failed) < lanes {
		return nil
	}
	errs := make([]error, len(c.failed))
	for i, l := range c.failed {
		errs[i] = fmt.Errorf("lane %d: %w", l.Lane, l.Err)
	}
	return fmt.Errorf("fold: no lane can be read: %w", errors.Join(errs...))
}

func (f *Folder) eachLane(lanes []*laneCut, do func(int, *laneCut)) {
	var g errgroup.Group
	g.SetLimit(f.opts.Parallel)
	for i, l := range lanes {
		g.Go(func() error { do(i, l); return nil })
	}
	_ = g.Wait() // the functions keep their errors themselves
}

// openLanes lists the open incarnations of the graph that have a reader and may have something to fold.
func openLanes(snap *heads.Snapshot, source func(uint32) wal.Source) []*laneCut {
	var out []*laneCut
	for _, c := range snap.Cuts {
		if !c.Open || c.Drained() {
			continue
		}
		src := source(c.Lane)
		if src == nil {
			continue
		}
		out = append(out, &laneCut{
			lane: c.Lane, incarnation: c.Incarnation, epoch: wal.Epoch(snap.LaneEpoch(c.Lane)), source: src,
			previous: wal.Seq(c.Through), through: wal.Seq(c.Through),
		})
	}
	return out
}

// openTable opens a table at its head version, from the cache when the head still names what was opened last.
func (f *Folder) openTable(ctx context.Context, snap *heads.Snapshot, t heads.Table) (*lance.Table, error) {
	f.mu.Lock()
	cached := f.tables[t.ID]
	f.mu.Unlock()
	if cached != nil && t.Head.Is(cached) {
		return cached, nil
	}
	opened, err := snap.OpenTable(ctx, f.opts.Store, t.Key)
	if err != nil {
		return nil, err
	}
	f.remember(map[heads.TableID]*lance.Table{t.ID: opened})
	return opened, nil
}

// remember keeps versions for the next fold.
func (f *Folder) remember(tables map[heads.TableID]*lance.Table) {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.Copy(f.tables, tables)
}
