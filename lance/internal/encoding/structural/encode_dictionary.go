package structural

import (
	"encoding/binary"
	"math/bits"

	"github.com/cespare/xxhash/v2"

	"github.com/foldline/foldline/lance/internal/encoding"
	"github.com/foldline/foldline/lance/internal/pb/pb21"
)

const (
	// minDictionarySlots is the size of a page from which a dictionary is looked for.
	minDictionarySlots = 100
	// dictionarySample values tell whether nearly all differ; after four times as many, half may.
	dictionarySample = 2048
	maxDictionary    = 1 << 16
)

// dictionaryPage is a dictionary-encoded page: distinct items and the index of each slot.
type dictionaryPage struct {
	items   *encoding.Values
	indexes *encoding.Values
}

func (d *dictionaryPage) release() {
	d.items.Release()
	d.indexes.Release()
}

// message describes the items in block context.
func (d *dictionaryPage) message() *pb21.CompressiveEncoding {
	if d.items.Type.Kind == encoding.Bytes {
		return variableMessage(d.items.Type.OffsetBits)
	}
	return flatBits(d.items.Type.Bits)
}

// block is the buffer of the items.
func (d *dictionaryPage) block() []byte {
	data := d.items.Data.Bytes()
	if d.items.Type.Kind != encoding.Bytes {
		return append([]byte(nil), data...)
	}
	width := d.items.Type.OffsetBits / 8
	start := 2*width + (d.items.Len+1)*width
	out := make([]byte, 0, start+len(data))
	if width == 4 {
		out = binary.LittleEndian.AppendUint32(out, 32)
		out = binary.LittleEndian.AppendUint32(out, uint32(start))
	} else {
		out = binary.LittleEndian.AppendUint64(out, 64)
		out = binary.LittleEndian.AppendUint64(out, uint64(start))
	}
	out = append(out, d.items.Offsets.Bytes()...)
	return append(out, data...)
}

// size is what items and indexes take.
func (d *dictionaryPage) size() int {
	return d.items.Bytes() + min(inlineSize[uint32](d.indexes), rleSize(d.indexes, 0, d.indexes.Len))
}

// newDictionary finds the distinct values, or returns nil when there are too many to save anything.
func newDictionary(v *encoding.Values) *dictionaryPage {
	if v.Len < minDictionarySlots && v.Type.IndexBits == 0 {
		return nil
	}
	t := newHashTable(v.Type.IndexBits > 0)
	d := &dictionaryPage{
		items:   encoding.NewValues(v.Type, v.Allocator()),
		indexes: encoding.NewValues(encoding.FixedType(32), v.Allocator()),
	}
	indexes := encoding.Cast[uint32](d.indexes.ExtendFixed(v.Len))
	ok := false
	switch {
	case v.Type.Kind == encoding.Bytes && v.Type.OffsetBits == 32:
		ok = indexStrings[int32](t, v, d.items, indexes)
	case v.Type.Kind == encoding.Bytes:
		ok = indexStrings[int64](t, v, d.items, indexes)
	case v.Type.Bits == 64:
		ok = indexWords(t, v, d.items, indexes)
	default:
		ok = indexWide(t, v, d.items, indexes)
	}
	if !ok {
		d.release()
		return nil
	}
	d.setIndexBits(v.Type.IndexBits)
	return d
}

// setIndexBits gives the indexes the width of an Arrow dictionary's.
func (d *dictionaryPage) setIndexBits(bits int) {
	if bits == 0 || bits == 32 {
		return
	}
	wide := d.indexes
	d.indexes = encoding.NewValues(encoding.FixedType(bits), wide.Allocator())
	out := d.indexes.ExtendFixed(wide.Len)
	for i, index := range encoding.Cast[uint32](wide.Data.Bytes()) {
		switch bits {
		case 8:
			out[i] = byte(index)
		case 16:
			binary.LittleEndian.PutUint16(out[2*i:], uint16(index))
		default:
			binary.LittleEndian.PutUint64(out[8*i:], uint64(index))
		}
	}
	wide.Release()
}

