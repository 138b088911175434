package wal

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/cockroachdb/pebble/v2/vfs"
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

// TestBytesOfARow: what a row costs on disk cannot grow unseen: the id and three numbers or so of the columns, the text packed, and a share of the value's header.
func TestBytesOfARow(t *testing.T) {
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.BinaryTypes.String}, {Name: "n", Type: arrow.PrimitiveTypes.Int64}, {Name: "text", Type: arrow.BinaryTypes.String},
	}, nil))
	defer b.Release()
	const rows = 3000
	for i := range rows {
		b.Field(0).(*array.StringBuilder).Append(fmt.Sprintf("%032d", i))
		b.Field(1).(*array.Int64Builder).Append(int64(i))
		b.Field(2).(*array.StringBuilder).Append(strings.Repeat("0123456789abcdef", 6))
	}
	record := b.NewRecord()
	defer record.Release()
	r := openLog(t, testOptions(vfs.NewMem()))
	entry := Entry{Rows: []Rows{{Table: 1, Record: record, Ops: []Op{OpUpsert}}}}
	before := r.db.Metrics().WAL.BytesWritten
	r.put(entry)
	logged := float64(r.db.Metrics().WAL.BytesWritten-before) / rows
	t.Logf("%.1f bytes of log a row of %d", logged, 32+8+96)
	require.Less(t, logged, 32.0)
}
