package fold

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/foldline/foldline/fence"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/publisher"
	"github.com/foldline/foldline/wal"
)

// target is a table that references name, as the fold leaves it.
type target struct {
	table heads.Table
	plan  *tablePlan   // nil when the cut changes nothing there
	base  *lance.Table // the version that the fold is planned on
	gone  error        // the table is held and cannot be read: nobody can tell what it holds

	wanted *keyNumbers // the keys that rows refer to
	own    []uint32    // by their number: the number of the key in plan, or noKey
	live   []bool      // by their number: whether base has it
}

// has tells whether the table has a key when the fold has landed.
func (t *target) has(wanted uint32) bool {
	if own := t.own[wanted]; own != noKey {
		return t.plan.present[own]
	}
	return t.live[wanted]
}

// end is one reference of a table that the cut writes to.
type end struct {
	columns []string
	target  *target
	keys    []uint32 // by row: the number of the key that it refers to; noKey when a column is null, or when the row was not looked at
}

// referee judges the references of a cut, over all of its tables.
type referee struct {
	folder  *Folder
	snap    *heads.Snapshot
	targets map[heads.TableID]*target
	plans   map[heads.TableID]*tablePlan
	judged  []*tablePlan // those with references and rows to write
}

// judge refuses the rows whose references name no row of what the tables hold when the fold has landed: their base versions, with the inserts of this cut
// and without its deletes. A refused row changes nothing, so that an earlier write of its key stands, and is not there for the rows that refer to it; what
// is left is the largest set of rows that refer to each other and to what is there. It returns the versions that it has looked into beside those of the
// plans. Plans without references cost nothing.
func (f *Folder) judge(ctx context.Context, snap *heads.Snapshot, plans []*tablePlan) (map[heads.TableID]uint64, error) {
	r := &referee{folder: f, snap: snap, targets: map[heads.TableID]*target{}, plans: map[heads.TableID]*tablePlan{}}
	for _, p := range plans {
		if p.base == nil {
			continue
		}
		r.plans[p.table.ID] = p
		if len(p.table.References) > 0 && len(p.verdicts.upserts) > 0 {
			r.judged = append(r.judged, p)
		}
	}
	if len(r.judged) == 0 {
		return nil, nil
	}
	if err := r.open(ctx); err != nil {
		return nil, err
	}
	if err := r.look(ctx, func(p *tablePlan) []uint32 { return p.verdicts.upserts }); err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(r.judged, (*tablePlan).dangles) {
		return r.versions(), nil
	}
	// What an earlier write of a refused row's key refers to is asked for all rows at once, so that tables without an index are scanned twice at most.
	if err := r.look(ctx, (*tablePlan).writes); err != nil {
		return nil, err
	}
	return r.versions(), r.settle()
}

// open finds the tables that references name.
func (r *referee) open(ctx context.Context) error {
	broken := map[heads.TableID]error{}
	for _, p := range r.judged {
		p.ends = make([]end, len(p.table.References))
		for i, ref := range p.table.References {
			t, err := r.target(ctx, ref.Table)
			switch {
			case publisher.Unavailable(err):
				broken[ref.Table] = err
				continue
			case err != nil:
				return fmt.Errorf("table %q: reference %v: %w", p.table.Key, ref.Columns, err)
			}
			keys := make([]uint32, p.in.rows)
			for i := range keys {
				keys[i] = noKey
			}
			p.ends[i] = end{columns: ref.Columns, target: t, keys: keys}
		}
	}
	return unusable(broken)
}

func (r *referee) target(ctx context.Context, id heads.TableID) (*target, error) {
	if t := r.targets[id]; t != nil {
		return t, nil
	}
	t := &target{plan: r.plans[id], wanted: newKeyNumbers(0)}
	if t.plan != nil {
		t.table, t.base = t.plan.table, t.plan.base
		t.plan.notePresent()
	} else {
		var ok bool
		if t.table, ok = r.snap.TableByID(id); !ok {
			return nil, fmt.Errorf("%w: table %016x", heads.ErrCorrupt, uint64(id))
		}
		var err error
		if t.base, err = r.folder.openKeyed(ctx, r.snap, t.table); err != nil && !t.lost(err) {
			return nil, err
		}
	}
	r.targets[id] = t
	return t, nil
}

// lost notes that a table which takes no folds cannot be read either. One that takes them is suspended first, and its rows wait for a while.
func (t *target) lost(err error) bool {
	if t.table.Head.State.TakesFolds() || !publisher.Unavailable(err) {
		return false
	}
	t.gone = err
	return true
}

func (t *target) unreadable() bool { return t.gone != nil }

// versions are what was looked into beside the plans.
func (r *referee) versions() map[heads.TableID]uint64 {
	out := map[heads.TableID]uint64{}
	for id, t := range r.targets {
		if t.plan == nil {
			out[id] = t.table.Head.Version
		}
	}
	return out
}

