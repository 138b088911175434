package wal

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v17/arrow"
)

// Layout of a stored value (FORMAT.md, "value"): a fixed header, a header
// section of varints, then the column buffers, each padded to 8 bytes.
const (
	valueMagic = 0x56574c46 // "FLWV" little-endian
	valueFixed = 72
	// A value is of version 2 when one of its buffers is packed, else of 1.
	valuePlain  = 1
	valuePacked = 2

	// maxRows bounds the rows of one entry and of one stored value.
	maxRows = 1 << 20
	// maxEntries bounds the entries of one stored value.
	maxEntries = 1 << 16
)

// totals count everything an incarnation ever stored, up to and including one
// value. Unreleased is the difference of two totals, so neither a release nor
// an open has to look at the values in between.
type totals struct {
	Entries, Rows, Bytes uint64
}

func (t totals) minus(o totals) totals {
	return totals{t.Entries - o.Entries, t.Rows - o.Rows, t.Bytes - o.Bytes}
}

// valueHeader is the fixed part of a stored value.
type valueHeader struct {
	Prev, First, Last Seq
	Time              int64 // microseconds since 1970
	Total             totals
	Section           int // bytes of the header section
	Version           uint32
}

func (h *valueHeader) put(dst []byte) {
	le.PutUint32(dst[0:], valueMagic)
	le.PutUint64(dst[8:], uint64(h.Prev))
	le.PutUint64(dst[16:], uint64(h.First))
	le.PutUint64(dst[24:], uint64(h.Last))
	le.PutUint64(dst[32:], uint64(h.Time))
	le.PutUint64(dst[40:], h.Total.Entries)
	le.PutUint64(dst[48:], h.Total.Rows)
	le.PutUint64(dst[56:], h.Total.Bytes)
	le.PutUint32(dst[64:], uint32(h.Section))
	le.PutUint32(dst[68:], h.Version)
	le.PutUint32(dst[4:], checksum(dst[8:]))
}

// valueBuilder gathers entries into one stored value. It belongs to the
// committer and keeps its buffers from value to value.
type valueBuilder struct {
	entries []*pending
	tables  []*tableBuilder
	byTable map[TableID]*tableBuilder
	section []byte
	buffers []storedBuffer // of all columns, in stored order, while the value is encoded
	packed  bool           // one of them is
	packer  packer
	rows    int
	bytes   int64
}

func newValueBuilder() *valueBuilder {
	return &valueBuilder{byTable: map[TableID]*tableBuilder{}}
}

// tableBuilder holds one table's rows of the value being built.
type tableBuilder struct {
	table   TableID
	schema  *schemaState
	columns *columnsBuilder
	runs    []entryRun
	ops     []opRun
	used    bool
	// rec names n rows from first that are not copied yet: entries that share a
	// record follow each other in it as a rule, and are copied at once.
	rec      arrow.Record
	first, n int
}

type entryRun struct{ entry, rows uint32 }

type opRun struct {
	op   Op
	rows uint32
}

// fits tells whether p may join the entries already there: within the bounds of
// a value, and with the schema each table already has in it.
func (b *valueBuilder) fits(p *pending) bool {
	if len(b.entries) == 0 {
		return true
	}
	if len(b.entries) >= maxEntries || b.rows+p.rows > maxRows || b.bytes+p.bytes > MaxValueBytes {
		return false
	}
	for i := range p.entry.Rows {
		t := b.byTable[p.entry.Rows[i].Table]
		if t != nil && t.used && t.schema != p.schemas[i] {
			return false
		}
	}
	return true
}

func (b *valueBuilder) add(p *pending) {
	at := uint32(len(b.entries))
	b.entries = append(b.entries, p)
	b.rows += p.rows
	b.bytes += p.bytes
	for i := range p.entry.Rows {
		b.tableFor(p.entry.Rows[i].Table, p.schemas[i]).add(at, &p.entry.Rows[i])
	}
}

// maxCachedTables bounds the table builders kept between values.
const maxCachedTables = 1024

func (b *valueBuilder) tableFor(id TableID, schema *schemaState) *tableBuilder {
	t := b.byTable[id]
	if t == nil || t.schema != schema {
		t = &tableBuilder{table: id, schema: schema, columns: newColumnsBuilder(schema.shapes)}
		b.byTable[id] = t
	}
	if !t.used {
		t.used = true
		b.tables = append(b.tables, t)
	}
	return t
}

func (t *tableBuilder) add(entry uint32, rows *Rows) {
	n := uint32(rows.count())
	if rows.Record != t.rec || rows.First != t.first+t.n {
		t.copy()
		t.rec, t.first = rows.Record, rows.First
	}
	t.n += int(n)
	if last := len(t.runs) - 1; last >= 0 && t.runs[last].entry == entry {
		t.runs[last].rows += n
	} else {
		t.runs = append(t.runs, entryRun{entry, n})
	}
	if len(rows.Ops) == 1 {
		t.addOps(rows.Ops[0], n)
		return
	}
	for _, op := range rows.Ops {
		t.addOps(op, 1)
	}
}

// copy takes over the rows that are only named so far.
func (t *tableBuilder) copy() {
	if t.n > 0 {
		t.columns.append(t.rec, t.first, t.n)
	}
	t.rec, t.first, t.n = nil, 0, 0
}

