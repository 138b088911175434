package wal

import (
	"encoding/binary"
	"fmt"
)

// cursor reads a byte slice front to back. The first fault sticks, and every
// length is checked against the bytes left before it is used, so nothing is
// allocated for a length that cannot be true.
type cursor struct {
	data []byte
	off  int
	err  error
}

func (c *cursor) left() int { return len(c.data) - c.off }

func (c *cursor) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

func (c *cursor) uvarint(what string) uint64 {
	if c.err != nil {
		return 0
	}
	n, width := binary.Uvarint(c.data[c.off:])
	if width <= 0 {
		c.fail("%s: bad varint", what)
		return 0
	}
	c.off += width
	return n
}

// count reads a number of items that each take at least minBytes of what is left.
func (c *cursor) count(what string, minBytes int) int {
	n := c.uvarint(what)
	if c.err == nil && n > uint64(c.left()/minBytes) {
		c.fail("%s: %d do not fit in %d bytes", what, n, c.left())
	}
	if c.err != nil {
		return 0
	}
	return int(n)
}

// bounded reads a number that is at most limit.
func (c *cursor) bounded(what string, limit int) int {
	n := c.uvarint(what)
	if c.err == nil && n > uint64(limit) {
		c.fail("%s: %d is above %d", what, n, limit)
	}
	if c.err != nil {
		return 0
	}
	return int(n)
}

// bytes gives the next n bytes without copying them.
func (c *cursor) bytes(what string, n int) []byte {
	if c.err == nil && (n < 0 || n > c.left()) {
		c.fail("%s: %d bytes wanted, %d left", what, n, c.left())
	}
	if c.err != nil {
		return nil
	}
	b := c.data[c.off : c.off+n : c.off+n]
	c.off += n
	return b
}

func (c *cursor) text(what string, limit int) string {
	return string(c.bytes(what, c.bounded(what, limit)))
}

func (c *cursor) u8(what string) byte {
	if b := c.bytes(what, 1); b != nil {
		return b[0]
	}
	return 0
}

func (c *cursor) u16(what string) uint16 {
	if b := c.bytes(what, 2); b != nil {
		return le.Uint16(b)
	}
	return 0
}

func (c *cursor) u32(what string) uint32 {
	if b := c.bytes(what, 4); b != nil {
		return le.Uint32(b)
	}
	return 0
}

func (c *cursor) u64(what string) uint64 {
	if b := c.bytes(what, 8); b != nil {
		return le.Uint64(b)
	}
	return 0
}

// end fails when bytes are left over.
func (c *cursor) end(what string) {
	if c.err == nil && c.left() != 0 {
		c.fail("%s: %d bytes left over", what, c.left())
	}
}