// look reads the references of some rows of each table, and asks for the keys that were not asked for yet.
func (r *referee) look(ctx context.Context, rows func(*tablePlan) []uint32) error {
	for _, p := range r.judged {
		for i := range p.ends {
			if err := p.ends[i].read(p, rows(p)); err != nil {
				return fmt.Errorf("table %q: reference %v: %w", p.table.Key, p.ends[i].columns, err)
			}
		}
	}
	broken := map[heads.TableID]error{}
	for id, t := range r.targets {
		if err := r.lookUp(ctx, t); publisher.Unavailable(err) {
			broken[id] = err
		} else if err != nil {
			return fmt.Errorf("references to table %q: %w", t.table.Key, err)
		}
	}
	return unusable(broken)
}

// read numbers the keys that rows refer to.
func (e *end) read(p *tablePlan, rows []uint32) error {
	readers := map[*layout]*lance.KeyReader{}
	bound := -1
	var reader *lance.KeyReader
	for i, ref := range p.in.refs(rows) {
		if int(ref.chunk) != bound {
			bound = int(ref.chunk)
			var err error
			if reader, err = p.bindColumns(e.columns, readers, bound); err != nil {
				return err
			}
		}
		if reader != nil && !reader.Null(int(ref.row)) {
			e.keys[rows[i]] = e.target.wanted.number(reader.ExactBytes(int(ref.row)))
		}
	}
	return nil
}

// bindColumns gives a reader of some columns of a chunk; nil when it has no values of one.
func (p *tablePlan) bindColumns(columns []string, readers map[*layout]*lance.KeyReader, at int) (*lance.KeyReader, error) {
	c, l := p.in.chunks[at], p.layouts[at]
	for _, name := range columns {
		if i := p.base.Schema().Arrow().FieldIndices(name); len(i) == 0 || l.columns[i[0]] < 0 {
			return nil, nil
		}
	}
	reader := readers[l]
	if reader == nil {
		var err error
		if reader, err = lance.NewKeyReader(c.table().Record.Schema(), columns); err != nil {
			return nil, err
		}
		readers[l] = reader
	}
	return reader, reader.Bind(c.table().Record)
}

// lookUp asks which keys that rows refer to, and that the cut itself does not touch, the table holds.
func (r *referee) lookUp(ctx context.Context, t *target) error {
	asked := len(t.live)
	unknown := fence.KeySet{}
	for _, key := range t.wanted.keys[asked:] {
		own := noKey
		if t.plan != nil {
			if n, ok := t.plan.numbers.numbers[key]; ok {
				own = n
			}
		}
		if own == noKey {
			unknown[key] = 0 // looked up by the key itself
		}
		t.own, t.live = append(t.own, own), append(t.live, false)
	}
	if len(unknown) == 0 || t.unreadable() || t.base.Rows() == 0 {
		return nil
	}
	found, err := r.folder.findRows(ctx, t.table, t.base, unknown)
	if t.lost(err) {
		err = nil
	}
	for key := range found {
		t.live[t.wanted.numbers[key]] = true
	}
	return err
}

// writes are all rows that are not deletes and not refused.
func (p *tablePlan) writes() []uint32 {
	var out []uint32
	for i, c := range p.changes {
		if c.key != noKey && c.op != wal.OpDelete {
			out = append(out, uint32(i))
		}
	}
	return out
}

// notePresent notes which keys the table has after the verdicts so far.
func (p *tablePlan) notePresent() {
	p.present = slices.Clone(p.inTable)
	for _, k := range p.verdicts.created {
		p.present[k] = true
	}
	for _, k := range p.verdicts.removed {
		p.present[k] = false
	}
}

// dangles tells whether some row that is to be written refers to nothing.
func (p *tablePlan) dangles() bool {
	return slices.ContainsFunc(p.verdicts.upserts, func(row uint32) bool { return p.dangling(row) != nil })
}

// dangling returns a reference of a row that names no row; nil when all do.
func (p *tablePlan) dangling(row uint32) *end {
	for i := range p.ends {
		e := &p.ends[i]
		if key := e.keys[row]; key != noKey && (e.target.unreadable() || !e.target.has(key)) {
			return e
		}
	}
	return nil
}

// refuse makes a dead letter of a row with a reference that names nothing.
func (p *tablePlan) refuse(row uint32, e *end) error {
	why := fault{code: CodeMissingReference, field: strings.Join(e.columns, ",")}
	if e.target.unreadable() {
		why.code, why.reason = CodeTableUnavailable, publisher.UnreadableReference(e.target.table.Key, e.target.gone)
	} else {
		i, ref := p.in.at(row)
		rec := p.in.chunks[i].table().Record
		var columns []int
		for _, name := range e.columns {
			columns = append(columns, rec.Schema().FieldIndices(name)...)
		}
		var err error
		if why.reason, err = publisher.MissingReference(rec, columns, int(ref.row), e.target.table.Key); err != nil {
			return err
		}
	}
	p.refused = append(p.refused, refusal{row, why})
	return nil
}
