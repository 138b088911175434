package structural

import (
	"github.com/foldline/foldline/lance/internal/encoding"
)

// dictionary values are indexes, encoded like numbers of their own, into a block of items.
type dictionary struct {
	indexes chunkDecoder
	// items is filled by the page once their bytes are there.
	items   *encoding.Values
	scratch *encoding.Values
}

func (d *dictionary) buffers() int { return d.indexes.buffers() }

func (d *dictionary) decode(bufs [][]byte, n int, out *encoding.Values) error {
	d.scratch.Reset()
	if err := d.indexes.decode(bufs, n, d.scratch); err != nil {
		return err
	}
	switch d.scratch.Type.Bits {
	case 8:
		return lookUp(d.items, encoding.Cast[uint8](d.scratch.Data.Bytes())[:n], out)
	case 16:
		return lookUp(d.items, encoding.Cast[uint16](d.scratch.Data.Bytes())[:n], out)
	case 32:
		return lookUp(d.items, encoding.Cast[uint32](d.scratch.Data.Bytes())[:n], out)
	}
	return lookUp(d.items, encoding.Cast[uint64](d.scratch.Data.Bytes())[:n], out)
}

func lookUp[I uint8 | uint16 | uint32 | uint64](items *encoding.Values, indexes []I, out *encoding.Values) error {
	var top I
	for _, i := range indexes {
		top = max(top, i)
	}
	if len(indexes) > 0 && uint64(top) >= uint64(items.Len) {
		return encoding.Corruptf("index %d of a dictionary of %d", top, items.Len)
	}
	switch {
	case out.Type.Kind == encoding.Bytes && out.Type.OffsetBits == 32:
		return lookUpStrings[int32](items, indexes, out)
	case out.Type.Kind == encoding.Bytes:
		return lookUpStrings[int64](items, indexes, out)
	}
	switch out.Type.ValueBytes() {
	case 4:
		gather[uint32](items, indexes, out)
	case 8:
		gather[uint64](items, indexes, out)
	default:
		for _, i := range indexes {
			if err := out.AppendRange(items, int(i), int(i)+1); err != nil {
				return err
			}
		}
	}
	return nil
}

func gather[T any, I uint8 | uint16 | uint32 | uint64](items *encoding.Values, indexes []I, out *encoding.Values) {
	dst, src := encoding.Cast[T](out.ExtendFixed(len(indexes))), encoding.Cast[T](items.Data.Bytes())
	for at, i := range indexes {
		dst[at] = src[i]
	}
}

func lookUpStrings[T encoding.Offset, I uint8 | uint16 | uint32 | uint64](items *encoding.Values, indexes []I, out *encoding.Values) error {
	offsets := encoding.Cast[T](items.Offsets.Bytes())
	data := items.Data.Bytes()
	total := 0
	for _, i := range indexes {
		total += int(offsets[i+1] - offsets[i])
	}
	ends, base, err := encoding.ExtendStrings[T](out, len(indexes), total)
	if err != nil {
		return err
	}
	dst := out.Data.Extend(total)
	at := 0
	for k, i := range indexes {
		at += copy(dst[at:], data[offsets[i]:offsets[i+1]])
		ends[k] = base + T(at)
	}
	return nil
}
