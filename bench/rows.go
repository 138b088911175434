package bench

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"

	"github.com/nats-io/nats.go"
)

// payload fills a row up to about 200 bytes of JSON.
var payload = bytes.Repeat([]byte("0123456789abcdef"), 6)

// appendRow appends the i-th row as one line of JSON; rows with the same key
// number have the same key. Keys are spread, as ids of the world are.
func appendRow(dst []byte, key, i int) []byte {
	h := fnv.New64a()
	_ = binary.Write(h, binary.LittleEndian, int64(key)) // a hash never fails
	return fmt.Appendf(dst, "{\"id\":\"%016x%016x\",\"n\":%d,\"v\":%g,\"payload\":\"%s\"}\n", h.Sum64(), key, i, float64(i)/8, payload)
}

// message is one write of rows rows to a table, numbered from first.
func (l *Line) message(table string, first, rows int, key func(i int) int) *nats.Msg {
	body := make([]byte, 0, rows*220)
	for i := first; i < first+rows; i++ {
		body = appendRow(body, key(i), i)
	}
	return &nats.Msg{Subject: l.Subjects.WriteTable(table), Data: body}
}

// same is the key of a row that nobody wrote before.
func same(i int) int { return i }

// durable accepts a receipt and nothing else, without the cost of decoding it,
// which would be the load's and not the line's.
func durable(reply []byte) error {
	if !bytes.Contains(reply, []byte(`"state":"durable"`)) {
		return fmt.Errorf("the ingester answered %q", reply)
	}
	return nil
}
