package structural

import (
	"encoding/binary"
	"fmt"
	"sort"

	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/foldline/foldline/lance/internal/encoding"
	"github.com/foldline/foldline/lance/internal/encoding/levels"
	"github.com/foldline/foldline/lance/internal/pb/pb21"
)

const (
	// maxValueBuffers bounds the value buffers of a chunk.
	maxValueBuffers = 2
)

// miniBlock is a page of small chunks, each with the levels and values of up to a few thousand slots.
type miniBlock struct {
	levelMap
	typ       encoding.Type
	rows      int64
	slots     int64
	large     bool // chunk sizes and value sizes of 32 bits
	values    chunkDecoder
	rep, def  blockDecoder // nil when the page has none
	dict      *dictionary  // nil unless dictionary-encoded
	dictBlock blockDecoder
	dictItems int

	metaSpan, chunkSpan, dictSpan, repSpan encoding.Span

	chunks  []chunk
	scratch *encoding.Leaf
	current int // the chunk that scratch holds, -1 for none
	repBuf  *encoding.Values
	defBuf  *encoding.Values
}

// chunk says where a chunk lies and what precedes its end.
type chunk struct {
	off, size int64
	slots     int
	// firstSlot is the number of slots before the chunk.
	firstSlot int64
	// started is the number of rows that began before the chunk, endStarted those begun before its end.
	started, endStarted int64
	// continues tells that the chunk begins inside of row started-1.
	continues bool
}

func openMiniBlock(l *pb21.MiniBlockLayout, rows int64, buffers []encoding.Span, leaf *levels.LeafPath) (Page, error) {
	m := &miniBlock{typ: leaf.Type, rows: rows, slots: int64(l.GetNumItems()), large: l.GetHasLargeChunk(), current: -1}
	if l.GetNumItems() > maxPageRows {
		return nil, encoding.Corruptf("page of %d slots", l.GetNumItems())
	}
	var err error
	if m.levelMap, err = newLevelMap(leaf.Path, l.GetLayers()); err != nil {
		return nil, err
	}
	if err := m.checkLevels(l); err != nil {
		return nil, err
	}
	if err := m.setBuffers(l, buffers); err != nil {
		return nil, err
	}
	if err := m.setDecoders(l); err != nil {
		return nil, err
	}
	mem := memory.DefaultAllocator
	m.scratch = encoding.NewLeaf(m.typ, mem)
	m.repBuf = encoding.NewValues(encoding.FixedType(16), mem)
	m.defBuf = encoding.NewValues(encoding.FixedType(16), mem)
	return m, nil
}

func (m *miniBlock) checkLevels(l *pb21.MiniBlockLayout) error {
	lists := m.path.HasLists()
	switch {
	case lists != (l.GetRepCompression() != nil) || lists != (l.GetRepetitionIndexDepth() > 0):
		return encoding.Corruptf("repetition levels do not fit the type")
	case m.hasDef() && l.GetDefCompression() == nil:
		return encoding.Corruptf("layers with nulls but no definition levels")
	case !lists && m.slots != m.rows:
		return encoding.Corruptf("%d slots for %d rows", m.slots, m.rows)
	}
	return nil
}

func (m *miniBlock) setBuffers(l *pb21.MiniBlockLayout, buffers []encoding.Span) error {
	want := 2
	if l.GetDictionary() != nil {
		want++
	}
	if l.GetRepetitionIndexDepth() > 0 {
		want++
	}
	if len(buffers) != want {
		return encoding.Corruptf("%d buffers instead of %d", len(buffers), want)
	}
	m.metaSpan, m.chunkSpan = buffers[0], buffers[1]
	rest := buffers[2:]
	if l.GetDictionary() != nil {
		m.dictSpan, rest = rest[0], rest[1:]
	}
	if len(rest) > 0 {
		m.repSpan = rest[0]
	}
	return nil
}

