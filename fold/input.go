package fold

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/publisher"
	"github.com/foldline/foldline/wal"
)

// chunk is the rows of one table in one stored value. Its rows are numbered on
// from the chunks before it: first is the number of its first row.
type chunk struct {
	lane  *laneCut
	batch *wal.Batch
	part  int // index in batch.Tables
	first int
	// letters are the dead letters that the rows are replayed from, nil for rows of the log.
	letters []letter
}

func (c chunk) table() *wal.BatchTable { return &c.batch.Tables[c.part] }

// tableInput is one table's part of a cut, in lane order. A key lives in one
// lane, so the order between lanes does not matter.
type tableInput struct {
	id     heads.TableID
	chunks []chunk
	rows   int
	held   bool // planned although the table is held: to try it again, or to replay its rejects
}

// byTable sorts the chunks of a cut by table.
func (c *cut) byTable() []*tableInput {
	inputs := make(map[wal.TableID]*tableInput)
	for _, l := range c.lanes {
		for _, b := range l.batches {
			for part := range b.Tables {
				id := b.Tables[part].Table
				in := inputs[id]
				if in == nil {
					in = &tableInput{id: heads.TableID(id)}
					inputs[id] = in
				}
				in.chunks = append(in.chunks, chunk{lane: l, batch: b, part: part, first: in.rows})
				in.rows += len(b.Tables[part].Ops)
			}
		}
	}
	out := make([]*tableInput, 0, len(inputs))
	for _, in := range inputs {
		out = append(out, in)
	}
	slices.SortFunc(out, func(a, b *tableInput) int { return cmp.Compare(a.id, b.id) })
	return out
}

// at finds a row by its number.
func (in *tableInput) at(row uint32) (int, rowRef) {
	i, ok := slices.BinarySearchFunc(in.chunks, int(row), func(c chunk, row int) int { return cmp.Compare(c.first, row) })
	if !ok {
		i--
	}
	return i, rowRef{chunk: uint32(i), row: row - uint32(in.chunks[i].first)}
}

// refs turns row numbers into references; ascending ones cost a step each.
func (in *tableInput) refs(rows []uint32) []rowRef {
	out := make([]rowRef, len(rows))
	c := 0
	for i, row := range rows {
		if in.chunks[c].first > int(row) {
			c = 0
		}
		for c+1 < len(in.chunks) && in.chunks[c+1].first <= int(row) {
			c++
		}
		out[i] = rowRef{chunk: uint32(c), row: row - uint32(in.chunks[c].first)}
	}
	return out
}

// origin is the place in the log that a row came from.
func (c chunk) origin(row uint32) publisher.Origin {
	if c.letters != nil {
		return c.letters[row].origin
	}
	entry := c.table().Entry[row]
	return publisher.Origin{
		Lane: c.lane.lane, Incarnation: c.lane.incarnation, Seq: uint64(c.batch.Entries[entry].Seq),
		Row: c.rowInEntry(entry, row),
	}
}

// rowInEntry counts from the first row of the entry, over its tables by their ids: the stored order depends on what other entries
// share the value, and whoever knows the entry alone has to come to the same number.
func (c chunk) rowInEntry(entry, row uint32) uint32 {
	n, own := uint32(0), c.table().Table
	for part := range c.batch.Tables {
		if t := &c.batch.Tables[part]; t.Table < own {
			from, to := entryRows(t.Entry, entry)
			n += uint32(to - from)
		}
	}
	from, _ := entryRows(c.table().Entry, entry)
	return n + row - uint32(from)
}

// entryRows finds the rows of an entry; the list never decreases.
func entryRows(rows []uint32, entry uint32) (from, to int) {
	from, _ = slices.BinarySearch(rows, entry)
	to, _ = slices.BinarySearch(rows, entry+1)
	return from, to
}

// layout says where the columns of a table are in the records of one stored
// schema, and what must be looked at row by row because the two differ.
type layout struct {
	columns []int // by table column: index in the record, -1 = absent
	keys    *lance.KeyReader
	// keyFault refuses every row: the record has no usable key.
	keyFault *fault
	// wrongType, missing and extra are columns that refuse a row that is not a delete: a value of another type, no value
	// where the table takes no null, a value that the table has no column for.
	wrongType []columnFault
	required  []columnFault
	extra     []columnFault
}

// fault is why a row is refused.
type fault struct{ code, field, reason string }

type columnFault struct {
	index int // in the record, -1 = the record does not have the column
	fault fault
}

// newLayout compares a stored schema with the table's present one; both are
// matched by column name, never by position (C71, C73).
func newLayout(table *arrow.Schema, key []string, dropUnknown bool, stored *arrow.Schema) (*layout, error) {
	l := &layout{columns: make([]int, table.NumFields())}
	for i, want := range table.Fields() {
		l.columns[i] = -1
		at := stored.FieldIndices(want.Name)
		if len(at) == 0 {
			if !want.Nullable {
				l.required = append(l.required, columnFault{-1, nullFault(want.Name)})
			}
			continue
		}
		if got := stored.Field(at[0]).Type; !arrow.TypeEqual(got, want.Type) {
			l.wrongType = append(l.wrongType, columnFault{at[0], fault{CodeTypeMismatch, want.Name,
				fmt.Sprintf("the value is %s, the table's column is %s", got, want.Type)}})
			continue
		}
		l.columns[i] = at[0]
		if !want.Nullable {
			l.required = append(l.required, columnFault{at[0], nullFault(want.Name)})
		}
	}
	for i, f := range stored.Fields() {
		if !table.HasField(f.Name) && !dropUnknown {
			l.extra = append(l.extra, columnFault{i, fault{CodeUnknownField, f.Name, "the table has no such column"}})
		}
	}
	return l, l.findKey(table, key, stored)
}

func nullFault(field string) fault {
	return fault{CodeNullValue, field, "the column takes no null"}
}

func (l *layout) findKey(table *arrow.Schema, key []string, stored *arrow.Schema) error {
	for _, name := range key {
		at := table.FieldIndices(name)
		if len(at) == 0 {
			return fmt.Errorf("key column %q is not in the table", name)
		}
		if l.columns[at[0]] >= 0 {
			continue
		}
		l.keyFault = &fault{CodeNullKey, name, "the key column is missing"}
		for _, w := range l.wrongType {
			if w.fault.field == name {
				l.keyFault = &w.fault
			}
		}
		return nil
	}
	var err error
	l.keys, err = lance.NewKeyReader(stored, key)
	return err
}

// checks are the columns that have to be looked at row by row in one record.
func (l *layout) checks(rec arrow.Record) []columnFault {
	var out []columnFault
	for _, c := range l.required {
		if c.index < 0 || rec.Column(c.index).NullN() > 0 {
			out = append(out, c)
		}
	}
	for _, c := range append(slices.Clone(l.wrongType), l.extra...) {
		if rec.Column(c.index).NullN() < int(rec.NumRows()) {
			out = append(out, c)
		}
	}
	return out
}

// refuses says whether a check refuses a row that is not a delete: a required
// column without a value, any other with one.
func (c columnFault) refuses(rec arrow.Record, row int) bool {
	if c.fault.code == CodeNullValue {
		return c.index < 0 || rec.Column(c.index).IsNull(row)
	}
	return rec.Column(c.index).IsValid(row)
}