func (t *tableBuilder) addOps(op Op, n uint32) {
	if last := len(t.ops) - 1; last >= 0 && t.ops[last].op == op {
		t.ops[last].rows += n
		return
	}
	t.ops = append(t.ops, opRun{op, n})
}

func (b *valueBuilder) reset() {
	clear(b.entries)
	b.entries, b.rows, b.bytes = b.entries[:0], 0, 0
	for _, t := range b.tables {
		t.used = false
		t.runs, t.ops = t.runs[:0], t.ops[:0]
		t.columns.reset()
		t.rec, t.first, t.n = nil, 0, 0
	}
	b.tables = b.tables[:0]
	if len(b.byTable) > maxCachedTables {
		clear(b.byTable)
	}
}

// encode gives the value's size and a function that writes it.
func (b *valueBuilder) encode(h *valueHeader) (size int, write func(dst []byte)) {
	b.pack()
	b.encodeSection()
	h.Section, h.Version = len(b.section), valuePlain
	if b.packed {
		h.Version = valuePacked
	}
	size = valueFixed + padded(len(b.section))
	for _, s := range b.buffers {
		size += padded(len(s.bytes()))
	}
	h.Total.Entries += uint64(len(b.entries))
	h.Total.Rows += uint64(b.rows)
	h.Total.Bytes += uint64(size)
	return size, func(dst []byte) { b.write(h, dst) }
}

// pack collects the buffers of all columns as they are stored.
func (b *valueBuilder) pack() {
	clear(b.buffers)
	b.buffers, b.packed = b.buffers[:0], false
	b.packer.reset()
	for _, t := range b.tables {
		t.copy()
		for _, c := range t.columns.columns {
			c.walk(func(n *columnBuilder) {
				n.buffers(func(buf []byte) {
					s := b.packer.pack(buf)
					b.packed = b.packed || s.packed != nil
					b.buffers = append(b.buffers, s)
				})
			})
		}
	}
}

func (b *valueBuilder) write(h *valueHeader, dst []byte) {
	at := valueFixed + copyPadded(dst[valueFixed:], b.section)
	for _, s := range b.buffers {
		at += copyPadded(dst[at:], s.bytes())
	}
	h.put(dst)
}

// copyPadded copies src and zeroes the padding behind it.
func copyPadded(dst, src []byte) int {
	n := padded(len(src))
	clear(dst[copy(dst, src):n])
	return n
}

func (b *valueBuilder) encodeSection() {
	s := binary.AppendUvarint(b.section[:0], uint64(len(b.tables)))
	for _, t := range b.tables {
		s = le.AppendUint64(s, uint64(t.table))
		s = le.AppendUint64(s, uint64(t.schema.id))
	}
	s = binary.AppendUvarint(s, uint64(len(b.entries)))
	for _, p := range b.entries {
		s = appendText(s, p.entry.MsgID)
		s = appendText(s, p.entry.Trace)
	}
	left := b.buffers
	for _, t := range b.tables {
		s, left = t.appendSection(s, left, b.packed)
	}
	b.section = s
}

// appendSection appends what the section says of a table, and gives the buffers behind the table's own.
func (t *tableBuilder) appendSection(s []byte, buffers []storedBuffer, packed bool) ([]byte, []storedBuffer) {
	s = binary.AppendUvarint(s, uint64(t.columns.rows))
	s = binary.AppendUvarint(s, uint64(len(t.runs)))
	prev := uint32(0)
	for _, r := range t.runs {
		s = binary.AppendUvarint(s, uint64(r.entry-prev))
		s = binary.AppendUvarint(s, uint64(r.rows))
		prev = r.entry
	}
	s = binary.AppendUvarint(s, uint64(len(t.ops)))
	for _, r := range t.ops {
		s = append(s, byte(r.op))
		s = binary.AppendUvarint(s, uint64(r.rows))
	}
	for _, c := range t.columns.columns {
		c.walk(func(n *columnBuilder) {
			s = binary.AppendUvarint(s, uint64(n.nulls))
			n.buffers(func(buf []byte) {
				s = binary.AppendUvarint(s, uint64(len(buf)))
				if packed {
					s = binary.AppendUvarint(s, uint64(len(buffers[0].packed)))
				}
				buffers = buffers[1:]
			})
		})
	}
	return s, buffers
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// schemaState is a schema the log knows: its stored bytes and its shapes. It is
// immutable but for stored, which belongs to the committer.
type schemaState struct {
	id     SchemaID
	schema *arrow.Schema
	bytes  []byte
	shapes []*shape
	stored bool
}

func newSchemaState(s *arrow.Schema) (*schemaState, error) {
	id, err := SchemaIDOf(s)
	if err != nil {
		return nil, err
	}
	data, err := encodeSchema(s)
	if err != nil {
		return nil, err
	}
	shapes, err := shapesOf(s)
	if err != nil {
		return nil, err
	}
	return &schemaState{id: id, schema: s, bytes: slices.Clip(data), shapes: shapes}, nil
}

// checkOps checks an item's operations: one for each row, or one for all.
func checkOps(r *Rows) error {
	if n := len(r.Ops); n != 1 && n != r.count() {
		return fmt.Errorf("wal: %d operations for %d rows: %w", n, r.count(), ErrInvalid)
	}
	for i, op := range r.Ops {
		if !op.Valid() {
			return fmt.Errorf("wal: row %d: %v: %w", i, op, ErrInvalid)
		}
	}
	return nil
}