func (m *miniBlock) setDecoders(l *pb21.MiniBlockLayout) (err error) {
	level := encoding.FixedType(16)
	if l.GetRepCompression() != nil {
		if m.rep, err = newBlockDecoder(l.GetRepCompression(), level); err != nil {
			return fmt.Errorf("repetition levels: %w", err)
		}
	}
	if l.GetDefCompression() != nil {
		if m.def, err = newBlockDecoder(l.GetDefCompression(), level); err != nil {
			return fmt.Errorf("definition levels: %w", err)
		}
	}
	if l.GetDictionary() == nil {
		m.values, err = newChunkDecoder(l.GetValueCompression(), m.typ)
	} else {
		err = m.setDictionary(l)
	}
	if err != nil {
		return err
	}
	if n := uint64(m.values.buffers()); n != l.GetNumBuffers() || n > maxValueBuffers {
		return encoding.Corruptf("%d value buffers, the encoding has %d", l.GetNumBuffers(), n)
	}
	return nil
}

func (m *miniBlock) setDictionary(l *pb21.MiniBlockLayout) error {
	if l.GetNumDictionaryItems() > maxPageRows {
		return encoding.Corruptf("dictionary of %d items", l.GetNumDictionaryItems())
	}
	bits, err := indexBits(l.GetValueCompression())
	if err != nil {
		return err
	}
	indexType := encoding.FixedType(bits)
	indexes, err := newChunkDecoder(l.GetValueCompression(), indexType)
	if err != nil {
		return fmt.Errorf("dictionary indexes: %w", err)
	}
	if m.dictBlock, err = newBlockDecoder(l.GetDictionary(), m.typ); err != nil {
		return fmt.Errorf("dictionary: %w", err)
	}
	m.dictItems = int(l.GetNumDictionaryItems())
	m.dict = &dictionary{indexes: indexes, scratch: encoding.NewValues(indexType, memory.DefaultAllocator)}
	m.values = m.dict
	return nil
}

// indexBits finds the width of dictionary indexes in their encoding.
func indexBits(enc *pb21.CompressiveEncoding) (int, error) {
	var bits uint64
	switch c := enc.GetCompression().(type) {
	case *pb21.CompressiveEncoding_Flat:
		bits = c.Flat.GetBitsPerValue()
	case *pb21.CompressiveEncoding_InlineBitpacking:
		bits = c.InlineBitpacking.GetUncompressedBitsPerValue()
	case *pb21.CompressiveEncoding_Rle:
		bits = c.Rle.GetValues().GetFlat().GetBitsPerValue()
	case *pb21.CompressiveEncoding_General:
		return indexBits(c.General.GetValues())
	}
	switch bits {
	case 8, 16, 32, 64:
		return int(bits), nil
	}
	return 0, encoding.Unsupportedf("dictionary indexes of encoding %s", encodingName(enc))
}

func (m *miniBlock) Release() {
	m.scratch.Release()
	m.repBuf.Release()
	m.defBuf.Release()
	if m.dict != nil {
		m.dict.scratch.Release()
		if m.dict.items != nil {
			m.dict.items.Release()
		}
	}
}

func (m *miniBlock) Prepare([]encoding.Range) []encoding.Span {
	if m.chunks != nil {
		return nil
	}
	spans := []encoding.Span{m.metaSpan}
	if m.dict != nil {
		spans = append(spans, m.dictSpan)
	}
	if m.rep != nil {
		spans = append(spans, m.repSpan)
	}
	return spans
}

func (m *miniBlock) Locate(src encoding.Loaded, rows []encoding.Range) ([]encoding.Span, error) {
	if m.chunks == nil {
		if err := m.index(src); err != nil {
			return nil, err
		}
	}
	var spans []encoding.Span
	for _, r := range rows {
		if r.From >= r.To {
			continue
		}
		first, last := m.chunkOf(r.From), m.lastChunkOf(r.To-1)
		end := m.chunks[last].off + m.chunks[last].size
		span, err := m.chunkSpan.Sub(m.chunks[first].off, end-m.chunks[first].off)
		if err != nil {
			return nil, err
		}
		spans = append(spans, span)
	}
	return spans, nil
}

// chunkOf is the chunk in which a row begins.
func (m *miniBlock) chunkOf(row int64) int {
	return sort.Search(len(m.chunks)-1, func(i int) bool { return m.chunks[i].endStarted > row })
}

// lastChunkOf is the last chunk that may hold a part of a row.
func (m *miniBlock) lastChunkOf(row int64) int {
	c := m.chunkOf(row)
	for c+1 < len(m.chunks) && m.chunks[c+1].continues && m.chunks[c+1].started == row+1 {
		c++
	}
	return c
}

