package lance

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/foldline/foldline/lance/internal/pb"
)

// KeyFilter is the fingerprint of the keys that an Update inserts: a commit that carries one conflicts with every commit
// since its read version that may have inserted one of them. Either Exact or Bloom holds the keys; neither means that
// no key was inserted.
type KeyFilter struct {
	// FieldIDs are the primary key's field ids in key order.
	FieldIDs []int32
	// Exact holds the XXH64 (seed 0) hashes of the Lance key bytes of the inserted keys.
	Exact []uint64
	// Bloom replaces Exact for many keys.
	Bloom *Bloom
}

// IsExact reports whether the filter has the exact form.
func (f *KeyFilter) IsExact() bool { return f.Bloom == nil }

// Has returns a membership test by key hash; false is certain, true is certain for the exact form. A Bloom filter without a whole
// block answers true for everything.
func (f *KeyFilter) Has() func(hash uint64) bool {
	if !f.IsExact() {
		if len(f.Bloom.Bits) < 32 {
			return func(uint64) bool { return true }
		}
		return f.Bloom.Has
	}
	set := make(map[uint64]struct{}, len(f.Exact))
	for _, h := range f.Exact {
		set[h] = struct{}{}
	}
	return func(hash uint64) bool { _, ok := set[hash]; return ok }
}

// Parameters of the only Bloom filter shape that the engine writes, and compares without a conflict.
const (
	BloomBytes       = 32768
	BloomItems       = 8192
	BloomProbability = 0.00057
)

// bloomSalt are the odd multipliers of the split-block Bloom filter, the same as Parquet's.
var bloomSalt = [8]uint32{
	0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d, 0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31,
}

// Bloom is a split-block Bloom filter: blocks of eight 32-bit words, one bit of each word set per key. It may be read
// concurrently; Add needs exclusive use.
type Bloom struct {
	// Bits is the bitmap, 32 bytes per block.
	Bits []byte
	// NumBits, Items and Probability are what the message states; 0 means the engine's defaults.
	NumBits     uint32
	Items       uint64
	Probability float64
}

// NewBloom returns an empty filter of the engine's fixed shape.
func NewBloom() *Bloom {
	return &Bloom{Bits: make([]byte, BloomBytes), NumBits: BloomBytes * 8, Items: BloomItems, Probability: BloomProbability}
}

// Add inserts the hash of a key.
func (b *Bloom) Add(hash uint64) {
	block := b.block(hash)
	for i, salt := range bloomSalt {
		word := block[4*i:]
		binary.LittleEndian.PutUint32(word, binary.LittleEndian.Uint32(word)|bloomBit(hash, salt))
	}
}

// Has reports whether the key with this hash may have been added; false is certain.
func (b *Bloom) Has(hash uint64) bool {
	if len(b.Bits) < 32 {
		return false
	}
	block := b.block(hash)
	for i, salt := range bloomSalt {
		if binary.LittleEndian.Uint32(block[4*i:])&bloomBit(hash, salt) == 0 {
			return false
		}
	}
	return true
}

func (b *Bloom) block(hash uint64) []byte {
	blocks := uint64(len(b.Bits) / 32)
	at := (hash >> 32) * blocks >> 32
	return b.Bits[at*32 : at*32+32]
}

func bloomBit(hash uint64, salt uint32) uint32 { return 1 << (uint32(hash) * salt >> 27) }

// conflicts applies the engine's comparison of two filters: ours is being committed, theirs has been. A missing filter of
// theirs always conflicts; two Bloom filters conflict when they share a single bit.
func (f *KeyFilter) conflicts(theirs *KeyFilter) (bool, string) {
	switch {
	case theirs == nil:
		return true, "theirs inserts rows without a key filter"
	case !slices.Equal(f.FieldIDs, theirs.FieldIDs):
		return true, "key filters of different fields"
	case f.IsExact() != theirs.IsExact():
		return true, "key filters of different forms"
	case f.IsExact():
		return f.sharesHash(theirs), "same key inserted"
	}
	return f.Bloom.conflicts(theirs.Bloom)
}

func (f *KeyFilter) sharesHash(theirs *KeyFilter) bool {
	small, large := f.Exact, theirs.Exact
	if len(small) > len(large) {
		small, large = large, small
	}
	set := make(map[uint64]struct{}, len(small))
	for _, h := range small {
		set[h] = struct{}{}
	}
	for _, h := range large {
		if _, ok := set[h]; ok {
			return true
		}
	}
	return false
}

func (b *Bloom) conflicts(theirs *Bloom) (bool, string) {
	ourItems, ourProbability := b.parameters()
	theirItems, theirProbability := theirs.parameters()
	if ourItems != theirItems || !(math.Abs(ourProbability-theirProbability) <= 0x1p-52) || len(b.Bits) != len(theirs.Bits) {
		return true, "key filters of different shapes"
	}
	for i, bits := range b.Bits {
		if bits&theirs.Bits[i] != 0 {
			return true, "key filters share a bit"
		}
	}
	return false, ""
}

func (b *Bloom) parameters() (items uint64, probability float64) {
	items, probability = b.Items, b.Probability
	if items == 0 {
		items = BloomItems
	}
	if probability == 0 {
		probability = BloomProbability
	}
	return items, probability
}

func (f *KeyFilter) toProto() *pb.KeyExistenceFilter {
	if f == nil {
		return nil
	}
	out := &pb.KeyExistenceFilter{FieldIds: f.FieldIDs}
	if f.IsExact() {
		out.Data = &pb.KeyExistenceFilter_Exact_{Exact: &pb.KeyExistenceFilter_Exact{KeyHashes: f.Exact}}
		return out
	}
	out.Data = &pb.KeyExistenceFilter_Bloom_{Bloom: &pb.KeyExistenceFilter_Bloom{
		Bitmap: f.Bloom.Bits, NumBits: f.Bloom.NumBits, NumberOfItems: f.Bloom.Items, Probability: f.Bloom.Probability,
	}}
	return out
}

func keyFilterOf(m *pb.KeyExistenceFilter) *KeyFilter {
	if m == nil {
		return nil
	}
	out := &KeyFilter{FieldIDs: m.GetFieldIds(), Exact: m.GetExact().GetKeyHashes()}
	if b := m.GetBloom(); b != nil {
		out.Bloom = &Bloom{
			Bits: b.GetBitmap(), NumBits: b.GetNumBits(), Items: b.GetNumberOfItems(), Probability: b.GetProbability(),
		}
	}
	return out
}
