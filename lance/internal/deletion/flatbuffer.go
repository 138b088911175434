package deletion

import (
	"encoding/binary"
	"fmt"
)

// table is a flatbuffers table inside buf. Every access is checked against the buffer; nothing is allocated.
type table struct {
	buf    []byte
	at     int
	vtable []byte
}

// rootTable opens the table that the buffer's first word points to.
func rootTable(buf []byte) (table, error) {
	if len(buf) < 4 {
		return table{}, fmt.Errorf("%d bytes are no flatbuffer", len(buf))
	}
	return tableAt(buf, uint64(binary.LittleEndian.Uint32(buf)))
}

func tableAt(buf []byte, at uint64) (table, error) {
	if at+4 > uint64(len(buf)) {
		return table{}, fmt.Errorf("table at %d of %d bytes", at, len(buf))
	}
	v := int64(at) - int64(int32(binary.LittleEndian.Uint32(buf[at:])))
	if v < 0 || v+4 > int64(len(buf)) {
		return table{}, fmt.Errorf("vtable at %d of %d bytes", v, len(buf))
	}
	size := int64(binary.LittleEndian.Uint16(buf[v:]))
	if size < 4 || v+size > int64(len(buf)) {
		return table{}, fmt.Errorf("vtable of %d bytes at %d of %d", size, v, len(buf))
	}
	return table{buf: buf, at: int(at), vtable: buf[v : v+size]}, nil
}

// field returns the n bytes of scalar or reference number id; nil when it is absent.
func (t table) field(id, n int) ([]byte, error) {
	slot := 4 + 2*id
	if slot+2 > len(t.vtable) {
		return nil, nil
	}
	off := int(binary.LittleEndian.Uint16(t.vtable[slot:]))
	if off == 0 {
		return nil, nil
	}
	if t.at+off+n > len(t.buf) {
		return nil, fmt.Errorf("field %d at %d of %d bytes", id, t.at+off, len(t.buf))
	}
	return t.buf[t.at+off : t.at+off+n], nil
}

// integer reads a little-endian scalar of n bytes, zero when absent.
func (t table) integer(id, n int) (int64, error) {
	b, err := t.field(id, n)
	if b == nil || err != nil {
		return 0, err
	}
	switch n {
	case 1:
		return int64(int8(b[0])), nil
	case 2:
		return int64(int16(binary.LittleEndian.Uint16(b))), nil
	case 4:
		return int64(int32(binary.LittleEndian.Uint32(b))), nil
	}
	return int64(binary.LittleEndian.Uint64(b)), nil
}

// reference returns the position that an offset field points to; 0 when absent.
func (t table) reference(id int) (uint64, error) {
	b, err := t.field(id, 4)
	if b == nil || err != nil {
		return 0, err
	}
	// b is a slice of buf, so its position follows from the capacities.
	at := uint64(cap(t.buf) - cap(b))
	return at + uint64(binary.LittleEndian.Uint32(b)), nil
}

// child opens the table that field id points to; ok is false when it is absent.
func (t table) child(id int) (child table, ok bool, err error) {
	at, err := t.reference(id)
	if at == 0 || err != nil {
		return table{}, false, err
	}
	child, err = tableAt(t.buf, at)
	return child, err == nil, err
}

// vector returns the count and the bytes of a vector of elements of the given size; none when it is absent.
func (t table) vector(id, size int) (count int, data []byte, err error) {
	at, err := t.reference(id)
	if at == 0 || err != nil {
		return 0, nil, err
	}
	if at+4 > uint64(len(t.buf)) {
		return 0, nil, fmt.Errorf("vector at %d of %d bytes", at, len(t.buf))
	}
	n := uint64(binary.LittleEndian.Uint32(t.buf[at:]))
	if n*uint64(size) > uint64(len(t.buf))-at-4 {
		return 0, nil, fmt.Errorf("vector of %d elements at %d of %d bytes", n, at, len(t.buf))
	}
	return int(n), t.buf[at+4 : at+4+n*uint64(size)], nil
}

// element opens table i of a vector of tables.
func (t table) element(id, i int) (table, error) {
	n, data, err := t.vector(id, 4)
	if err != nil {
		return table{}, err
	}
	if i >= n {
		return table{}, fmt.Errorf("element %d of %d", i, n)
	}
	word := data[4*i:]
	at := uint64(cap(t.buf) - cap(word))
	return tableAt(t.buf, at+uint64(binary.LittleEndian.Uint32(word)))
}
