package wal

import (
	"encoding/binary"
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

// decodeDedupe reads what encodeDedupe wrote. An error is a *CorruptError.
func decodeDedupe(key Seq, data []byte) (*dedupeGroup, error) {
	c := &cursor{data: data}
	magic, sum := c.u32("magic"), c.u32("checksum")
	if c.err == nil && magic != dedupeMagic {
		c.fail("magic %#x, want %#x", magic, uint32(dedupeMagic))
	}
	if c.err == nil && sum != checksum(data[8:]) {
		c.fail("checksum %#x, stored %#x", checksum(data[8:]), sum)
	}
	if v := c.u32("version"); c.err == nil && v != dedupeVersion {
		c.err = fmt.Errorf("dedupe version %d, this program reads %d: %w", v, dedupeVersion, ErrFormat)
	}
	g := &dedupeGroup{first: Seq(c.u64("first")), last: Seq(c.u64("last")), time: int64(c.u64("time"))}
	if c.err == nil && (g.last != key || g.first > g.last) {
		c.fail("sequences %d to %d under key %d", g.first, g.last, key)
	}
	g.records = decodeDedupeRecords(c, g)
	c.end("dedupe group")
	if c.err != nil {
		return nil, &CorruptError{Key: "dedupe " + key.String(), Offset: c.off, Err: c.err}
	}
	return g, nil
}

func decodeDedupeRecords(c *cursor, g *dedupeGroup) []dedupeRecord {
	n := c.count("records", minDedupeBytes)
	if c.err != nil {
		return nil
	}
	records := make([]dedupeRecord, n)
	for i := range records {
		r := &records[i]
		r.seq = g.first + Seq(c.bounded("sequence", int(g.last-g.first)))
		r.rows = c.bounded("rows", maxRows)
		copy(r.digest[:], c.bytes("digest", len(r.digest)))
		r.id = c.text("message id", MaxMsgIDBytes)
	}
	return records
}
