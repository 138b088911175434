package fold

import (
	"context"
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"golang.org/x/sync/errgroup"

	"github.com/foldline/foldline/fence"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/publisher"
)

// totals are what a fold did, over all tables.
type totals struct {
	inserted, updated, deleted, missing int
	codes                               map[string]int // rejected rows by code
}

// preparedTable is one table's share of a prepared fold.
type preparedTable struct {
	plan    *tablePlan
	commit  *publisher.PreparedTable // nil when the cut has no effect on the table
	rejects []publisher.Reject
	// duplicates are what is known of repeated keys; nil = nothing.
	duplicates *publisher.PlannedDuplicates
}

// prepare plans and writes all tables, then the dead letters.
func (f *Folder) prepare(ctx context.Context, snap *heads.Snapshot, c *cut) (*publisher.Prepared, []preparedTable, error) {
	fold := f.publisher.NextFold()
	inputs := c.byTable()
	for _, in := range inputs {
		in.held = in.id == f.pausing
	}
	tables, judged, err := f.prepareTables(ctx, snap, fold, inputs, func(plans []*tablePlan) error {
		if f.waitForLanes(c, plans) {
			return errWaits
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	out := &publisher.Prepared{
		Fold: fold, Previous: c.previous(), Cut: c.through(), Entries: c.entries, Rows: c.rows, Judged: judged, Duplicates: duplicatesOf(tables...),
	}
	var rejects []publisher.Reject
	for i := range tables {
		rejects = append(rejects, tables[i].rejects...)
		if tables[i].commit != nil {
			out.Tables = append(out.Tables, *tables[i].commit)
		}
	}
	if out.Rejects, err = f.prepareRejects(ctx, snap, rejects); err != nil {
		return nil, nil, fmt.Errorf("dead letters: %w", err)
	}
	out.RejectCount = len(rejects)
	return out, tables, nil
}

func sum(tables []preparedTable) totals {
	t := totals{codes: make(map[string]int)}
	for i := range tables {
		v := &tables[i].plan.verdicts
		t.inserted += len(v.created)
		t.updated += len(v.replaced)
		t.deleted += len(v.removed)
		t.missing += v.missing
		for _, r := range tables[i].rejects {
			t.codes[r.Code]++
		}
	}
	return t
}

// prepareTables plans all tables, judges their references and writes them, each table by itself when the cut holds none with references. accept looks
// at the plans of one that does, before anything is written.
func (f *Folder) prepareTables(ctx context.Context, snap *heads.Snapshot, fold uint64, inputs []*tableInput, accept func([]*tablePlan) error) ([]preparedTable, map[heads.TableID]uint64, error) {
	tables, plans := make([]preparedTable, len(inputs)), make([]*tablePlan, len(inputs))
	plan := func(ctx context.Context, i int) (err error) {
		if plans[i], err = f.planTable(ctx, snap, inputs[i]); err != nil {
			err = fmt.Errorf("table %d: %w", inputs[i].id, err)
		}
		return err
	}
	write := func(ctx context.Context, i int) (err error) {
		tables[i], err = f.writePlan(ctx, plans[i], fold)
		return err
	}
	if !anyRefers(snap, inputs) {
		return tables, nil, f.eachTable(ctx, inputs, func(ctx context.Context, i int) error {
			if err := plan(ctx, i); err != nil {
				return err
			}
			return write(ctx, i)
		})
	}
	if err := f.eachTable(ctx, inputs, plan); err != nil {
		return nil, nil, err
	}
	judged, err := f.judge(ctx, snap, plans)
	if err == nil {
		err = accept(plans)
	}
	if err != nil {
		return nil, nil, err
	}
	return tables, judged, f.eachTable(ctx, inputs, write)
}

// anyRefers tells whether some table of a cut has references.
func anyRefers(snap *heads.Snapshot, inputs []*tableInput) bool {
	return slices.ContainsFunc(inputs, func(in *tableInput) bool {
		t, _ := snap.TableByID(in.id)
		return len(t.References) > 0
	})
}

// eachTable does something for all tables of a cut, some at once. A table that cannot be used does not stop the others, so that all of them are found.
func (f *Folder) eachTable(ctx context.Context, inputs []*tableInput, do func(context.Context, int) error) error {
	faults := make([]error, len(inputs))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(f.opts.Parallel)
	for i := range inputs {
		g.Go(func() error {
			err := do(ctx, i)
			if publisher.Unavailable(err) {
				faults[i], err = err, nil
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	broken := map[heads.TableID]error{}
	for i, err := range faults {
		if err != nil {
			broken[inputs[i].id] = err
		}
	}
	return unusable(broken)
}

// writePlan makes one table's commit and dead letters. Errors name the table.
func (f *Folder) writePlan(ctx context.Context, plan *tablePlan, fold uint64) (preparedTable, error) {
	err := plan.refuseLost(ctx)
	if err != nil {
		return preparedTable{}, fmt.Errorf("table %q: %w", plan.table.Key, err)
	}
	out := preparedTable{plan: plan}
	if out.rejects, err = f.rejectsOf(plan, fold); err != nil {
		return preparedTable{}, fmt.Errorf("table %q: %w", plan.table.Key, err)
	}
	out.duplicates = f.duplicates(ctx, plan)
	if !plan.verdicts.changesTable() {
		return out, nil
	}
	if out.commit, err = f.writeTable(ctx, plan, fold); err != nil {
		return preparedTable{}, fmt.Errorf("table %q: %w", plan.table.Key, err)
	}
	return out, nil
}

// writeTable uploads what the plan needs and builds the table's transaction.
func (f *Folder) writeTable(ctx context.Context, p *tablePlan, fold uint64) (*publisher.PreparedTable, error) {
	out := &publisher.PreparedTable{
		Table: p.table, Base: p.base, Affected: p.affected(),
		Inserted: len(p.verdicts.created), Updated: len(p.verdicts.replaced), Deleted: len(p.verdicts.removed),
	}
	update := &lance.Update{PreservedFields: preserved(p.base.Schema())}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		update.NewFragments, err = f.writeRows(ctx, p)
		return err
	})
	g.Go(func() (err error) {
		if len(out.Affected) > 0 {
			update.UpdatedFragments, update.RemovedFragmentIDs, err = p.base.DeleteRows(ctx, out.Affected)
		}
		return err
	})
	g.Go(func() (err error) {
		if deletes := p.deletedKeys(); len(deletes) > 0 {
			out.DeleteKeys, err = f.publisher.PutDeleteKeys(ctx, fold, p.table, deletes)
		}
		return err
	})
	err := g.Wait()
	if err != nil {
		return nil, err
	}
	if p.base.StableRowIDs() {
		if update.NewFragments, err = p.base.KeepRowIDs(update.NewFragments, p.sources()); err != nil {
			return nil, err
		}
	}
	if update.Filter, err = fence.NewFilter(p.base.Schema(), p.absentHashes); err != nil {
		return nil, err
	}
	out.Strict = p.strictRows(update.NewFragments)
	out.Tx = lance.NewTransaction(p.base, update)
	return out, nil
}

// preserved is the list that a merge-insert carries: all field ids, pre-order.
func preserved(s *lance.Schema) []uint32 {
	ids := s.FieldIDs()
	out := make([]uint32, len(ids))
	for i, id := range ids {
		out[i] = uint32(id)
	}
	return out
}

// writeRows streams the rows that stand into new fragments.
func (f *Folder) writeRows(ctx context.Context, p *tablePlan) ([]lance.Fragment, error) {
	if len(p.verdicts.upserts) == 0 {
		return nil, nil
	}
	refs := p.in.refs(p.verdicts.upserts)
	step := p.in.recordRows()
	return f.writeFragments(ctx, p.base, func(write func(arrow.Record) error) error {
		for from := 0; from < len(refs); from += step {
			rec, err := f.gatherRecord(p, refs[from:min(from+step, len(refs))])
			if err == nil {
				err = write(rec)
				rec.Release()
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// writeFragments runs a fragment writer over what feed gives it.
func (f *Folder) writeFragments(ctx context.Context, base *lance.Table, feed func(write func(arrow.Record) error) error) ([]lance.Fragment, error) {
	w := base.NewFragmentWriter(ctx, lance.WriteOptions{})
	if err := feed(w.Write); err != nil {
		_ = w.Abort() // the first error says what happened
		return nil, err
	}
	return w.Finish()
}

// recordRows bounds an output record by rows and, from the average row of the
// cut, by bytes.
func (in *tableInput) recordRows() int {
	var bytes, rows int64
	for _, c := range in.chunks {
		bytes += c.batch.Memory
		rows += int64(c.batch.Rows())
	}
	return int(max(1, min(outputRecordRows, outputRecordBytes/max(1, bytes/max(1, rows)))))
}

// gatherRecord builds one record in the table's schema.
func (f *Folder) gatherRecord(p *tablePlan, refs []rowRef) (arrow.Record, error) {
	g := newGatherer(f.opts.Memory, refs)
	schema := p.base.Schema().Arrow()
	columns := make([]arrow.Array, 0, schema.NumFields())
	defer func() {
		for _, c := range columns {
			c.Release()
		}
	}()
	sources := make([]arrow.Array, len(p.in.chunks))
	for i, field := range schema.Fields() {
		for c := range sources {
			sources[c] = nil
			if at := p.layouts[c].columns[i]; at >= 0 {
				sources[c] = p.in.chunks[c].table().Record.Column(at)
			}
		}
		column, err := g.column(field.Type, sources)
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", field.Name, err)
		}
		columns = append(columns, column)
	}
	return array.NewRecord(schema, columns, int64(len(refs))), nil
}

// strictRows places the strict inserts in the new fragments.
func (p *tablePlan) strictRows(fragments []lance.Fragment) []publisher.StrictRow {
	out := make([]publisher.StrictRow, 0, len(p.verdicts.strict))
	fragment, first := 0, uint64(0)
	for _, at := range p.verdicts.strict {
		for uint64(at) >= first+fragments[fragment].PhysicalRows() {
			first += fragments[fragment].PhysicalRows()
			fragment++
		}
		c, ref := p.in.at(p.verdicts.upserts[at])
		out = append(out, publisher.StrictRow{
			Fragment: fragment, Offset: uint32(uint64(at) - first), Origin: p.in.chunks[c].origin(ref.row),
		})
	}
	return out
}
