package fsst

import (
	"cmp"
	"encoding/binary"
	"slices"
)

const (
	sampleTarget = 16 << 10
	generations  = 5
	hashBits     = 11
	maxSymbolLen = 8
)

// Encoder codes values with a symbol table that Train has built. It is immutable and safe for concurrent use.
type Encoder struct {
	symbols []symbol
	// short finds symbols of one and two bytes by the next two bytes; long those of three and more by a hash
	// of the next three. An entry is a code with the symbol's length, or none.
	short [1 << 16]entry
	long  [1 << hashBits]longEntry
	one   [256]entry
}

type symbol struct {
	bytes  uint64 // first byte lowest
	length uint8
}

type entry struct {
	code   uint8
	length uint8 // 0 for none
}

type longEntry struct {
	bytes, mask uint64
	entry
}

func hash3(word uint64) uint64 {
	x := (word & 0xffffff) * 2971215073
	return (x ^ x>>15) & (1<<hashBits - 1)
}

func mask(length uint8) uint64 { return ^uint64(0) >> (64 - 8*uint64(length)) }

// newEncoder indexes up to 255 symbols; where two compete for a hash slot the earlier one stays, so the caller
// puts the better ones first. Symbols that found no place are dropped.
func newEncoder(symbols []symbol) *Encoder {
	e := &Encoder{}
	for _, s := range symbols {
		if len(e.symbols) == maxSymbols {
			break
		}
		if s.length > 2 && e.long[hash3(s.bytes)].length != 0 {
			continue
		}
		e.place(s)
	}
	e.fillShort()
	return e
}

func (e *Encoder) place(s symbol) {
	en := entry{code: uint8(len(e.symbols)), length: s.length}
	e.symbols = append(e.symbols, s)
	switch s.length {
	case 1:
		e.one[s.bytes&0xff] = en
	case 2:
		e.short[s.bytes&0xffff] = en
	default:
		e.long[hash3(s.bytes)] = longEntry{bytes: s.bytes, mask: mask(s.length), entry: en}
	}
}

// fillShort lets every pair of bytes without a symbol of its own lead to the symbol of its first byte.
func (e *Encoder) fillShort() {
	for i := range e.short {
		if e.short[i].length == 0 {
			e.short[i] = e.one[i&0xff]
		}
	}
}

// next finds the longest symbol that begins the left bytes of word.
func (e *Encoder) next(word uint64, left int) entry {
	if l := &e.long[hash3(word)]; l.length != 0 && word&l.mask == l.bytes && int(l.length) <= left {
		return l.entry
	}
	if left >= 2 {
		return e.short[word&0xffff]
	}
	return e.one[word&0xff]
}

// Table serializes the symbol table.
func (e *Encoder) Table() []byte {
	out := make([]byte, TableBytes)
	n := len(e.symbols)
	binary.LittleEndian.PutUint64(out, uint64(magic)<<32|compressedFlag|uint64(n))
	for i, s := range e.symbols {
		binary.LittleEndian.PutUint64(out[8+i*8:], s.bytes)
		out[8+n*8+i] = s.length
	}
	return out
}

// Append appends the codes of value to dst.
func (e *Encoder) Append(dst, value []byte) []byte {
	at := len(dst)
	if need := at + 2*len(value); need > cap(dst) {
		dst = append(make([]byte, 0, max(need, 2*cap(dst))), dst...)
	}
	dst = dst[:cap(dst)]
	for len(value) >= 8 {
		word := binary.LittleEndian.Uint64(value)
		en := e.next(word, 8)
		dst[at] = en.code
		if en.length == 0 {
			dst[at], dst[at+1] = escape, byte(word)
			at += 2
			value = value[1:]
			continue
		}
		at++
		value = value[en.length:]
	}
	var tail [8]byte
	copy(tail[:], value)
	word := binary.LittleEndian.Uint64(tail[:])
	for left := len(value); left > 0; {
		en := e.next(word, left)
		if en.length == 0 {
			dst[at], dst[at+1] = escape, byte(word)
			at += 2
			word, left = word>>8, left-1
			continue
		}
		dst[at] = en.code
		at++
		word, left = word>>(8*en.length), left-int(en.length)
	}
	return dst[:at]
}

