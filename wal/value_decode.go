package wal

import (
	"fmt"
	"time"

	"github.com/apache/arrow/go/v17/arrow"
)

// schemaLookup finds a stored schema; an unknown id is an error.
type schemaLookup func(SchemaID) (*arrow.Schema, error)

// decodeHeader reads and checks the fixed header and the checksum of a value.
func decodeHeader(key Seq, data []byte) (valueHeader, error) {
	var h valueHeader
	if len(data) < valueFixed {
		return h, fmt.Errorf("%d bytes, the header takes %d", len(data), valueFixed)
	}
	if m := le.Uint32(data); m != valueMagic {
		return h, fmt.Errorf("magic %#x, want %#x", m, uint32(valueMagic))
	}
	if sum := checksum(data[8:]); sum != le.Uint32(data[4:]) {
		return h, fmt.Errorf("checksum %#x, stored %#x", sum, le.Uint32(data[4:]))
	}
	if v := le.Uint32(data[68:]); v != valuePlain && v != valuePacked {
		return h, fmt.Errorf("value version %d, this program reads %d and %d: %w", v, valuePlain, valuePacked, ErrFormat)
	}
	h = valueHeader{
		Prev: Seq(le.Uint64(data[8:])), First: Seq(le.Uint64(data[16:])), Last: Seq(le.Uint64(data[24:])),
		Time:    int64(le.Uint64(data[32:])),
		Total:   totals{le.Uint64(data[40:]), le.Uint64(data[48:]), le.Uint64(data[56:])},
		Section: int(le.Uint32(data[64:])), Version: le.Uint32(data[68:]),
	}
	return h, h.check(key, len(data))
}

func (h *valueHeader) check(key Seq, size int) error {
	switch {
	case h.Last != key:
		return fmt.Errorf("last sequence %d under key %d", h.Last, key)
	case h.First > h.Last || h.First.Epoch() != h.Last.Epoch() || h.First.Counter() == 0:
		return fmt.Errorf("sequences %d to %d", h.First, h.Last)
	case h.Prev >= h.First:
		return fmt.Errorf("predecessor %d is not below %d", h.Prev, h.First)
	case h.Prev.Epoch() == h.First.Epoch() && h.Prev+1 != h.First:
		return fmt.Errorf("predecessor %d and first %d of one epoch", h.Prev, h.First)
	case h.Prev.Epoch() != h.First.Epoch() && h.First.Counter() != 1:
		return fmt.Errorf("epoch starts at %d", h.First)
	case h.Last-h.First >= maxEntries:
		return fmt.Errorf("%d entries", h.Last-h.First+1)
	case h.Section > size-valueFixed:
		return fmt.Errorf("header section of %d bytes in %d", h.Section, size)
	}
	return nil
}

// decodeValue rebuilds a batch from a stored value. The batch's records refer
// to data, which must not change afterwards. An error is a *CorruptError.
func decodeValue(key Seq, data []byte, schemas schemaLookup) (*Batch, error) {
	corrupt := func(off int, err error) error {
		return &CorruptError{Key: "value " + key.String(), Offset: off, Err: err}
	}
	h, err := decodeHeader(key, data)
	if err != nil {
		return nil, corrupt(0, err)
	}
	d := valueDecoder{schemas: schemas}
	if h.Version == valuePacked {
		d.packed = &unpacked{}
	}
	d.section = cursor{data: data[valueFixed : valueFixed+h.Section]}
	if body := valueFixed + padded(h.Section); body <= len(data) {
		d.body = cursor{data: data[body:]}
	}
	b := &Batch{
		Prev: h.Prev, First: h.First, Last: h.Last,
		Time: time.UnixMicro(h.Time), Bytes: int64(len(data)),
	}
	if err := d.decode(b); err != nil {
		b.Release()
		return nil, corrupt(valueFixed+d.section.off, err)
	}
	b.Memory = b.Bytes + d.packed.size()
	return b, nil
}

type valueDecoder struct {
	section, body cursor
	packed        *unpacked // of a value whose buffers may be packed
	schemas       schemaLookup
	rows          int
}