// index reads the chunk metadata, the dictionary and the repetition index.
func (m *miniBlock) index(src encoding.Loaded) error {
	meta, err := src.Bytes(m.metaSpan)
	if err != nil {
		return err
	}
	width := 2
	if m.large {
		width = 4
	}
	if len(meta) == 0 || len(meta)%width != 0 {
		return encoding.At(encoding.Corruptf("%d bytes", len(meta)), "chunk metadata", m.metaSpan.Off)
	}
	chunks := make([]chunk, len(meta)/width)
	off, slot := int64(0), int64(0)
	for i := range chunks {
		word := uint32(0)
		if m.large {
			word = binary.LittleEndian.Uint32(meta[i*4:])
		} else {
			word = uint32(binary.LittleEndian.Uint16(meta[i*2:]))
		}
		c := &chunks[i]
		c.off, c.size = off, (int64(word>>4)+1)*8
		c.firstSlot, c.slots = slot, 1<<(word&15)
		if i == len(chunks)-1 {
			c.slots = int(m.slots - slot)
		}
		off, slot = off+c.size, slot+int64(c.slots)
		c.started, c.endStarted = c.firstSlot, slot
		if c.slots < 0 || slot > m.slots || off > m.chunkSpan.Len {
			return encoding.At(encoding.Corruptf("chunk %d goes beyond the page", i), "chunk metadata", m.metaSpan.Off)
		}
	}
	if m.rep != nil {
		if err := m.indexRows(src, chunks); err != nil {
			return encoding.At(err, "repetition index", m.repSpan.Off)
		}
	}
	if m.dict != nil {
		if err := m.loadDictionary(src); err != nil {
			return encoding.At(err, "dictionary", m.dictSpan.Off)
		}
	}
	m.chunks = chunks
	return nil
}

// indexRows reads two numbers per chunk: the rows that end in it, and whether it leaves one open.
func (m *miniBlock) indexRows(src encoding.Loaded, chunks []chunk) error {
	data, err := src.Bytes(m.repSpan)
	if err != nil {
		return err
	}
	if len(data) != len(chunks)*16 {
		return encoding.Corruptf("%d bytes for %d chunks", len(data), len(chunks))
	}
	ended, started, open := uint64(0), int64(0), false
	for i := range chunks {
		c := &chunks[i]
		c.started, c.continues = started, open
		n := binary.LittleEndian.Uint64(data[i*16:])
		open = binary.LittleEndian.Uint64(data[i*16+8:]) > 0
		if n > uint64(m.rows)-ended {
			return encoding.Corruptf("more rows than the page's %d", m.rows)
		}
		ended += n
		started = int64(ended)
		if open {
			started++
		}
		if started < c.started {
			return encoding.Corruptf("chunk %d ends before it begins", i)
		}
		c.endStarted = started
	}
	if ended != uint64(m.rows) || open {
		return encoding.Corruptf("%d rows instead of %d", ended, m.rows)
	}
	return nil
}

func (m *miniBlock) loadDictionary(src encoding.Loaded) error {
	data, err := src.Bytes(m.dictSpan)
	if err != nil {
		return err
	}
	items := encoding.NewValues(m.typ, memory.DefaultAllocator)
	if err := m.dictBlock.decodeBlock(data, m.dictItems, items); err != nil {
		items.Release()
		return err
	}
	if items.Len == 0 && items.Type.Kind == encoding.Bytes {
		items.AppendZero(0)
	}
	m.dict.items = items
	return nil
}

func (m *miniBlock) Read(src encoding.Loaded, r encoding.Range, out *encoding.Leaf) error {
	if r.From >= r.To {
		return nil
	}
	last := m.lastChunkOf(r.To - 1)
	for c := m.chunkOf(r.From); c <= last; c++ {
		if err := m.readChunk(src, c, r, out); err != nil {
			return encoding.At(err, fmt.Sprintf("chunk %d", c), m.chunkSpan.Off+m.chunks[c].off)
		}
	}
	return nil
}