// Train builds a symbol table from values; value(i) gives the i-th of n. It looks at a sample of about 16 KiB.
func Train(n int, value func(i int) []byte) *Encoder {
	sample := takeSample(n, value)
	e := newEncoder(nil)
	for g := range generations {
		c := newCounter(len(e.symbols))
		for _, v := range sample {
			c.count(e, v)
		}
		e = newEncoder(c.best(e, g == generations-1))
	}
	return e
}

// takeSample picks values here and there; even distances would see only some digits of counters. The picks are
// the same for the same number of values, so that equal pages make equal files.
func takeSample(n int, value func(i int) []byte) [][]byte {
	var sample [][]byte
	total := 0
	state := uint64(n)
	for picks := 0; picks < 2*n && total < sampleTarget; picks++ {
		state = state*6364136223846793005 + 1442695040888963407
		v := value(int(state >> 33 % uint64(n)))
		v = v[:min(len(v), sampleTarget/4)]
		total += len(v)
		sample = append(sample, v)
	}
	return sample
}

// counter counts how often symbols, and pairs of them, are used. Index 256+b stands for the escaped byte b.
type counter struct {
	single [512]int
	pair   map[uint32]int
}

func newCounter(int) *counter { return &counter{pair: make(map[uint32]int, 1<<12)} }

func (c *counter) count(e *Encoder, v []byte) {
	last := -1
	for len(v) > 0 {
		var tail [8]byte
		copy(tail[:], v)
		word := binary.LittleEndian.Uint64(tail[:])
		en := e.next(word, len(v))
		id, length := int(en.code), int(en.length)
		if length == 0 {
			id, length = 256+int(v[0]), 1
		}
		c.single[id]++
		if last >= 0 {
			c.pair[uint32(last)<<16|uint32(id)]++
			if length > 1 {
				c.pair[uint32(last)<<16|256|uint32(v[0])]++
			}
		}
		last = id
		v = v[length:]
	}
}

// symbolOf gives the symbol that a counter's index stands for.
func symbolOf(e *Encoder, id int) symbol {
	if id >= 256 {
		return symbol{bytes: uint64(id - 256), length: 1}
	}
	return e.symbols[id]
}

// best returns the symbols and pairs of symbols that save most, best first.
func (c *counter) best(e *Encoder, last bool) []symbol {
	gain := make(map[symbol]int, 1<<10)
	for id, n := range c.single {
		if n > 0 {
			s := symbolOf(e, id)
			weight := n
			if s.length == 1 {
				weight *= 8 // a byte without a symbol costs two
			}
			gain[s] += weight * int(s.length)
		}
	}
	if !last {
		for ids, n := range c.pair {
			a, b := symbolOf(e, int(ids>>16)), symbolOf(e, int(ids&0xffff))
			if a.length < maxSymbolLen {
				s := join(a, b)
				gain[s] += n * int(s.length)
			}
		}
	}
	return rank(gain)[:min(len(gain), 4*maxSymbols)]
}

// rank orders symbols by what they save, most first; the order is total, so that equal pages make equal files.
func rank(gain map[symbol]int) []symbol {
	type ranked struct {
		symbol
		gain int
	}
	byGain := make([]ranked, 0, len(gain))
	for s, n := range gain {
		byGain = append(byGain, ranked{s, n})
	}
	slices.SortFunc(byGain, func(a, b ranked) int {
		if a.gain != b.gain {
			return cmp.Compare(b.gain, a.gain)
		}
		if a.bytes != b.bytes {
			return cmp.Compare(a.bytes, b.bytes)
		}
		return cmp.Compare(a.length, b.length)
	})
	out := make([]symbol, len(byGain))
	for i, r := range byGain {
		out[i] = r.symbol
	}
	return out
}

// join makes the symbol of two neighbours, cut at eight bytes.
func join(a, b symbol) symbol {
	length := min(a.length+b.length, maxSymbolLen)
	return symbol{bytes: (a.bytes | b.bytes<<(8*a.length)) & mask(length), length: length}
}
