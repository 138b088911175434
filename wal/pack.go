package wal

import (
	"errors"
	"fmt"
	"slices"

	"github.com/klauspost/compress/s2"
)

// Column buffers are packed one by one, as blocks of Snappy (FORMAT.md, "packed buffers"): the log's bytes are written
// twice (log, table), synced, and sent to the folder, and a column shrinks where rows would not. Buffers that gain
// little stay as they are, and readers refer to them in place.
const (
	// minPacked is the least buffer that is worth a block.
	minPacked = 1 << 10
	// packSample is how much of a large buffer is tried first.
	packSample = 4 << 10
	// maxKeptPack bounds the scratch that is kept between values.
	maxKeptPack = 2 * MaxValueBytes
	// maxUnpack bounds how much longer a block's content is than the block: the most that an element of Snappy writes is
	// 64 bytes, from a copy of 3. So what a reader allocates is paid for by bytes that it holds.
	maxUnpack = 64
	minCopy   = 3
)

// storedBuffer is a column buffer as it is and, when that is worth it, as a block.
type storedBuffer struct {
	raw    []byte
	packed []byte // nil: stored as it is
}

func (s storedBuffer) bytes() []byte {
	if s.packed != nil {
		return s.packed
	}
	return s.raw
}

// packer packs the buffers of one value at a time; its blocks are valid until reset.
type packer struct {
	scratch []byte
}

func (p *packer) reset() {
	if p.scratch = p.scratch[:0]; cap(p.scratch) > maxKeptPack {
		p.scratch = nil
	}
}

// pack gives a buffer as it is to be stored.
func (p *packer) pack(raw []byte) storedBuffer {
	s := storedBuffer{raw: raw}
	if len(raw) < minPacked || len(raw) > 2*packSample && p.block(raw[:packSample]) == nil {
		return s
	}
	if s.packed = p.block(raw); s.packed != nil {
		p.scratch = p.scratch[:len(p.scratch)+len(s.packed)]
	}
	return s
}

// block makes a block behind the scratch in use, nil when it saves less than an eighth.
func (p *packer) block(raw []byte) []byte {
	p.scratch = slices.Grow(p.scratch, s2.MaxEncodedLen(len(raw)))
	free := p.scratch[len(p.scratch):cap(p.scratch)]
	out := s2.EncodeSnappy(free, raw)
	if len(out) > len(raw)-len(raw)/8 {
		return nil
	}
	return out[:len(out):len(out)]
}

// unpack gives the content of a block, which has to be size bytes.
func unpack(block []byte, size int) ([]byte, error) {
	n, err := s2.DecodedLen(block)
	switch {
	case err != nil:
		return nil, fmt.Errorf("packed buffer: %w", err)
	case n != size:
		return nil, fmt.Errorf("packed buffer of %d bytes, want %d", n, size)
	case n/maxUnpack > len(block)/minCopy:
		return nil, errors.New("packed buffer is longer than its block can say")
	}
	out, err := s2.Decode(make([]byte, size), block)
	if err != nil {
		return nil, fmt.Errorf("packed buffer: %w", err)
	}
	return out, nil
}