func (d *valueDecoder) decode(b *Batch) error {
	b.Tables = readDirectory(&d.section)
	d.entries(b)
	for i := range b.Tables {
		if err := d.table(&b.Tables[i], len(b.Entries)); err != nil {
			return err
		}
	}
	d.section.end("header section")
	d.body.end("body")
	if d.section.err != nil {
		return d.section.err
	}
	return d.body.err
}

func (d *valueDecoder) entries(b *Batch) {
	n := d.section.count("entries", 2)
	if want := int(b.Last-b.First) + 1; d.section.err == nil && n != want {
		d.section.fail("%d entries, sequences say %d", n, want)
	}
	if d.section.err != nil {
		return
	}
	b.Entries = make([]BatchEntry, n)
	for i := range b.Entries {
		b.Entries[i] = BatchEntry{
			Seq:   b.First + Seq(i),
			MsgID: d.section.text("message id", MaxMsgIDBytes),
			Trace: d.section.text("trace", MaxTraceBytes),
		}
	}
}

func (d *valueDecoder) table(t *BatchTable, entries int) error {
	s := &d.section
	rows := s.bounded("rows", maxRows-d.rows)
	d.rows += rows
	if s.err == nil && rows == 0 {
		s.fail("table without rows")
	}
	if s.err != nil {
		return s.err
	}
	d.readEntryRuns(t, rows, entries)
	d.readOps(t, rows)
	if s.err != nil {
		return s.err
	}
	schema, err := d.schemas(t.Schema)
	if err != nil {
		return err
	}
	r := columnsReader{header: &d.section, body: &d.body, packed: d.packed}
	t.Record, err = r.record(schema, rows)
	return err
}

func (d *valueDecoder) readEntryRuns(t *BatchTable, rows, entries int) {
	s := &d.section
	n := s.count("entry runs", 2)
	t.Entry = make([]uint32, 0, rows)
	entry := 0
	for i := range n {
		step := s.bounded("entry", entries)
		if i > 0 && step == 0 {
			s.fail("entry run repeats its entry")
		}
		entry += step
		count := s.bounded("rows of an entry", rows-len(t.Entry))
		if s.err == nil && (count == 0 || entry >= entries) {
			s.fail("run of %d rows for entry %d of %d", count, entry, entries)
		}
		if s.err != nil {
			return
		}
		for range count {
			t.Entry = append(t.Entry, uint32(entry))
		}
	}
	if len(t.Entry) != rows {
		s.fail("entry runs cover %d of %d rows", len(t.Entry), rows)
	}
}

func (d *valueDecoder) readOps(t *BatchTable, rows int) {
	s := &d.section
	n := s.count("operation runs", 2)
	t.Ops = make([]Op, 0, rows)
	for range n {
		op := Op(s.u8("operation"))
		count := s.bounded("rows of an operation", rows-len(t.Ops))
		if s.err == nil && (count == 0 || !op.Valid()) {
			s.fail("run of %d rows with %v", count, op)
		}
		if s.err != nil {
			return
		}
		for range count {
			t.Ops = append(t.Ops, op)
		}
	}
	if s.err == nil && len(t.Ops) != rows {
		s.fail("operation runs cover %d of %d rows", len(t.Ops), rows)
	}
}

// schemaIDs gives the schemas that a stored value names, without decoding it.
func schemaIDs(v storedValue) ([]SchemaID, error) {
	c := &cursor{data: v.data[valueFixed : valueFixed+v.header.Section]}
	tables := readDirectory(c)
	ids := make([]SchemaID, len(tables))
	for i := range tables {
		ids[i] = tables[i].Schema
	}
	if c.err != nil {
		return nil, &CorruptError{Key: "value " + v.last.String(), Offset: valueFixed + c.off, Err: c.err}
	}
	return ids, nil
}

// directoryBytes is what a table takes in the directory.
const directoryBytes = 16

// readDirectory reads which tables a value holds, and their schemas.
func readDirectory(c *cursor) []BatchTable {
	n := c.count("tables", directoryBytes)
	tables := make([]BatchTable, n)
	for i := range tables {
		tables[i] = BatchTable{Table: TableID(c.u64("table")), Schema: SchemaID(c.u64("schema"))}
	}
	return tables
}
