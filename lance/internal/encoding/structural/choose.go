package structural

import (
	"github.com/foldline/foldline/lance/internal/encoding"
)

// choice is how the values of a mini-block page are encoded.
type choice struct {
	encoder    chunkEncoder
	dictionary *dictionaryPage // nil unless dictionary-encoded
	symbols    *fsstPage       // nil unless FSST-compressed
}

func (c *choice) release() {
	if c.dictionary != nil {
		c.dictionary.release()
	}
	if c.symbols != nil {
		c.symbols.coded.Release()
	}
}

// choose picks the smallest encoding of values; a dictionary must save a fifth over the others. Arrow dictionaries
// stay dictionaries: the engine reads nothing else into them.
func choose(v *encoding.Values) *choice {
	if v.Type.IndexBits > 0 {
		c := &choice{dictionary: newDictionary(v)}
		c.encoder, _ = chooseFixed(c.dictionary.indexes)
		return c
	}
	if v.Type.Kind == encoding.Bytes {
		return chooseStrings(v)
	}
	enc, size := chooseFixed(v)
	c := &choice{encoder: enc}
	if dictionaryType(v.Type) && size > minSymbolBytes/8 {
		c.tryDictionary(v, size)
	}
	return c
}

// dictionaryType reports whether fixed-width values may have a dictionary: the narrower ones pack well enough.
func dictionaryType(t encoding.Type) bool {
	return t.Kind == encoding.Fixed && !t.Vector && (t.Bits == 64 || t.Bits == 128)
}

// chooseFixed picks among flat, bit-packed and runs.
func chooseFixed(v *encoding.Values) (chunkEncoder, int) {
	best, size := chunkEncoder(newFlatEncoder(v)), v.Type.Size(v.Len)
	if !packable(v.Type) {
		return best, size
	}
	if n := inlineBytes(v); n < size {
		best, size = &inlineEncoder{values: v}, n
	}
	if n := rleSize(v, 0, v.Len); n < size {
		best, size = &rleEncoder{values: v}, n
	}
	return best, size
}

func (c *choice) tryDictionary(v *encoding.Values, size int) {
	d := newDictionary(v)
	if d == nil {
		return
	}
	if d.size()*5 > size*4 {
		d.release()
		return
	}
	c.dictionary = d
	c.encoder, _ = chooseFixed(d.indexes)
}

func chooseStrings(v *encoding.Values) *choice {
	c := &choice{encoder: newVariableEncoder(v)}
	c.tryDictionary(v, v.Bytes())
	if c.dictionary != nil && c.dictionary.items.Len*fewItems < v.Len {
		return c
	}
	p := newFSSTPage(v, longestString(v))
	if p == nil {
		return c
	}
	if c.dictionary != nil && c.dictionary.size() < p.coded.Bytes() {
		p.coded.Release()
		return c
	}
	c.release()
	return &choice{encoder: &fsstEncoder{variableEncoder: variableEncoder{values: p.coded}, page: p}, symbols: p}
}

// fewItems: a dictionary for this many slots an item is taken without a look at the alternatives.
const fewItems = 8

// longestString is the length of the longest of the values.
func longestString(v *encoding.Values) int {
	if v.Type.OffsetBits == 32 {
		return longestValue(encoding.Cast[int32](v.Offsets.Bytes()))
	}
	return longestValue(encoding.Cast[int64](v.Offsets.Bytes()))
}
