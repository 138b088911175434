package wal

import (
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares bytes with testdata/<name>.hex.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name+".hex")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(hex.Dump(got)), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), hex.Dump(got), "format changed: a stored log would not be read back")
}

// goldenBytes reads a golden file back into bytes.
func goldenBytes(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".hex"))
	require.NoError(t, err)
	var out []byte
	for line := range strings.Lines(string(text)) {
		if len(line) < 60 {
			continue
		}
		b, err := hex.DecodeString(strings.ReplaceAll(line[10:58], " ", ""))
		require.NoError(t, err)
		out = append(out, b...)
	}
	return out
}

func goldenIdentity() identity {
	return identity{Graph: "demo", Lane: 3, Incarnation: "01ARZ3NDEKTSV4RRFFQ69G5FAV", Created: 1_700_000_000_000_000}
}

func goldenGroup() *dedupeGroup {
	return &dedupeGroup{
		first: NewSeq(2, 5), last: NewSeq(2, 7), time: 1_700_000_000_000_000,
		records: []dedupeRecord{
			{seq: NewSeq(2, 5), rows: 2, digest: [32]byte{1, 2, 3}, id: "order-1"},
			{seq: NewSeq(2, 7), rows: 300, digest: [32]byte{0xff}, id: "order-2"},
		},
	}
}

// goldenValue builds a value of two entries over two tables.
func goldenValue(t testing.TB) (key Seq, data []byte) {
	return encodedValue(t, []Entry{
		{MsgID: "order-1", Trace: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", Rows: []Rows{
			{Table: 1, Record: airportRows(1, 3), Ops: []Op{OpUpsert, OpUpsert, OpDelete}},
			{Table: 7, Record: airportRows(5, 1), Ops: []Op{OpInsert}},
		}},
		{Rows: []Rows{{Table: 1, Record: airportRows(9, 2), Ops: []Op{OpUpsert}}}},
	})
}

// packedValue builds a value with buffers that are packed and some that are not.
func packedValue(t testing.TB) (key Seq, data []byte) {
	return encodedValue(t, []Entry{
		{Rows: []Rows{{Table: 1, Record: airportRows(1, 700), Ops: []Op{OpUpsert}}}},
		{Rows: []Rows{{Table: 7, Record: airportRows(1, 3), Ops: []Op{OpUpsert}}}},
	})
}

func encodedValue(t testing.TB, entries []Entry) (key Seq, data []byte) {
	t.Helper()
	schema, err := newSchemaState(airports)
	require.NoError(t, err)
	b := newValueBuilder()
	for _, e := range entries {
		p := &pending{entry: e, schemas: []*schemaState{schema, schema}[:len(e.Rows)]}
		for _, rows := range e.Rows {
			p.rows += int(rows.Record.NumRows())
		}
		b.add(p)
	}
	h := valueHeader{
		Prev: NewSeq(2, 4), First: NewSeq(2, 5), Last: NewSeq(2, 4+uint64(len(entries))), Time: 1_700_000_000_000_000,
		Total: totals{Entries: 4, Rows: 10, Bytes: 1000},
	}
	size, write := b.encode(&h)
	data = make([]byte, size)
	write(data)
	return h.Last, data
}

func airportsLookup(id SchemaID) (*arrow.Schema, error) {
	want, err := SchemaIDOf(airports)
	if err != nil || id != want {
		return nil, errLost
	}
	return airports, nil
}

