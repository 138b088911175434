package structural

import (
	"encoding/binary"
	"errors"
	"math/bits"

	"github.com/foldline/foldline/lance/internal/pb/pb21"
)

const (
	// chunkTarget is the size of a chunk's values that is aimed at, maxChunkSlots the most slots of a chunk.
	chunkTarget   = 4096
	maxChunkSlots = 4096
	// maxChunkBytes is what 12 bits of chunk metadata can express.
	maxChunkBytes = 1 << 15
	// maxChunkLevels is what the 16 bits of a chunk's level count can express.
	maxChunkLevels = 1<<16 - 1
)

// errChunkFull tells that a chunk cannot take the levels or values that belong to it.
var errChunkFull = errors.New("structural: chunk is full")

// chunkEncoder encodes the values of a page chunk by chunk.
type chunkEncoder interface {
	// message describes the encoding.
	message() *pb21.CompressiveEncoding
	// buffers is the number of value buffers of a chunk.
	buffers() int
	// slots is how many of the left slots from slot `from` on the next chunk takes: a power of two from 2, or
	// all that are left.
	slots(from, left int) int
	// appendPart appends value buffer `part` of the n slots from `from` on.
	appendPart(dst []byte, part, from, n int) []byte
}

func (p *page) encodeMiniBlock() (Encoded, error) {
	c := choose(p.in.Values)
	defer c.release()
	enc := c.encoder
	layout := &pb21.MiniBlockLayout{
		ValueCompression: enc.message(), NumBuffers: uint64(enc.buffers()), NumItems: uint64(p.in.Values.Len),
		Layers: p.layers, HasLargeChunk: p.opts.LargeChunks,
	}
	b := &blockBuilder{page: p, enc: enc}
	if p.leaf.Path.HasLists() {
		b.rep = newLevelEncoder(p.in.Rep, int(p.leaf.Path.MaxRep()))
		layout.RepCompression, layout.RepetitionIndexDepth = b.rep.message(), 1
	}
	if p.def != nil {
		b.def = newLevelEncoder(p.def, p.levels)
		layout.DefCompression = b.def.message()
	}
	if c.dictionary != nil {
		layout.Dictionary, layout.NumDictionaryItems = c.dictionary.message(), uint64(c.dictionary.items.Len)
	}
	if err := b.run(); err != nil {
		return Encoded{}, err
	}
	out := Encoded{Rows: p.rows, Layout: &pb21.PageLayout{Layout: &pb21.PageLayout_MiniBlockLayout{MiniBlockLayout: layout}}}
	out.Buffers = [][]byte{b.meta, b.data}
	if c.dictionary != nil {
		out.Buffers = append(out.Buffers, c.dictionary.block())
	}
	if b.rep != nil {
		out.Buffers = append(out.Buffers, b.index)
	}
	return out, nil
}

// blockBuilder writes the chunks of a page.
type blockBuilder struct {
	*page
	enc               chunkEncoder
	rep, def          *levelEncoder // nil when the page has none
	meta, data, index []byte
}

func (b *blockBuilder) run() error {
	slots := b.in.Values.Len
	b.data = make([]byte, 0, b.in.Values.Bytes()/2+1024)
	slot, entry := 0, 0
	for slot < slots {
		n := b.enc.slots(slot, slots-slot)
		last := slot+n == slots
		end := b.lastEntry(entry, n, last)
		if err := b.chunk(slot, n, entry, end, last); err != nil {
			return err
		}
		slot, entry = slot+n, end
	}
	return nil
}

// lastEntry is where the entries of a chunk of n slots end: right after its last slot, or at the end of all.
func (b *blockBuilder) lastEntry(entry, n int, last bool) int {
	if last {
		return b.in.Entries
	}
	if b.rep == nil {
		return entry + n
	}
	for n > 0 {
		if b.visible(entry) {
			n--
		}
		entry++
	}
	return entry
}

func (b *blockBuilder) chunk(slot, n, entry, end int, last bool) error {
	if end-entry > maxChunkLevels {
		return errChunkFull
	}
	start := len(b.data)
	levels := 0
	if b.rep != nil || b.def != nil {
		levels = end - entry
	}
	b.data = binary.LittleEndian.AppendUint16(b.data, uint16(levels))
	sizes := len(b.data)
	width := 2
	if b.opts.LargeChunks {
		width = 4
	}
	head := b.enc.buffers() * width
	for _, l := range []*levelEncoder{b.rep, b.def} {
		if l != nil {
			head += 2
		}
	}
	b.data = append(b.data, make([]byte, head)...)
	b.pad(start)
	put := func(begin, width int) error {
		size := len(b.data) - begin
		if size > maxChunkBytes {
			return errChunkFull
		}
		if width == 2 {
			binary.LittleEndian.PutUint16(b.data[sizes:], uint16(size))
		} else {
			binary.LittleEndian.PutUint32(b.data[sizes:], uint32(size))
		}
		sizes += width
		b.pad(start)
		return nil
	}
	for _, l := range []*levelEncoder{b.rep, b.def} {
		if l == nil {
			continue
		}
		begin := len(b.data)
		b.data = l.append(b.data, entry, end)
		if err := put(begin, 2); err != nil {
			return err
		}
	}
	for part := range b.enc.buffers() {
		begin := len(b.data)
		b.data = b.enc.appendPart(b.data, part, slot, n)
		if err := put(begin, width); err != nil {
			return err
		}
	}
	return b.finish(start, n, entry, end, last)
}

func (b *blockBuilder) pad(start int) {
	for (len(b.data)-start)%8 != 0 {
		b.data = append(b.data, 0)
	}
}

// finish writes the metadata and the repetition index of a chunk.
func (b *blockBuilder) finish(start, n, entry, end int, last bool) error {
	size := len(b.data) - start
	if size > maxChunkBytes {
		return errChunkFull
	}
	word := uint32(size/8-1) << 4
	if !last {
		word |= uint32(bits.TrailingZeros(uint(n)))
	}
	if b.opts.LargeChunks {
		b.meta = binary.LittleEndian.AppendUint32(b.meta, word)
	} else {
		b.meta = binary.LittleEndian.AppendUint16(b.meta, uint16(word))
	}
	if b.rep == nil {
		return nil
	}
	rows, open := 0, end-entry
	top := b.leaf.Path.MaxRep()
	for i := entry; i < end; i++ {
		if b.in.Rep[i] == top {
			open = end - i
			if i > entry {
				rows++
			}
		}
	}
	if last || b.in.Rep[end] == top {
		rows, open = rows+1, 0
	}
	b.index = binary.LittleEndian.AppendUint64(b.index, uint64(rows))
	b.index = binary.LittleEndian.AppendUint64(b.index, uint64(open))
	return nil
}

// powerOfTwo is the largest power of two from 2 on that is at most n, or 2.
func powerOfTwo(n int) int {
	if n < 4 {
		return 2
	}
	return 1 << (bits.Len(uint(n)) - 1)
}
