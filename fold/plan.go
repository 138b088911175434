package fold

import (
	"context"
	"fmt"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/foldline/foldline/fence"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/keys"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/wal"
)

// tablePlan is what a cut does to one table, before anything is written.
type tablePlan struct {
	in      *tableInput
	table   heads.Table
	base    *lance.Table
	layouts []*layout // by chunk

	changes   []change
	numbers   *keyNumbers
	hashes    []uint64                      // of the Lance key bytes, by key number
	addresses map[string][]lance.RowAddress // of the keys that the table holds
	inTable   []bool                        // by key number
	verdicts  verdicts
	refused   []refusal

	references
}

// references are what judging those of a table takes; empty for a table that has none and that none names.
type references struct {
	ends    []end
	present []bool // by key number: what the table has when the fold has landed

	// While rows are being refused: the row that stands of each key, by key number, what depends on a key, and the operations of keys with a refused row.
	standing   map[uint32]uint32
	dependents map[uint32][]keyOf
	histories  map[uint32]*keyHistory
	rowsOfKeys []uint32 // the rows of all keys, those of one key from firstOfKey on
	firstOfKey []uint32
}

// refusal is a row that goes to the dead letters.
type refusal struct {
	row   uint32 // number in the table's input
	fault fault
}

// planTable makes the verdicts for one table (F3, F4), except for references.
func (f *Folder) planTable(ctx context.Context, snap *heads.Snapshot, in *tableInput) (*tablePlan, error) {
	p := &tablePlan{in: in}
	reason := p.findTable(snap)
	if reason != nil {
		p.refuseAll(*reason)
		return p, nil
	}
	var err error
	if p.base, err = f.openKeyed(ctx, snap, p.table); err != nil {
		return nil, err
	}
	if err = p.readKeys(); err != nil {
		return nil, err
	}
	if p.inTable, err = f.find(ctx, p); err != nil {
		return nil, err
	}
	p.decide()
	return p, nil
}

// openKeyed opens a table at its head version, which has to have the key that the graph says.
func (f *Folder) openKeyed(ctx context.Context, snap *heads.Snapshot, t heads.Table) (*lance.Table, error) {
	base, err := f.openTable(ctx, snap, t)
	if err != nil {
		return nil, err
	}
	if got := base.Schema().PrimaryKey(); !slices.Equal(got, t.PrimaryKey) {
		return nil, fmt.Errorf("%w: its primary key is %q, the graph says %q", lance.ErrCorrupt, got, t.PrimaryKey)
	}
	return base, nil
}

// decide makes the verdicts over the rows that are not refused yet.
func (p *tablePlan) decide() {
	p.verdicts = decide(p.changes, p.inTable)
	if p.base.StableRowIDs() {
		p.verdicts.replacedFirst(func(row uint32) bool { return p.inTable[p.changes[row].key] })
	}
}

// refuseLost makes dead letters of the strict inserts that have lost.
func (p *tablePlan) refuseLost(ctx context.Context) error {
	for _, row := range p.verdicts.rejected {
		p.refused = append(p.refused, refusal{row, fault{code: CodeKeyExists, reason: "insert of a key that exists"}})
	}
	return p.forgetLanded(ctx)
}

// findTable looks the table up; a reason is why it takes no rows.
func (p *tablePlan) findTable(snap *heads.Snapshot) *fault {
	var ok bool
	p.table, ok = snap.TableByID(p.in.id)
	switch {
	case !ok:
		p.table = heads.Table{ID: p.in.id, Key: fmt.Sprintf("table %d", p.in.id)}
		return &fault{code: CodeTableUnknown, reason: "the graph has no such table"}
	case !p.table.Enrolled || p.table.System:
		return &fault{code: CodeTableUnknown, reason: "the table takes no rows from lanes"}
	}
	switch s := p.table.Head.State; {
	case s.TakesFolds(), p.in.held && s.Held():
		return nil
	case s.Held():
		return &fault{code: CodeTableUnavailable, reason: "the table is " + string(s) + ": " + p.table.Head.Hold.Reason}
	default:
		return &fault{code: CodeTableUnavailable, reason: "the table is " + string(s)}
	}
}

func (p *tablePlan) refuseAll(why fault) {
	p.refused = make([]refusal, p.in.rows)
	for i := range p.refused {
		p.refused[i] = refusal{uint32(i), why}
	}
}

// readKeys numbers the keys of all rows and refuses the rows that the table
// cannot take.
func (p *tablePlan) readKeys() error {
	p.changes = make([]change, 0, p.in.rows)
	p.numbers = newKeyNumbers(p.in.rows)
	p.layouts = make([]*layout, len(p.in.chunks))
	bySchema := make(map[wal.SchemaID]*layout)
	for i, c := range p.in.chunks {
		l := bySchema[c.table().Schema]
		if l == nil {
			var err error
			l, err = newLayout(p.base.Schema().Arrow(), p.table.PrimaryKey,
				p.table.UnknownFields == heads.DropUnknown, c.table().Record.Schema())
			if err != nil {
				return err
			}
			bySchema[c.table().Schema] = l
		}
		p.layouts[i] = l
		if err := p.readChunk(c, l); err != nil {
			return err
		}
	}
	return nil
}

