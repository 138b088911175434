package fsst

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"
	"sync"
)

// ids is how many indexes a counter has: the codes of symbols, and 256+b for the escaped byte b.
const ids = 512

// counter counts how often symbols, and pairs of them, are used. Counts of pairs are at most two for each byte of a sample, so they fit.
type counter struct {
	single [ids]int
	pair   [ids * ids]uint16
	pairs  []uint32 // that were counted
	gains  gains
}

var counters = sync.Pool{New: func() any { return new(counter) }}

func (c *counter) reset() {
	clear(c.single[:])
	for _, p := range c.pairs {
		c.pair[p] = 0
	}
	c.pairs = c.pairs[:0]
}

func (c *counter) addPair(a, b int) {
	p := uint32(a*ids + b)
	if c.pair[p] == 0 {
		c.pairs = append(c.pairs, p)
	}
	c.pair[p]++
}

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
			c.addPair(last, id)
			if length > 1 {
				c.addPair(last, 256+int(v[0]))
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
	c.gains.reset(ids + len(c.pairs))
	for id, n := range c.single {
		if n > 0 {
			s := symbolOf(e, id)
			weight := n
			if s.length == 1 {
				weight *= 8 // a byte without a symbol costs two
			}
			c.gains.add(s, weight*int(s.length))
		}
	}
	if !last {
		for _, p := range c.pairs {
			a, b := symbolOf(e, int(p/ids)), symbolOf(e, int(p%ids))
			if a.length < maxSymbolLen {
				s := join(a, b)
				c.gains.add(s, int(c.pair[p])*int(s.length))
			}
		}
	}
	return c.gains.rank(4 * maxSymbols)
}

// join makes the symbol of two neighbours, cut at eight bytes.
func join(a, b symbol) symbol {
	length := min(a.length+b.length, maxSymbolLen)
	return symbol{bytes: (a.bytes | b.bytes<<(8*a.length)) & mask(length), length: length}
}

// gains adds up what symbols save. It is a table of open addressing, at most half full.
type gains struct {
	slots []ranked // gain 0 is empty
	shift int
	found []ranked
}

type ranked struct {
	symbol
	gain int
}

// reset makes room for n symbols.
func (g *gains) reset(n int) {
	size := 1 << bits.Len(uint(2*n))
	if size > cap(g.slots) {
		g.slots = make([]ranked, size)
	}
	g.slots = g.slots[:size]
	clear(g.slots)
	g.shift = 64 - bits.Len(uint(size-1))
}

func (g *gains) add(s symbol, gain int) {
	const fibonacci = 0x9e3779b97f4a7c15
	i := int((s.bytes ^ uint64(s.length)<<56) * fibonacci >> g.shift)
	for g.slots[i].gain != 0 && g.slots[i].symbol != s {
		i = (i + 1) & (len(g.slots) - 1)
	}
	g.slots[i] = ranked{s, g.slots[i].gain + gain}
}

// rank returns the most symbols that save most, best first; the order is total, so that equal pages make equal files. Only what can be
// among them is sorted.
func (g *gains) rank(most int) []symbol {
	g.found = g.found[:0]
	least := g.threshold(most)
	for _, r := range g.slots {
		if r.gain >= least {
			g.found = append(g.found, r)
		}
	}
	slices.SortFunc(g.found, func(a, b ranked) int {
		if a.gain != b.gain {
			return cmp.Compare(b.gain, a.gain)
		}
		if a.bytes != b.bytes {
			return cmp.Compare(a.bytes, b.bytes)
		}
		return cmp.Compare(a.length, b.length)
	})
	out := make([]symbol, min(len(g.found), most))
	for i := range out {
		out[i] = g.found[i].symbol
	}
	return out
}

// threshold is a gain, at least 1, that no more symbols than are wanted exceed, or few more that have the same.
func (g *gains) threshold(most int) int {
	var with [1 << 10]int
	for _, r := range g.slots {
		with[min(r.gain, len(with)-1)]++
	}
	sum := 0
	for gain := len(with) - 1; gain > 1; gain-- {
		if sum += with[gain]; sum >= most {
			return gain
		}
	}
	return 1
}
