package wal

import (
	"errors"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/cespare/xxhash/v2"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
)

// seedMutations gives the bytes, every truncation at a step, and single
// flipped bits, as the corpus of a decoder.
func seedMutations(add func([]byte), data []byte) {
	add(data)
	for i := 0; i < len(data); i += 1 + len(data)/64 {
		add(data[:i])
		flipped := append([]byte(nil), data...)
		flipped[i] ^= 1 << (i % 8)
		add(flipped)
	}
}

// FuzzDecodeValue decodes hostile values whose checksum and key are right, so
// that everything behind them is met: no panic, no allocation that the bytes do
// not pay for, a *CorruptError, or a batch that every accessor can walk.
func FuzzDecodeValue(f *testing.F) {
	key, value := goldenValue(f)
	seedMutations(func(b []byte) { f.Add(uint64(key), b, true) }, value)
	seedMutations(func(b []byte) { f.Add(uint64(key), b, false) }, value)
	key, value = packedValue(f)
	seedMutations(func(b []byte) { f.Add(uint64(key), b, true) }, value)
	f.Fuzz(func(t *testing.T, key uint64, data []byte, fix bool) {
		if fix && len(data) >= valueFixed {
			data = append([]byte(nil), data...)
			le.PutUint32(data[4:], checksum(data[8:]))
			key = le.Uint64(data[24:])
		}
		b, err := decodeValue(Seq(key), data, airportsLookup)
		if err != nil {
			var c *CorruptError
			require.True(t, errors.As(err, &c), "%v", err)
			return
		}
		for i := range b.Tables {
			require.True(t, array.RecordEqual(b.Tables[i].Record, b.Tables[i].Record))
			require.Len(t, b.Tables[i].Entry, int(b.Tables[i].Record.NumRows()))
		}
		b.Release()
	})
}

// FuzzDecodeColumns decodes hostile columns under a hostile schema.
func FuzzDecodeColumns(f *testing.F) {
	nested := arrow.NewSchema([]arrow.Field{
		{Name: "l", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true},
		{Name: "f", Type: arrow.FixedSizeListOf(3, arrow.PrimitiveTypes.Float32), Nullable: true},
		{Name: "s", Type: arrow.StructOf(arrow.Field{Name: "x", Type: arrow.BinaryTypes.LargeBinary}), Nullable: true},
	}, nil)
	for _, s := range []*arrow.Schema{airports, nested} {
		data, err := encodeSchema(s)
		require.NoError(f, err)
		for _, packed := range []bool{false, true} {
			f.Add(data, []byte{0, 8, 4, 0, 8, 0, 1}, make([]byte, 64), uint32(1), packed)
			f.Add(data, []byte{1, 1, 8, 0, 0, 0, 0, 0, 0}, make([]byte, 64), uint32(1), packed)
		}
	}
	f.Fuzz(func(t *testing.T, schema, header, body []byte, rows uint32, packed bool) {
		s, err := decodeSchema(SchemaID(xxhash.Sum64(schema)), schema)
		if err != nil {
			return
		}
		r := columnsReader{header: &cursor{data: header}, body: &cursor{data: body}}
		if packed {
			r.packed = &unpacked{}
		}
		rec, err := r.record(s, int(rows%1024))
		if err != nil {
			return
		}
		require.True(t, array.RecordApproxEqual(rec, rec, array.WithNaNsEqual(true)))
		rec.Release()
	})
}

// FuzzDecodeSchema: what decodes encodes to the same bytes again, or to the
// canonical ones of an equal schema.
func FuzzDecodeSchema(f *testing.F) {
	for _, dt := range leafTypes {
		data, err := encodeSchema(arrow.NewSchema([]arrow.Field{{Name: "x", Type: dt}}, nil))
		require.NoError(f, err)
		f.Add(data)
	}
	data, err := encodeSchema(airports)
	require.NoError(f, err)
	seedMutations(func(b []byte) { f.Add(b) }, data)
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := decodeSchema(SchemaID(xxhash.Sum64(data)), data)
		if err != nil {
			require.ErrorIs(t, err, ErrCorrupt)
			return
		}
		again, err := encodeSchema(s)
		require.NoError(t, err)
		back, err := decodeSchema(SchemaID(xxhash.Sum64(again)), again)
		require.NoError(t, err)
		require.True(t, s.Equal(back))
	})
}

