package fold

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"golang.org/x/sync/errgroup"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/options"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/publisher"
)

// CompactOptions pace the compaction of the graph's tables. The zero value is none, other than on request.
type CompactOptions struct {
	// Interval is the time between two looks at all tables; 0 = never. A look costs nothing, but for tables that were not opened yet. What it finds is done one call after each fold.
	Interval time.Duration
	// MinFragments is how many small fragments are worth a call (see [lance.CompactOptions]). Default 16.
	MinFragments int
	// MaxRows bounds the live rows that one call rewrites, and so how long it holds up a fold; it is also the size of a full fragment. Default 262,144.
	MaxRows int64
}

const (
	defaultCompactFragments = 16
	defaultCompactRows      = 1 << 18
	// compactDeletedShare of a fragment's rows may be deleted. A deleted row then costs four rewritten ones at most.
	compactDeletedShare = 0.2
	// maxOpenedByLook bounds the tables that one look opens, between two folds: those that no fold has touched since the start.
	maxOpenedByLook = 64
	// requestedFragments are worth a call that somebody has asked for.
	requestedFragments = 2
)

func (o *CompactOptions) ensureDefaults() {
	options.Default(&o.MinFragments, defaultCompactFragments)
	options.Default(&o.MaxRows, defaultCompactRows)
}

func (o *CompactOptions) validate(c *options.Check) {
	c.That(o.Interval >= 0, "Compact.Interval must not be negative")
	c.That(o.MinFragments > 1, "Compact.MinFragments must be above 1")
	c.That(o.MaxRows > 0, "Compact.MaxRows must be positive")
}

func (o *CompactOptions) lance(minFragments int) lance.CompactOptions {
	return lance.CompactOptions{MinFragments: minFragments, TargetRows: o.MaxRows, MaxRows: o.MaxRows, DeletedShare: compactDeletedShare}
}

// CompactReport says what the compactions of a table did.
type CompactReport struct {
	Commits int
	Rows    int64 // live rows that were written anew
	// Before and After are the table's fragments.
	Before, After int
}

// Compact compacts one table until nothing is worth it, a call at each of its turns between two folds (see [Folder.Do]), so that folds go on meanwhile. It takes less
// for worth it than the cadence does. An error leaves what was done before it.
func (f *Folder) Compact(ctx context.Context, key string) (r CompactReport, err error) {
	for more := true; more && err == nil; {
		err = f.Do(ctx, func(ctx context.Context) error {
			if r.Commits == 0 {
				if _, err := f.adopt(ctx); err != nil {
					return err
				}
			}
			done, err := f.compact(ctx, key, requestedFragments)
			if err != nil {
				return err
			}
			if r.Commits == 0 {
				r.Before, r.After = done.Before, done.After
			}
			if more = done.More; done.Table != nil {
				r.Commits++
				r.Rows += done.Rows
				r.After = done.After
			}
			return nil
		})
	}
	return r, err
}

// compactNext makes at most one call: of the table whose turn it is among those that were found at the last look. Only a folder that is fenced gets an error; with
// any other the table waits for the next look.
func (f *Folder) compactNext(ctx context.Context) error {
	if f.opts.Compact.Interval == 0 {
		return nil
	}
	if now := f.opts.Clock(); len(f.compactions) == 0 && !now.Before(f.nextCompaction) {
		f.nextCompaction = now.Add(f.opts.Compact.Interval)
		f.compactions = f.findCompactions(ctx)
	}
	if len(f.compactions) == 0 {
		return nil
	}
	key := f.compactions[0]
	f.compactions = f.compactions[1:]
	done, err := f.compact(ctx, key, f.opts.Compact.MinFragments)
	switch {
	case errors.Is(err, ErrFenced):
		return err
	case err != nil && ctx.Err() == nil && !errors.Is(err, publisher.ErrUsedUp):
		f.opts.Logger.WarnContext(ctx, "table not compacted", "table", key, "error", err)
	case done.More:
		f.compactions = append(f.compactions, key)
	}
	return nil
}

// findCompactions names the tables that are worth a call, by the versions that the last state of the heads names.
func (f *Folder) findCompactions(ctx context.Context) (keys []string) {
	if f.last == nil {
		return nil
	}
	var tables []heads.Table
	unopened := 0
	for _, t := range f.last.Tables {
		if !t.Head.State.TakesFolds() || !t.Enrolled && t.Key != heads.RejectsKey {
			continue
		}
		if f.opened(t.Key) == nil {
			unopened++
		}
		if unopened <= maxOpenedByLook || f.opened(t.Key) != nil {
			tables = append(tables, t)
		}
	}
	worth := make([]bool, len(tables))
	var g errgroup.Group
	g.SetLimit(f.opts.Parallel)
	for i, t := range tables {
		g.Go(func() error { worth[i] = f.worthCompacting(ctx, t); return nil })
	}
	_ = g.Wait() // the functions keep their errors themselves
	for i, t := range tables {
		if worth[i] {
			keys = append(keys, t.Key)
		}
	}
	return keys
}

// worthCompacting judges one table. One that was not opened since the start is read.
func (f *Folder) worthCompacting(ctx context.Context, t heads.Table) bool {
	table, err := f.openTable(ctx, f.last, t)
	worth := false
	if err == nil {
		f.metrics.fragments.Record(ctx, int64(len(table.Fragments())), metric.WithAttributes(attribute.String("table", t.Key)))
		worth, err = table.Compactable(f.opts.Compact.lance(f.opts.Compact.MinFragments))
	}
	if err != nil && ctx.Err() == nil {
		f.opts.Logger.WarnContext(ctx, "table not looked at for a compaction", "table", t.Key, "error", err)
	}
	return worth
}

// compact makes one call.
func (f *Folder) compact(ctx context.Context, key string, minFragments int) (publisher.Compacted, error) {
	started := f.opts.Clock()
	done, err := f.publisher.Compact(ctx, key, f.opened(key), f.opts.Compact.lance(minFragments))
	if err != nil {
		return done, fmt.Errorf("fold: %w", err)
	}
	if done.Table == nil {
		return done, nil
	}
	f.seen, f.last = max(f.seen, done.Snapshot.Version), done.Snapshot
	if t, ok := done.Snapshot.Table(key); ok {
		f.remember(map[heads.TableID]*lance.Table{t.ID: done.Table})
	}
	f.opts.Logger.InfoContext(ctx, "table compacted", "table", key, "version", done.Table.Version(), "fragments_before", done.Before, "fragments", done.After,
		"rows", done.Rows, "took", f.opts.Clock().Sub(started))
	f.announce(ctx, done.Snapshot)
	return done, nil
}

// opened is a table as it was opened last, nil when it was not.
func (f *Folder) opened(key string) *lance.Table {
	if f.last == nil {
		return nil
	}
	t, ok := f.last.Table(key)
	if !ok {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tables[t.ID]
}
