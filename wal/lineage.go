package wal

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Layout of the lineage record (FORMAT.md, "lineage").
const (
	lineageVersion = 1
	lineageFixed   = 8
	// minOriginBytes is what the shortest name of a log takes.
	minOriginBytes = 4 + 1
	// maxIncarnationBytes is the bound that the heads set.
	maxIncarnationBytes = 128
)

// lineage names the logs whose windows are in this one's, or are known to be missing from it. It is written once, by the
// last sync of an import.
type lineage struct{ logs []Origin }

func (n *lineage) encode() []byte {
	out := make([]byte, lineageFixed)
	le.PutUint32(out[4:], lineageVersion)
	out = binary.AppendUvarint(out, uint64(len(n.logs)))
	for _, o := range n.logs {
		out = le.AppendUint32(out, o.Lane)
		out = appendText(out, o.Incarnation)
	}
	le.PutUint32(out, checksum(out[4:]))
	return out
}

func decodeLineage(data []byte) (*lineage, error) {
	c := &cursor{data: data}
	if sum := c.u32("checksum"); c.err == nil && sum != checksum(data[4:]) {
		c.fail("checksum %#x, stored %#x", checksum(data[4:]), sum)
	}
	if v := c.u32("version"); c.err == nil && v != lineageVersion {
		c.err = fmt.Errorf("version %d, this program reads %d: %w", v, lineageVersion, ErrFormat)
	}
	n := &lineage{logs: make([]Origin, c.count("predecessors", minOriginBytes))}
	for i := range n.logs {
		n.logs[i] = Origin{Lane: c.u32("lane"), Incarnation: c.text("incarnation", maxIncarnationBytes)}
	}
	c.end("lineage")
	if c.err != nil {
		return nil, &CorruptError{Key: "lineage", Offset: c.off, Err: c.err}
	}
	return n, nil
}

func (l *Log) recoverLineage(context.Context) error {
	value, closer, err := l.db.Get(lineageKey())
	if errors.Is(err, pebble.ErrNotFound) {
		return nil
	}
	if err != nil {
		return l.storeError(err)
	}
	l.lineage, err = decodeLineage(value)
	return l.storeError(errors.Join(err, closer.Close()))
}
