package wal

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/stretchr/testify/require"
)

// TestPack: what repeats is packed and comes back; what is small or random stays as it is.
func TestPack(t *testing.T) {
	random := make([]byte, 64<<10)
	rng := rand.NewChaCha8([32]byte{1})
	_, err := rng.Read(random)
	require.NoError(t, err)
	var p packer
	for name, c := range map[string]struct {
		raw    []byte
		packed bool
	}{
		"small": {make([]byte, minPacked-1), false}, "least": {make([]byte, minPacked), true}, "random": {random, false},
		"random behind a good sample": {append(make([]byte, packSample), random...), false},
		"large":                       {bytes.Repeat([]byte("0123456789abcdef"), 1<<20), true},
	} {
		s := p.pack(c.raw)
		require.Equal(t, c.packed, s.packed != nil, name)
		if !c.packed {
			require.Equal(t, c.raw, s.bytes(), name)
			continue
		}
		out, err := unpack(s.bytes(), len(c.raw))
		require.NoError(t, err, name)
		require.Equal(t, c.raw, out, name)
	}
	p.reset()
	require.Zero(t, cap(p.scratch), "the scratch of a large value is not kept")
}

// TestPackedBlocksLieNextToEachOther: packing a buffer leaves the blocks before it alone.
func TestPackedBlocksLieNextToEachOther(t *testing.T) {
	var p packer
	var raws [][]byte
	var stored []storedBuffer
	for i := range 64 {
		raws = append(raws, bytes.Repeat([]byte{byte(i), 1, 2, byte(i)}, 300+i*40))
		stored = append(stored, p.pack(raws[i]))
	}
	for i, s := range stored {
		out, err := unpack(s.packed, len(raws[i]))
		require.NoError(t, err)
		require.Equal(t, raws[i], out)
	}
}

// TestUnpackRefuses: report C152 for the log: a few bytes do not make a reader allocate much.
func TestUnpackRefuses(t *testing.T) {
	good := s2.EncodeSnappy(nil, make([]byte, 4096))
	bomb := append([]byte{0x80, 0x80, 0x80, 0x20}, good[2:]...) // says 64 MiB
	for name, c := range map[string]struct {
		block []byte
		size  int
	}{
		"other size": {good, 4095}, "bomb": {bomb, 64 << 20}, "cut": {good[:len(good)-1], 4096}, "no length": {bytes.Repeat([]byte{0xff}, 11), 4096},
	} {
		allocated := testing.AllocsPerRun(1, func() {
			_, err := unpack(c.block, c.size)
			require.Error(t, err, name)
		})
		require.Less(t, allocated, 50.0, name)
	}
}
