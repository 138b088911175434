package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Layout of a dedupe record (FORMAT.md, "dedupe group").
const (
	dedupeMagic   = 0x44574c46 // "FLWD" little-endian
	dedupeVersion = 1
	dedupeFixed   = 36
	// minDedupeBytes is what the smallest record of a group takes.
	minDedupeBytes = 1 + 1 + 32 + 1
)

func encodeDedupe(g *dedupeGroup) []byte {
	size := dedupeFixed + binary.MaxVarintLen64
	for i := range g.records {
		size += minDedupeBytes + 12 + len(g.records[i].id)
	}
	out := make([]byte, dedupeFixed, size)
	le.PutUint32(out[0:], dedupeMagic)
	le.PutUint32(out[8:], dedupeVersion)
	le.PutUint64(out[12:], uint64(g.first))
	le.PutUint64(out[20:], uint64(g.last))
	le.PutUint64(out[28:], uint64(g.time))
	out = binary.AppendUvarint(out, uint64(len(g.records)))
	for i := range g.records {
		r := &g.records[i]
		out = binary.AppendUvarint(out, uint64(r.seq-g.first))
		out = binary.AppendUvarint(out, uint64(r.rows))
		out = append(out, r.digest[:]...)
		out = appendText(out, r.id)
	}
	le.PutUint32(out[4:], checksum(out[8:]))
	return out
}

// rawRecord is a record whose id and digest are parts of the stored bytes.
type rawRecord struct {
	seq        Seq
	rows       int
	digest, id []byte
}

// scanDedupe reads what encodeDedupe wrote, record by record, and gives the group without its records. An error is a *CorruptError.
func scanDedupe(data []byte, visit func(*rawRecord)) (*dedupeGroup, error) {
	c := &cursor{data: data}
	checkRecord(c, dedupeMagic)
	if v := c.u32("version"); c.err == nil && v != dedupeVersion {
		c.err = fmt.Errorf("dedupe version %d, this program reads %d: %w", v, dedupeVersion, ErrFormat)
	}
	g := &dedupeGroup{first: Seq(c.u64("first")), last: Seq(c.u64("last")), time: int64(c.u64("time"))}
	if c.err == nil && g.first > g.last {
		c.fail("sequences %d to %d", g.first, g.last)
	}
	n := c.count("records", minDedupeBytes)
	var r rawRecord
	for i := 0; i < n && c.err == nil; i++ {
		r.seq = g.first + Seq(c.bounded("sequence", int(g.last-g.first)))
		r.rows = c.bounded("rows", maxRows)
		r.digest = c.bytes("digest", len(dedupeRecord{}.digest))
		if r.id = c.bytes("message id", c.bounded("message id", MaxMsgIDBytes)); c.err == nil {
			visit(&r)
		}
	}
	c.end("dedupe group")
	if c.err != nil {
		return nil, &CorruptError{Key: "dedupe group", Offset: c.off, Err: c.err}
	}
	return g, nil
}

// checkRecord reads a magic number and the checksum of what follows it.
func checkRecord(c *cursor, want uint32) {
	magic, sum := c.u32("magic"), c.u32("checksum")
	if c.err == nil && magic != want {
		c.fail("magic %#x, want %#x", magic, want)
	}
	if c.err == nil && sum != checksum(c.data[8:]) {
		c.fail("checksum %#x, stored %#x", checksum(c.data[8:]), sum)
	}
}

// decodeDedupe reads the group under a key. An error is a *CorruptError.
func decodeDedupe(key Seq, data []byte) (*dedupeGroup, error) {
	g, err := decodeStored(storedKey{kindDedupe, uint64(key)}, data)
	if err != nil {
		return nil, err
	}
	return &g.dedupeGroup, nil
}

// Origin names a log of a graph.
type Origin struct {
	Lane        uint32 `json:"lane"`
	Incarnation string `json:"incarnation"`
}

// storedGroup is a stored group of the window; origin is nil for one of this log.
type storedGroup struct {
	dedupeGroup
	origin *Origin
}

// find gives the group's record of a message id, or nil.
func (g *storedGroup) find(id string) *found {
	for i := range g.records {
		if g.records[i].id == id {
			return &found{g.records[i], g.origin}
		}
	}
	return nil
}

// Layout of an imported group (FORMAT.md, "imported group").
const (
	importedMagic   = 0x49574c46 // "FLWI" little-endian
	importedVersion = 1
	importedFixed   = 16
)

// encodeImported stores a group as it was stored by its origin.
func encodeImported(o *Origin, group []byte) []byte {
	out := make([]byte, importedFixed, importedFixed+binary.MaxVarintLen64+len(o.Incarnation)+len(group))
	le.PutUint32(out[0:], importedMagic)
	le.PutUint32(out[8:], importedVersion)
	le.PutUint32(out[12:], o.Lane)
	out = append(appendText(out, o.Incarnation), group...)
	le.PutUint32(out[4:], checksum(out[8:]))
	return out
}

// splitImported reads what encodeImported wrote.
func splitImported(data []byte) (*Origin, []byte, error) {
	c := &cursor{data: data}
	checkRecord(c, importedMagic)
	if v := c.u32("version"); c.err == nil && v != importedVersion {
		c.err = fmt.Errorf("imported group version %d, this program reads %d: %w", v, importedVersion, ErrFormat)
	}
	o := &Origin{Lane: c.u32("lane"), Incarnation: c.text("incarnation", maxIncarnationBytes)}
	if c.err != nil {
		return nil, nil, &CorruptError{Key: "imported group", Offset: c.off, Err: c.err}
	}
	return o, data[c.off:], nil
}

// scanStored reads a stored group of either kind, and gives it without its records.
func scanStored(key storedKey, data []byte, visit func(*rawRecord)) (*storedGroup, error) {
	g := &storedGroup{}
	var err error
	if key.kind == kindImported {
		g.origin, data, err = splitImported(data)
	}
	var group *dedupeGroup
	if err == nil {
		group, err = scanDedupe(data, visit)
	}
	if err == nil && key.kind == kindDedupe && uint64(group.last) != key.n {
		err = &CorruptError{Err: fmt.Errorf("sequences %d to %d under key %d", group.first, group.last, key.n)}
	}
	var c *CorruptError
	if errors.As(err, &c) {
		c.Key = key.String()
	}
	if err != nil {
		return nil, err
	}
	g.dedupeGroup = *group
	return g, nil
}

// decodeStored reads a stored group of either kind whole.
func decodeStored(key storedKey, data []byte) (*storedGroup, error) {
	records := []dedupeRecord{}
	g, err := scanStored(key, data, func(r *rawRecord) {
		records = append(records, dedupeRecord{seq: r.seq, rows: r.rows, digest: [32]byte(r.digest), id: string(r.id)})
	})
	if err == nil {
		g.records = records
	}
	return g, err
}
