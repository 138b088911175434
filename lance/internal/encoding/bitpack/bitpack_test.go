package bitpack

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func roundTrip[T Word](t *testing.T) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	size := wordBits[T]()
	for width := 0; width <= size; width++ {
		in := make([]T, Block)
		for i := range in {
			if width > 0 {
				in[i] = T(r.Uint64()) >> (size - width)
			}
		}
		packed := make([]T, Words[T](width))
		Pack(packed, in, width)
		out := make([]T, Block)
		Unpack(out, packed, width)
		if !slices.Equal(in, out) {
			t.Fatalf("%d bits in words of %d: differs", width, size)
		}
	}
}

func TestRoundTripOfEveryWidth(t *testing.T) {
	roundTrip[uint8](t)
	roundTrip[uint16](t)
	roundTrip[uint32](t)
	roundTrip[uint64](t)
}

// The layout's definition, written down bit by bit, against the loop over lanes.
func TestPackFollowsTheDefinition(t *testing.T) {
	const size, width = 16, 5
	in := make([]uint16, Block)
	for i := range in {
		in[i] = uint16(i*7) % (1 << width)
	}
	want := make([]uint16, Words[uint16](width))
	lanes := Block / size
	for lane := range lanes {
		for row := range size {
			v := in[order[row/8]*16+row%8*128+lane]
			for b := range width {
				bit := row*width + b
				want[bit/size*lanes+lane] |= v >> b & 1 << (bit % size)
			}
		}
	}
	got := make([]uint16, len(want))
	Pack(got, in, width)
	if !slices.Equal(got, want) {
		t.Fatal("packed words differ from the definition")
	}
}

func BenchmarkUnpack(b *testing.B) {
	in, out := make([]uint32, Words[uint32](13)), make([]uint32, Block)
	b.SetBytes(Block * 4)
	for range b.N {
		Unpack(out, in, 13)
	}
}
