package wal

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// Record kinds: the first byte of every Pebble key. Only the values are inside
// the span that a release excises.
const (
	kindDedupe   = 'd' // + last sequence of the sync batch
	kindImported = 'i' // + place; a group of a predecessor's window
	kindLoss     = 'l' // accepted loss
	kindLineage  = 'p' // the predecessors
	kindReleased = 'r' // released_through
	kindSchema   = 's' // + schema id
	kindValue    = 'v' // + last sequence of the value
)

const keyBytes = 9

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	le         = binary.LittleEndian
)

func makeKey(kind byte, n uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{kind}, n)
}

func valueKey(last Seq) []byte     { return makeKey(kindValue, uint64(last)) }
func dedupeKey(last Seq) []byte    { return makeKey(kindDedupe, uint64(last)) }
func schemaKey(id SchemaID) []byte { return makeKey(kindSchema, uint64(id)) }
func lineageKey() []byte           { return []byte{kindLineage} }
func lossKey() []byte              { return []byte{kindLoss} }
func releasedKey() []byte          { return []byte{kindReleased} }
func spanEnd(kind byte) []byte     { return []byte{kind + 1} }
func spanStart(kind byte) []byte   { return []byte{kind} }
func keyString(key []byte) string  { return fmt.Sprintf("%q", key) }
func checksum(data []byte) uint32  { return crc32.Checksum(data, castagnoli) }
func padded(n int) int             { return (n + 7) &^ 7 }

// keyNumber reads the number of a key of the given kind.
func keyNumber(kind byte, key []byte) (uint64, error) {
	if len(key) != keyBytes || key[0] != kind {
		return 0, fmt.Errorf("key %s is not a %q record", keyString(key), kind)
	}
	return binary.BigEndian.Uint64(key[1:]), nil
}