// FuzzDecodeRecords is for the small records: identity, dedupe group, released.
func FuzzDecodeRecords(f *testing.F) {
	seedMutations(func(b []byte) { f.Add(b) }, goldenIdentity().encode())
	seedMutations(func(b []byte) { f.Add(b) }, encodeDedupe(goldenGroup()))
	seedMutations(func(b []byte) { f.Add(b) }, releasedRecord{through: 9}.encode())
	seedMutations(func(b []byte) { f.Add(b) }, encodeLoss(9))
	seedMutations(func(b []byte) { f.Add(b) }, encodeImported(&Origin{1, "x"}, encodeDedupe(goldenGroup())))
	seedMutations(func(b []byte) { f.Add(b) }, (&lineage{logs: []Origin{{1, "x"}, {2, "y"}}}).encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		fuzzImported(t, data)
		if id, err := decodeIdentity(data); err == nil {
			require.Equal(t, data, id.encode())
		}
		if len(data) >= dedupeFixed {
			fixed := append([]byte(nil), data...)
			le.PutUint32(fixed[4:], checksum(fixed[8:]))
			if g, err := decodeDedupe(Seq(le.Uint64(fixed[20:])), fixed); err == nil {
				back, err := decodeDedupe(g.last, encodeDedupe(g))
				require.NoError(t, err)
				require.Equal(t, g, back)
			} else {
				require.ErrorIs(t, err, ErrCorrupt)
			}
		}
		if since, err := decodeLoss(data); err == nil {
			require.Equal(t, data, encodeLoss(since))
		}
		if r, err := decodeReleased(data); err == nil {
			require.Equal(t, data, r.encode())
		}
	})
}

// fuzzImported decodes the records of an import with the right checksum.
func fuzzImported(t *testing.T, data []byte) {
	if len(data) < importedFixed {
		return
	}
	fixed := append([]byte(nil), data...)
	le.PutUint32(fixed[4:], checksum(fixed[8:]))
	if g, err := decodeStored(storedKey{kindImported, 1}, fixed); err == nil {
		back, err := decodeStored(storedKey{kindImported, 1}, encodeImported(g.origin, encodeDedupe(&g.dedupeGroup)))
		require.NoError(t, err)
		require.Equal(t, g, back)
	} else {
		require.ErrorIs(t, err, ErrCorrupt)
	}
	le.PutUint32(fixed, checksum(fixed[4:]))
	if n, err := decodeLineage(fixed); err == nil {
		back, err := decodeLineage(n.encode())
		require.NoError(t, err)
		require.Equal(t, n, back)
	} else {
		require.ErrorIs(t, err, ErrCorrupt)
	}
}

// FuzzFrames feeds a reader one frame with hostile headers.
func FuzzFrames(f *testing.F) {
	f.Add("7", "1/1", "00000000", []byte{})
	f.Add("7", "2/3", "c79e0e4c", []byte("x"))
	f.Add("18446744073709551616", "0/0", "", []byte("{"))
	f.Fuzz(func(t *testing.T, last, part, crc string, data []byte) {
		msg := nats.NewMsg("x")
		msg.Data = data
		msg.Header.Set(headerLast, last)
		msg.Header.Set(headerPart, part)
		msg.Header.Set(headerCRC, crc)
		var a assembler
		whole, err := a.add(msg)
		require.False(t, whole && err != nil)
		require.Error(t, remoteError(data))
		if w, err := decodeRequest(data); err == nil {
			require.LessOrEqual(t, w.read().MaxBytes, int64(maxReplyBytes))
		}
	})
}