func (p *tablePlan) readChunk(c chunk, l *layout) error {
	if l.keyFault != nil {
		for i, op := range c.table().Ops {
			p.changes = append(p.changes, change{noKey, op})
			p.refused = append(p.refused, refusal{uint32(c.first + i), *l.keyFault})
		}
		return nil
	}
	rec := c.table().Record
	if err := l.keys.Bind(rec); err != nil {
		return err
	}
	checks := l.checks(rec)
	for i, op := range c.table().Ops {
		if why := rowFault(l, c, checks, i, op); why != nil {
			p.changes = append(p.changes, change{noKey, op})
			p.refused = append(p.refused, refusal{uint32(c.first + i), *why})
			continue
		}
		n := p.numbers.number(l.keys.ExactBytes(i))
		if int(n) == len(p.hashes) {
			p.hashes = append(p.hashes, keys.Hash(l.keys.Lance(i)))
		}
		p.changes = append(p.changes, change{n, op})
	}
	return nil
}

// rowFault says why the table cannot take a row, nil when it can. A delete
// needs its key only (C72).
func rowFault(l *layout, c chunk, checks []columnFault, row int, op wal.Op) *fault {
	if l.keys.Null(row) {
		return &fault{code: CodeNullKey, reason: "a key column is null"}
	}
	if op == wal.OpDelete {
		return nil
	}
	for i := range checks {
		if checks[i].refuses(c.table().Record, row) {
			return &checks[i].fault
		}
	}
	return nil
}

// find asks which keys the table holds, and where.
func (f *Folder) find(ctx context.Context, p *tablePlan) ([]bool, error) {
	inTable := make([]bool, len(p.numbers.keys))
	if len(inTable) == 0 {
		return inTable, nil
	}
	var wanted fence.KeySet
	if p.base.Rows() > 0 { // of an empty table an index learns no more than that it is there: then it follows from the first row on
		wanted = make(fence.KeySet, len(inTable))
		for i, key := range p.numbers.keys {
			wanted[key] = p.hashes[i]
		}
	}
	var err error
	if p.addresses, err = f.findRows(ctx, p.table, p.base, wanted); err != nil {
		return nil, fmt.Errorf("find rows: %w", err)
	}
	for key := range p.addresses {
		inTable[p.numbers.numbers[key]] = true
	}
	return inTable, nil
}

// findRows asks the key index, and the table itself when there is no index or
// it fails: it is a cache.
func (f *Folder) findRows(ctx context.Context, table heads.Table, base *lance.Table, wanted fence.KeySet) (map[string][]lance.RowAddress, error) {
	if f.opts.Index != nil {
		found, err := f.opts.Index.Find(ctx, uint64(table.ID), base, wanted)
		if err == nil || ctx.Err() != nil {
			return found, err
		}
		f.opts.Logger.WarnContext(ctx, "key index failed, the table is scanned", "table", table.Key, "error", err)
	}
	return fence.FindRows(ctx, base, wanted)
}

// affected are the rows that go, per fragment: all live rows of each key that
// is replaced or removed, so that a duplicate made by somebody else goes too.
func (p *tablePlan) affected() map[uint64]*roaring.Bitmap {
	out := make(map[uint64]*roaring.Bitmap)
	for _, list := range [][]uint32{p.verdicts.replaced, p.verdicts.removed} {
		for _, key := range list {
			for _, a := range p.addresses[p.numbers.keys[key]] {
				id := uint64(a.Fragment())
				if out[id] == nil {
					out[id] = roaring.New()
				}
				out[id].Add(a.Offset())
			}
		}
	}
	return out
}

// sources are the rows that the first new rows replace, in their order: one for each key, also where somebody made several.
func (p *tablePlan) sources() []lance.RowAddress {
	out := make([]lance.RowAddress, len(p.verdicts.replaced))
	for i, key := range p.verdicts.replaced {
		out[i] = p.addresses[p.numbers.keys[key]][0]
	}
	return out
}

// absentHashes iterates over the hashes of the keys that the plan relies on not being there: those that appear, and those that are
// deleted without a row. Another writer's insert of one of them must conflict, or the fold's last word on the key would be lost.
func (p *tablePlan) absentHashes(yield func(uint64) bool) {
	for _, list := range [][]uint32{p.verdicts.created, p.verdicts.absent} {
		for _, key := range list {
			if !yield(p.hashes[key]) {
				return
			}
		}
	}
}

// deletedKeys are the exact keys whose last operation is a delete, found or not.
func (p *tablePlan) deletedKeys() []string {
	return append(p.keysOf(p.verdicts.removed), p.keysOf(p.verdicts.absent)...)
}