// TestGoldenBytes pins every persisted layout and reads it back.
func TestGoldenBytes(t *testing.T) {
	golden(t, "identity", goldenIdentity().encode())
	id, err := decodeIdentity(goldenBytes(t, "identity"))
	require.NoError(t, err)
	require.Equal(t, goldenIdentity(), id)

	schema, err := encodeSchema(airports)
	require.NoError(t, err)
	golden(t, "schema", schema)

	golden(t, "dedupe", encodeDedupe(goldenGroup()))
	group, err := decodeDedupe(NewSeq(2, 7), goldenBytes(t, "dedupe"))
	require.NoError(t, err)
	require.Equal(t, goldenGroup(), group)

	imported := encodeImported(&Origin{3, goldenIdentity().Incarnation}, encodeDedupe(goldenGroup()))
	golden(t, "imported", imported)
	stored, err := decodeStored(storedKey{kindImported, 4}, goldenBytes(t, "imported"))
	require.NoError(t, err)
	require.Equal(t, &storedGroup{dedupeGroup: *goldenGroup(), origin: &Origin{3, goldenIdentity().Incarnation}}, stored)

	n := &lineage{logs: []Origin{{3, goldenIdentity().Incarnation}, {70_000, "other"}}}
	golden(t, "lineage", n.encode())
	logs, err := decodeLineage(goldenBytes(t, "lineage"))
	require.NoError(t, err)
	require.Equal(t, n, logs)

	released := releasedRecord{through: NewSeq(2, 6), total: totals{6, 16, 1234}}
	golden(t, "released", released.encode())
	back, err := decodeReleased(goldenBytes(t, "released"))
	require.NoError(t, err)
	require.Equal(t, released, back)

	var mark [markBytes]byte
	putMark(mark[:], NewSeq(2, 6))
	golden(t, "mark", mark[:])
	golden(t, "loss", encodeLoss(1_700_000_000_000_000))
	since, err := decodeLoss(goldenBytes(t, "loss"))
	require.NoError(t, err)
	require.Equal(t, int64(1_700_000_000_000_000), since)

	key, value := goldenValue(t)
	golden(t, "value", value)
	b, err := decodeValue(key, goldenBytes(t, "value"), airportsLookup)
	require.NoError(t, err)
	defer b.Release()
	require.Equal(t, []string{"id-1", "id-2", "id-3", "id-9", "id-10"}, rowIDs([]*Batch{b}, 1))
	require.Equal(t, []uint32{0, 0, 0, 1, 1}, b.Tables[0].Entry)
	require.Equal(t, []Op{OpUpsert, OpUpsert, OpDelete, OpUpsert, OpUpsert}, b.Tables[0].Ops)
}

// TestGoldenPackedValue reads a stored value with packed buffers. What another version of the packing library writes may differ; what it wrote stays
// readable.
func TestGoldenPackedValue(t *testing.T) {
	key, value := packedValue(t)
	if *update {
		golden(t, "value-packed", value)
	}
	stored := goldenBytes(t, "value-packed")
	require.Equal(t, uint32(valuePacked), le.Uint32(stored[68:]))
	for _, data := range [][]byte{value, stored} {
		b, err := decodeValue(key, data, airportsLookup)
		require.NoError(t, err)
		require.True(t, array.RecordEqual(airportRows(1, 700), b.Tables[0].Record))
		require.True(t, array.RecordEqual(airportRows(1, 3), b.Tables[1].Record))
		require.Less(t, b.Bytes, b.Memory)
		b.Release()
	}
}

// TestFormatDocument checks that FORMAT.md names the constants of the code.
func TestFormatDocument(t *testing.T) {
	text, err := os.ReadFile("FORMAT.md")
	require.NoError(t, err)
	for _, want := range []string{
		`"FOLDWAL\n"`, `"FLWV"`, `"FLWD"`, `"FLWI"`, `"FLWM"`, "72 bytes", "36 bytes", "40 bytes", "16 bytes",
		"524,288", "4,194,304", "67,108,864", "1,048,576", "65,536", "1,024", "8,192", "4,096",
	} {
		require.Contains(t, string(text), want)
	}
	require.Equal(t, []int{72, 36, 40, 16, 16}, []int{valueFixed, dedupeFixed, releasedBytes, markBytes, lossBytes})
	require.Equal(t, []int{524_288, 4_194_304, 67_108_864, 1_048_576, 65_536},
		[]int{maxFrameBytes, MaxValueBytes, MaxEntryBytes, maxRows, maxEntries})
	require.Equal(t, []int{1_024, 8_192, 4_096, 64, 3}, []int{minPacked, 2 * packSample, packSample, maxUnpack, minCopy})
}