// readChunk appends the part of the rows r that chunk i holds: straight into out when that is all of it.
func (m *miniBlock) readChunk(src encoding.Loaded, i int, r encoding.Range, out *encoding.Leaf) error {
	c := &m.chunks[i]
	first := c.started
	if c.continues {
		first--
	}
	if first >= r.From && c.endStarted <= r.To && i != m.current {
		return m.decodeChunk(src, c, out)
	}
	if i != m.current {
		m.current = -1
		m.scratch.Reset()
		if err := m.decodeChunk(src, c, m.scratch); err != nil {
			return err
		}
		m.current = i
	}
	if m.rep == nil {
		from, to := max(r.From-c.firstSlot, 0), min(r.To-c.firstSlot, int64(c.slots))
		_, err := m.appendEntries(out, m.scratch, int(from), int(to), int(from))
		return err
	}
	from, to := 0, m.scratch.Entries
	if first < r.From {
		from = rowStart(m.scratch.Rep, m.path.MaxRep(), int(r.From-c.started))
	}
	if c.endStarted > r.To {
		to = rowStart(m.scratch.Rep, m.path.MaxRep(), int(r.To-c.started))
	}
	if from > to {
		return encoding.Corruptf("repetition index contradicts the levels")
	}
	slot := 0
	if len(m.scratch.Def) > 0 {
		slot = m.visible(m.scratch.Def[:from], from)
	} else {
		slot = from
	}
	_, err := m.appendEntries(out, m.scratch, from, to, slot)
	return err
}

// decodeChunk appends all of a chunk.
func (m *miniBlock) decodeChunk(src encoding.Loaded, c *chunk, out *encoding.Leaf) error {
	span, err := m.chunkSpan.Sub(c.off, c.size)
	if err != nil {
		return err
	}
	data, err := src.Bytes(span)
	if err != nil {
		return err
	}
	h, err := m.parseHeader(data)
	if err != nil {
		return err
	}
	entries := c.slots
	if m.rep != nil || m.def != nil {
		entries = h.levels
	}
	visible := entries
	var rep, def []uint16
	if m.rep != nil {
		if rep, err = m.decodeLevels(m.rep, h.rep, entries, m.repBuf); err != nil {
			return err
		}
		if err := m.checkRep(rep); err != nil {
			return err
		}
	}
	if m.def != nil {
		if def, err = m.decodeLevels(m.def, h.def, entries, m.defBuf); err != nil {
			return err
		}
		if visible, err = m.mapDef(def); err != nil {
			return err
		}
	}
	if visible != c.slots {
		return encoding.Corruptf("levels give %d slots, the chunk has %d", visible, c.slots)
	}
	out.AppendEntries(entries, rep, def)
	return m.values.decode(h.values[:m.values.buffers()], c.slots, out.Values)
}

func (m *miniBlock) decodeLevels(d blockDecoder, data []byte, n int, buf *encoding.Values) ([]uint16, error) {
	buf.Reset()
	if err := d.decodeBlock(data, n, buf); err != nil {
		return nil, err
	}
	return encoding.Cast[uint16](buf.Data.Bytes())[:n], nil
}

// header is the parsed head of a chunk.
type header struct {
	levels   int
	rep, def []byte
	values   [maxValueBuffers][]byte
}

func (m *miniBlock) parseHeader(data []byte) (header, error) {
	var h header
	width := 2
	if m.large {
		width = 4
	}
	n := m.values.buffers()
	size := 2 + n*width
	if m.rep != nil {
		size += 2
	}
	if m.def != nil {
		size += 2
	}
	if len(data) < size {
		return h, encoding.Corruptf("chunk of %d bytes", len(data))
	}
	h.levels = int(binary.LittleEndian.Uint16(data))
	at, body := 2, pad8(size)
	var err error
	next := func(width int) (part []byte) {
		length := int(binary.LittleEndian.Uint16(data[at:]))
		if width == 4 {
			length = int(binary.LittleEndian.Uint32(data[at:]))
		}
		at += width
		if body > len(data) || length > len(data)-body {
			err = encoding.Corruptf("a part of %d bytes goes beyond the chunk of %d", length, len(data))
			return nil
		}
		part = data[body : body+length]
		body = pad8(body + length)
		return part
	}
	if m.rep != nil {
		h.rep = next(2)
	}
	if m.def != nil {
		h.def = next(2)
	}
	for i := range n {
		h.values[i] = next(width)
	}
	return h, err
}

func pad8(n int) int { return (n + 7) &^ 7 }
