package publisher

import (
	"context"
	"encoding/binary"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/publisher/internal/recordpb"
)

var update = flag.Bool("update", false, "rewrite golden files")

func sampleRecord() *record {
	tx := &lance.Transaction{ReadVersion: 4, UUID: "5ea5a159-709a-420f-9095-c677488daba0", Properties: map[string]string{"foldline.fold": recordName(7, 3)},
		Op: &lance.Update{RemovedFragmentIDs: []uint64{9}, PreservedFields: []uint32{0, 1}, Filter: &lance.KeyFilter{FieldIDs: []int32{0}, Exact: []uint64{1, 1 << 63}}}}
	return &record{graph: "demo", fold: 7, epoch: 3, commitID: "01JDTN3S00000000000000000B",
		previous: []heads.Cut{{Lane: 3, Incarnation: testIncarnation, Through: 5, Open: true}},
		cut:      []heads.Cut{{Lane: 3, Incarnation: testIncarnation, Through: 1<<40 | 9, Open: true}},
		tables: []recordTable{{id: 2, key: "node:Airport", path: "node_Airport.lance", baseVersion: 4, headVersion: 3, tx: tx,
			affected:   map[uint64]*roaring.Bitmap{9: roaring.BitmapOf(0, 5, 70000), 2: roaring.BitmapOf(1)},
			deleteKeys: besidePath(recordName(7, 3)) + "0000000000000002.keys", inserted: 1, updated: 2, deleted: 3}},
		rejects: &recordTable{id: 1, key: heads.RejectsKey, path: heads.RejectsPath, baseVersion: 1, headVersion: 1, affected: map[uint64]*roaring.Bitmap{},
			tx: &lance.Transaction{ReadVersion: 1, UUID: "u", Op: &lance.Update{Filter: &lance.KeyFilter{FieldIDs: []int32{0}}}}},
		rejectCount: 1, entries: 4, rows: 6, plannedAt: time.UnixMicro(1732900000000000).UTC()}
}

func golden(t *testing.T, name string, data []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, data, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, want, data, "%s: what is persisted has changed, and so must the format number", name)
}

func TestRecordIsGolden(t *testing.T) {
	r := sampleRecord()
	data, err := r.encode()
	require.NoError(t, err)
	golden(t, "record.golden.fold", data)
	got, err := decodeRecord(r.name(), data)
	require.NoError(t, err)
	again, err := got.encode()
	require.NoError(t, err)
	require.Equal(t, data, again)
	require.Equal(t, r.cut, got.cut)
	require.Equal(t, r.plannedAt, got.plannedAt)
	require.True(t, got.tables[0].affected[9].Equals(r.tables[0].affected[9]))
}

func TestAmendmentIsGolden(t *testing.T) {
	reject := Reject{Origin: Origin{Lane: 1, Incarnation: testIncarnation, Seq: 9, Row: 1}, Table: "node:Airport", Op: "insert", Code: CodeKeyExists,
		Reason: "r", Row: []byte(`{"id":"a"}`), Fold: 7, Time: time.UnixMicro(5).UTC()}
	data, err := encodeFrame(amendmentMagic, &recordpb.Amendment{Table: 2, Rejects: []*recordpb.Reject{rejectToProto(reject)}})
	require.NoError(t, err)
	golden(t, "amendment.golden.amend", data)
	got, err := decodeAmendment("a", data)
	require.NoError(t, err)
	require.Equal(t, []Reject{reject}, got)
}

func TestDeleteKeysAreGolden(t *testing.T) {
	ctx := context.Background()
	store := objstore.NewMemory()
	p := newGraph(t, store)
	path, err := p.PutDeleteKeys(ctx, 7, heads.Table{ID: 2}, []string{"", "a", "b\x00c"})
	require.NoError(t, err)
	data, err := store.Get(ctx, heads.Join(testRoot, path))
	require.NoError(t, err)
	golden(t, "keys.golden.keys", data)
	got, err := p.readDeleteKeys(ctx, path)
	require.NoError(t, err)
	require.Equal(t, []string{"", "a", "b\x00c"}, got)
	again, err := p.PutDeleteKeys(ctx, 7, heads.Table{ID: 2}, []string{"a"})
	require.NoError(t, err)
	require.NotEqual(t, path, again, "a plan that is made again must not share the object with a put that is still on its way")
}

// TestDamagedRecords flips, cuts and relabels a good record: it is refused, and a format that is not ours is told apart from damage.
func TestDamagedRecords(t *testing.T) {
	r := sampleRecord()
	good, err := r.encode()
	require.NoError(t, err)
	for i := range good {
		bad := slices.Clone(good)
		bad[i] ^= 0x40
		_, err := decodeRecord(r.name(), bad)
		if i >= 4 && i < 8 {
			require.ErrorIs(t, err, ErrFormat, "byte %d", i)
			continue
		}
		require.ErrorIs(t, err, ErrCorrupt, "byte %d", i)
		_, err = decodeRecord(r.name(), good[:i])
		require.ErrorIs(t, err, ErrCorrupt, "cut at %d", i)
	}
	_, err = decodeRecord(recordName(8, 3), good)
	require.ErrorIs(t, err, ErrCorrupt)
	for _, number := range []uint32{0, 2} {
		bad := slices.Clone(good)
		binary.LittleEndian.PutUint32(bad[4:], number)
		_, err := decodeRecord(r.name(), bad)
		require.ErrorIs(t, err, ErrFormat)
	}
}

func TestRecordNames(t *testing.T) {
	for _, c := range []struct{ fold, epoch uint64 }{{1, 1}, {7, 3}, {1<<64 - 1, 1<<64 - 1}} {
		fold, epoch, err := parseRecordName(recordName(c.fold, c.epoch))
		require.NoError(t, err)
		require.Equal(t, c.fold, fold)
		require.Equal(t, c.epoch, epoch)
	}
	for _, bad := range []string{"", "7-3", recordName(7, 3) + "x", "00000000000000000000-0000000001", "00000000000000000007-00000000000000000003",
		"99999999999999999999-0000000001"} {
		_, _, err := parseRecordName(bad)
		require.ErrorIs(t, err, ErrCorrupt, bad)
	}
	require.Less(t, recordName(9, 3), recordName(10, 1), "names sort by fold")
}

// FuzzRecord: no bytes make a record panic or take memory beyond their own size; what is accepted survives its own encoding. The frame is put
// around the body here, so that the checksum does not hide the message from the fuzzer.
func FuzzRecord(f *testing.F) {
	good, err := sampleRecord().encode()
	require.NoError(f, err)
	f.Add(good[frameHeaderBytes : len(good)-frameFooterBytes])
	f.Fuzz(func(t *testing.T, body []byte) {
		data := binary.LittleEndian.AppendUint32([]byte(recordMagic), frameFormat)
		data = append(data, body...)
		data = binary.LittleEndian.AppendUint32(data, checksum(data))
		r, err := decodeRecord(recordName(7, 3), data)
		if err != nil {
			return
		}
		again, err := r.encode()
		require.NoError(t, err)
		_, err = decodeRecord(r.name(), again)
		require.NoError(t, err)
	})
}

// FuzzFrame feeds whole objects.
func FuzzFrame(f *testing.F) {
	good, err := sampleRecord().encode()
	require.NoError(f, err)
	f.Add(good)
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = decodeRecord(recordName(7, 3), data)
		_, _ = decodeDeleteKeys("k", data)
		_, _ = decodeAmendment("a", data)
	})
}
