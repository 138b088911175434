package fsst

import (
	"encoding/binary"
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
	e.index(symbols)
	return e
}

// index makes e, used before or not, what newEncoder makes.
func (e *Encoder) index(symbols []symbol) {
	e.symbols = e.symbols[:0]
	clear(e.one[:])
	clear(e.long[:])
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
}

func (e *Encoder) place(s symbol) {
	en := entry{code: uint8(len(e.symbols)), length: s.length}
	e.symbols = append(e.symbols, s)
	switch s.length {
	case 1:
		e.one[s.bytes&0xff] = en
	case 2: // fillShort
	default:
		e.long[hash3(s.bytes)] = longEntry{bytes: s.bytes, mask: mask(s.length), entry: en}
	}
}

// fillShort indexes the symbols of two bytes and lets every other pair of bytes lead to the symbol of its first byte.
func (e *Encoder) fillShort() {
	for high := range 256 {
		copy(e.short[high<<8:], e.one[:])
	}
	for code, s := range e.symbols {
		if s.length == 2 {
			e.short[s.bytes&0xffff] = entry{code: uint8(code), length: 2}
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
	c := counters.Get().(*counter)
	defer counters.Put(c)
	e, spare := newEncoder(nil), &Encoder{}
	for g := range generations {
		c.reset()
		for _, v := range sample {
			c.count(e, v)
		}
		spare.index(c.best(e, g == generations-1))
		e, spare = spare, e
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