// tooMany reports whether a dictionary of so many items for the first n slots is not worth going on with.
func (t *hashTable) tooMany(items, n int) bool {
	return !t.unlimited && (items > maxDictionary || n == dictionarySample && items > n/8*7 || n > 4*dictionarySample && items > n/2)
}

// hashTable maps hashes to item numbers, open addressing.
type hashTable struct {
	slots []hashSlot
	used  int
	// unlimited tells that the dictionary is made whatever it saves.
	unlimited bool
}

type hashSlot struct {
	hash uint64
	item uint32 // one more than the number; 0 is free
}

func newHashTable(unlimited bool) *hashTable {
	return &hashTable{slots: make([]hashSlot, 1<<10), unlimited: unlimited}
}

// find returns the place of the item with that hash for which same holds, or the free place for it.
func (t *hashTable) find(hash uint64, same func(item uint32) bool) *hashSlot {
	mask := uint64(len(t.slots) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		s := &t.slots[i]
		if s.item == 0 || s.hash == hash && same(s.item-1) {
			return s
		}
	}
}

// put fills a free place; the table stays less than half full.
func (t *hashTable) put(s *hashSlot, hash uint64, item int) {
	*s = hashSlot{hash: hash, item: uint32(item) + 1}
	t.used++
	if t.used*2 < len(t.slots) {
		return
	}
	old := t.slots
	t.slots = make([]hashSlot, 2*len(old))
	for _, o := range old {
		if o.item != 0 {
			*t.find(o.hash, func(uint32) bool { return false }) = o
		}
	}
}

func indexStrings[T encoding.Offset](t *hashTable, v, items *encoding.Values, indexes []uint32) bool {
	offsets, data := encoding.Cast[T](v.Offsets.Bytes()), v.Data.Bytes()
	var (
		value, known []byte // known and ends are those of the items
		ends         []T
	)
	same := func(item uint32) bool { return string(known[ends[item]:ends[item+1]]) == string(value) }
	for i := range indexes {
		value = data[offsets[i]:offsets[i+1]]
		hash := xxhash.Sum64(value)
		s := t.find(hash, same)
		if s.item == 0 {
			if err := items.AppendValue(value); err != nil || t.tooMany(items.Len, i) {
				return false
			}
			known, ends = items.Data.Bytes(), encoding.Cast[T](items.Offsets.Bytes())
			indexes[i] = uint32(items.Len - 1)
			t.put(s, hash, items.Len-1)
			continue
		}
		indexes[i] = s.item - 1
	}
	return true
}

func indexWords(t *hashTable, v, items *encoding.Values, indexes []uint32) bool {
	values := encoding.Cast[uint64](v.Data.Bytes())
	last, lastIndex := values[0]+1, uint32(0)
	for i, value := range values {
		if value == last {
			indexes[i] = lastIndex
			continue
		}
		hi, lo := bits.Mul64(value^0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93)
		s := t.find(hi^lo, func(item uint32) bool {
			return encoding.Cast[uint64](items.Data.Bytes())[item] == value
		})
		if s.item == 0 {
			items.AppendFixed(v.Data.Bytes(), i*64, 1, nil, 0)
			if t.tooMany(items.Len, i) {
				return false
			}
			lastIndex = uint32(items.Len - 1)
			t.put(s, hi^lo, items.Len-1)
		} else {
			lastIndex = s.item - 1
		}
		last, indexes[i] = value, lastIndex
	}
	return true
}

func indexWide(t *hashTable, v, items *encoding.Values, indexes []uint32) bool {
	w := v.Type.ValueBytes()
	data := v.Data.Bytes()
	for i := range indexes {
		value := data[i*w : (i+1)*w]
		hash := xxhash.Sum64(value)
		s := t.find(hash, func(item uint32) bool {
			return string(items.Data.Bytes()[int(item)*w:int(item+1)*w]) == string(value)
		})
		if s.item == 0 {
			items.AppendFixed(data, i*w*8, 1, nil, 0)
			if t.tooMany(items.Len, i) {
				return false
			}
			indexes[i] = uint32(items.Len - 1)
			t.put(s, hash, items.Len-1)
			continue
		}
		indexes[i] = s.item - 1
	}
	return true
}
