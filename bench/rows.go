package bench

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
)

// payload fills a row up to about 200 bytes of JSON.
var payload = bytes.Repeat([]byte("0123456789abcdef"), 6)

// appendRow appends the i-th row as one line of JSON; rows with the same key
// number have the same key. Keys are spread, as ids of the world are. It is
// cheap, so that the load is not what is measured.
func appendRow(dst []byte, key, i int) []byte {
	dst = append(dst, `{"id":"`...)
	dst = appendKey(dst, key)
	dst = append(dst, `","n":`...)
	dst = strconv.AppendInt(dst, int64(i), 10)
	dst = append(dst, `,"v":`...)
	dst = strconv.AppendInt(dst, int64(i/8), 10)
	dst = append(dst, `.125,"payload":"`...)
	dst = append(dst, payload...)
	return append(dst, "\"}\n"...)
}

// appendKey appends an id.
func appendKey(dst []byte, key int) []byte {
	return appendHex(appendHex(dst, spread(uint64(key))), uint64(key))
}

func appendHex(dst []byte, v uint64) []byte {
	const digits = "0123456789abcdef"
	for shift := 60; shift >= 0; shift -= 4 {
		dst = append(dst, digits[v>>shift&15])
	}
	return dst
}

// spread is the finaliser of splitmix64: a bijection, so keys stay different.
func spread(v uint64) uint64 {
	v = (v ^ v>>30) * 0xbf58476d1ce4e5b9
	v = (v ^ v>>27) * 0x94d049bb133111eb
	return v ^ v>>31
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
