package ipcstream

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"
)

// flat is a flatbuffer that is not trusted. The first access out of its bounds sets err; from then on every access
// gives zero values, so that a walk is checked once at its end.
type flat struct {
	buf []byte
	err error
}

// flatTable is a table of a flat: its beginning and its vtable are within the buffer.
type flatTable struct {
	f      *flat
	object int // position
	vtable []byte
}

func (f *flat) fail(format string, args ...any) {
	if f.err == nil {
		f.err = fmt.Errorf("metadata: "+format, args...)
	}
}

// bytes are n bytes at a position, nil when they are not there.
func (f *flat) bytes(at, n int) []byte {
	if f.err != nil {
		return nil
	}
	if at < 0 || n < 0 || at > len(f.buf) || n > len(f.buf)-at {
		f.fail("%d bytes at %d of %d", n, at, len(f.buf))
		return nil
	}
	return f.buf[at : at+n]
}

// follow reads an unsigned offset, which points forward from where it stands.
func (f *flat) follow(at int) int {
	b := f.bytes(at, 4)
	if b == nil {
		return 0
	}
	offset := binary.LittleEndian.Uint32(b)
	if offset == 0 || uint64(offset) > uint64(len(f.buf)-at) {
		f.fail("an offset at %d leaves the metadata", at)
		return 0
	}
	return at + int(offset)
}

func (f *flat) root() flatTable { return f.table(f.follow(0)) }

// table checks a table's place: a signed offset back to its vtable, whose first two numbers are the sizes of both. That of the table is of no use: the Go
// library of FlatBuffers lets tables of different sizes share a vtable when their fields begin at the same places. Every field is held to the buffer.
func (f *flat) table(at int) flatTable {
	b := f.bytes(at, 4)
	if b == nil {
		return flatTable{f: f}
	}
	vtable := int64(at) - int64(int32(binary.LittleEndian.Uint32(b)))
	if vtable < 0 || vtable > int64(len(f.buf)) {
		f.fail("the vtable of the table at %d is outside", at)
		return flatTable{f: f}
	}
	head := f.bytes(int(vtable), 4)
	if head == nil {
		return flatTable{f: f}
	}
	vsize := int(binary.LittleEndian.Uint16(head))
	slots := f.bytes(int(vtable), vsize)
	if slots == nil || vsize < 4 || vsize%2 != 0 {
		f.fail("the vtable of the table at %d has a size that cannot be", at)
		return flatTable{f: f}
	}
	return flatTable{f: f, object: at, vtable: slots}
}

// slot is the position of a field of width bytes, 0 when it is absent and its default holds.
func (t flatTable) slot(i, width int) int {
	entry := 4 + 2*i
	if t.f.err != nil || entry+2 > len(t.vtable) {
		return 0
	}
	offset := int(binary.LittleEndian.Uint16(t.vtable[entry:]))
	if offset == 0 {
		return 0
	}
	at := t.object + offset
	if offset < 4 || t.f.bytes(at, width) == nil {
		t.f.fail("field %d of the table at %d is outside", i, t.object)
		return 0
	}
	return at
}

// number reads a little-endian field of 1, 2, 4 or 8 bytes, sign extended.
func (t flatTable) number(i, width int, fallback int64) int64 {
	at := t.slot(i, width)
	if at == 0 {
		return fallback
	}
	b := t.f.bytes(at, width)
	if b == nil {
		return fallback
	}
	switch width {
	case 1:
		return int64(int8(b[0]))
	case 2:
		return int64(int16(binary.LittleEndian.Uint16(b)))
	case 4:
		return int64(int32(binary.LittleEndian.Uint32(b)))
	}
	return int64(binary.LittleEndian.Uint64(b))
}

// child is a table that a field points to.
func (t flatTable) child(i int) (flatTable, bool) {
	at := t.slot(i, 4)
	if at == 0 {
		return flatTable{f: t.f}, false
	}
	c := t.f.table(t.f.follow(at))
	return c, t.f.err == nil
}

// vector is the position of the first of n elements of width bytes that a field points to.
func (t flatTable) vector(i, width int) (at, n int) {
	slot := t.slot(i, 4)
	if slot == 0 {
		return 0, 0
	}
	start := t.f.follow(slot)
	b := t.f.bytes(start, 4)
	if b == nil {
		return 0, 0
	}
	count := uint64(binary.LittleEndian.Uint32(b))
	if count*uint64(width) > uint64(len(t.f.buf)-start-4) {
		t.f.fail("a vector of %d elements at %d leaves the metadata", count, start)
		return 0, 0
	}
	return start + 4, int(count)
}

// text is a string field.
func (t flatTable) text(i int) string {
	at, n := t.vector(i, 1)
	b := t.f.bytes(at, n)
	if !utf8.Valid(b) {
		t.f.fail("a name is not UTF-8")
		return ""
	}
	return string(b)
}
