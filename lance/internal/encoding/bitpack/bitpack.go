// Package bitpack packs blocks of 1,024 unsigned integers into words of their own width, in the transposed
// order of the FastLanes layout that Lance uses. Functions are pure and safe for concurrent use.
package bitpack

import (
	"math/bits"
	"unsafe"
)

// Block is the number of values of a packed block.
const Block = 1024

// Word is an integer width that can be packed.
type Word interface {
	uint8 | uint16 | uint32 | uint64
}

// order is the layout's order of the eight groups of rows.
var order = [8]int{0, 4, 2, 6, 1, 5, 3, 7}

func wordBits[T Word]() int {
	var zero T
	return int(unsafe.Sizeof(zero)) * 8
}

// Words is the number of words that a block takes at the given width.
func Words[T Word](width int) int { return width * Block / wordBits[T]() }

// start is where the lanes of a row lie among the values; they are neighbours.
func start(row int) int { return order[row/8]*16 + row%8*128 }

// Pack writes a block of 1,024 values, each less than 1<<width, into the Words(width) words of out.
func Pack[T Word](out, in []T, width int) {
	size := wordBits[T]()
	lanes := Block / size
	out = out[:width*lanes]
	clear(out)
	if width == 0 {
		return
	}
	in = in[:Block]
	for row := range size {
		src := in[start(row):][:lanes]
		bit := row * width
		shift := bit % size
		dst := out[bit/size*lanes:][:lanes]
		for i, v := range src {
			dst[i] |= v << shift
		}
		if shift+width > size {
			next := out[(bit/size+1)*lanes:][:lanes]
			for i, v := range src {
				next[i] |= v >> (size - shift)
			}
		}
	}
}

// Unpack reads the Words(width) words of in and writes the 1,024 values of out.
func Unpack[T Word](out, in []T, width int) {
	size := wordBits[T]()
	lanes := Block / size
	out = out[:Block]
	if width == 0 {
		clear(out)
		return
	}
	in = in[:width*lanes]
	mask := T(1)<<(width-1)<<1 - 1
	for row := range size {
		dst := out[start(row):][:lanes]
		bit := row * width
		shift := bit % size
		src := in[bit/size*lanes:][:lanes]
		if shift+width <= size {
			for i, v := range src {
				dst[i] = v >> shift & mask
			}
			continue
		}
		next := in[(bit/size+1)*lanes:][:lanes]
		back := size - shift
		for i, v := range src {
			dst[i] = (v>>shift | next[i]<<back) & mask
		}
	}
}

// Width is the number of bits that the largest of the values needs.
func Width[T Word](values []T) int {
	var all T
	for _, v := range values {
		all |= v
	}
	return bits.Len64(uint64(all))
}
