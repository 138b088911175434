package bench

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/foldline/foldline/fence"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/keys"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/publisher"
)

const (
	graphRoot   = "graph"
	incarnation = "01JDTN0000000000000000000C"
	// rowKey is the key of the one row that every table holds: a fold replaces it, so that the tables' own commits cost the same at
	// every depth, and what grows, if anything does, is the heads.
	rowKey = "k"
	// cleanEvery is how many of its own commits lie between two cleanups of a table, the ordinary one of package lance: few, so that a table's folder of
	// versions, which a commit lists, is as full in a young graph as in an old one.
	cleanEvery = 8
)

// graph is a real graph of real tables whose folds are planned here and published by package publisher: every publish is a record, a fenced
// commit per touched table, and the heads.
type graph struct {
	store   objstore.Store
	p       *publisher.Publisher
	tables  int
	touched int
	depth   int          // publishes so far
	now     atomic.Int64 // milliseconds; tables are committed at once
}

// newGraph makes a graph whose retention is by count alone, so that runs repeat: its clock goes a millisecond a reading.
func newGraph(ctx context.Context, store objstore.Store, tables, touched int, keep uint64) (*graph, error) {
	g := &graph{store: store, tables: tables, touched: min(touched, tables)}
	g.now.Store(1 << 40)
	o := publisher.Options{Store: store, Root: graphRoot, Clock: g.clock,
		Retention: publisher.Retention{MinVersions: min(keep, 64), MaxVersions: keep, MaxAge: 1 << 62}}
	if _, err := publisher.Init(ctx, o, publisher.InitSpec{Graph: "bench"}); err != nil {
		return nil, err
	}
	if _, err := publisher.ClaimLane(ctx, o, publisher.LaneClaim{Incarnation: incarnation}); err != nil {
		return nil, err
	}
	var err error
	if g.p, err = publisher.Claim(ctx, o, "bench"); err != nil {
		return nil, err
	}
	for i := range tables {
		spec := publisher.TableSpec{Key: tableKey(i), Columns: []heads.Column{
			{Name: "id", Type: "string"}, {Name: "n", Type: "int64", Nullable: true}}}
		if _, err := g.p.CreateTable(ctx, spec); err != nil {
			return nil, err
		}
	}
	return g, g.p.Tidy(ctx) // what the last table has left to do is not the first publish's
}

func tableKey(i int) string { return fmt.Sprintf("node:T%05d", i) }

func (g *graph) clock() time.Time {
	return time.UnixMilli(g.now.Add(1))
}

// plan prepares a fold of one entry that replaces the row of each of the next tables in turn.
func (g *graph) plan(ctx context.Context) (*publisher.Prepared, error) {
	snap, err := g.p.Refresh(ctx)
	if err != nil {
		return nil, err
	}
	before, _ := snap.Cut(0, incarnation)
	after := before
	after.Through = 1<<40 | uint64(g.depth+1) // a sequence of the lane's first epoch
	f := &publisher.Prepared{Fold: g.p.NextFold(), Previous: []heads.Cut{before}, Cut: []heads.Cut{after}, Entries: 1, Rows: g.touched}
	for i := range g.touched {
		t, err := g.planTable(ctx, snap, tableKey((g.depth*g.touched+i)%g.tables))
		if err != nil {
			return nil, err
		}
		f.Tables = append(f.Tables, t)
	}
	return f, nil
}

// planTable uploads one row and takes the place of the one that is there.
func (g *graph) planTable(ctx context.Context, snap *heads.Snapshot, key string) (t publisher.PreparedTable, err error) {
	t.Table, _ = snap.Table(key)
	if t.Base, err = snap.OpenTable(ctx, g.store, key); err != nil {
		return t, err
	}
	update := &lance.Update{PreservedFields: []uint32{0, 1}}
	if update.NewFragments, err = g.upload(ctx, t.Base); err != nil {
		return t, err
	}
	old, rows := t.Base.Fragments(), fence.Rows{}
	for _, f := range old {
		rows.Add(lance.NewRowAddress(uint32(f.ID()), 0))
	}
	if update.UpdatedFragments, update.RemovedFragmentIDs, err = t.Base.DeleteRows(ctx, rows); err != nil {
		return t, err
	}
	inserted := slices.Values([]uint64{keys.Hash([]byte(rowKey))})
	if t.Updated = len(old); t.Updated > 0 {
		inserted = slices.Values([]uint64(nil))
	}
	t.Inserted = 1 - t.Updated
	if update.Filter, err = fence.NewFilter(t.Base.Schema(), inserted); err != nil {
		return t, err
	}
	t.Tx, t.Affected = lance.NewTransaction(t.Base, update), rows
	return t, nil
}

func (g *graph) upload(ctx context.Context, t *lance.Table) ([]lance.Fragment, error) {
	b := array.NewRecordBuilder(memory.DefaultAllocator, t.Schema().Arrow())
	defer b.Release()
	b.Field(0).(*array.StringBuilder).Append(rowKey)
	b.Field(1).(*array.Int64Builder).Append(int64(g.depth))
	rec := b.NewRecord()
	defer rec.Release()
	w := t.NewFragmentWriter(ctx, lance.WriteOptions{})
	if err := w.Write(rec); err != nil {
		return nil, err
	}
	return w.Finish()
}

// publish publishes a planned fold: what a waiter waits for.
func (g *graph) publish(ctx context.Context, f *publisher.Prepared) error {
	_, err := g.p.Publish(ctx, f)
	g.depth++
	return err
}

// clean removes old versions of the tables, a few tables after each publish, each once in cleanEvery of its own commits.
func (g *graph) clean(ctx context.Context) error {
	for i := range g.touched {
		n := g.depth*g.touched + i
		if round := n / g.tables; round%cleanEvery != (n%g.tables)%cleanEvery {
			continue
		}
		root := heads.Join(graphRoot, heads.TablePath(tableKey(n%g.tables)))
		if _, err := lance.Cleanup(ctx, g.store, root, lance.CleanupOptions{OlderThan: g.clock(), Clock: g.clock}); err != nil {
			return err
		}
	}
	return nil
}
