package lance

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/foldline/foldline/lance/internal/pb"
)

// goldenManifest is version 1 of an empty table as the engine wrote it.
func goldenManifest(t testing.TB) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/engine-empty-v1.hex")
	require.NoError(t, err)
	data, err := hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
	require.NoError(t, err)
	return data
}

func TestGoldenManifest(t *testing.T) {
	data := goldenManifest(t)
	require.Len(t, data, 271)
	m, err := decodeManifest("golden", data)
	require.NoError(t, err)
	require.EqualValues(t, 1, m.pb.GetVersion())
	require.Equal(t, "2.1", m.pb.GetDataFormat().GetVersion())
	require.NotNil(t, m.pb.TransactionSection)
	require.Nil(t, m.pb.IndexSection)
	table, err := newTable(nil, "", namingV2, m)
	require.NoError(t, err)
	require.Equal(t, "id", table.Schema().Arrow().Field(0).Name)
	require.False(t, table.Schema().Arrow().Field(0).Nullable)
	require.True(t, table.Schema().Arrow().Field(1).Nullable)
	tx, err := m.decodedTransaction()
	require.NoError(t, err)
	require.Equal(t, KindOverwrite, tx.Op.Kind())
	require.Equal(t, "e5aca159-709a-420f-9095-677488dab769", tx.UUID)
	require.Equal(t, tx.UUID, transactionFileUUID(m.pb.GetTransactionFile()))

	again, err := encodeManifest(m.pb, m.tx, m.index)
	require.NoError(t, err)
	require.Equal(t, data, again)
	message, err := tx.Marshal()
	require.NoError(t, err)
	require.Equal(t, m.tx, message)
}

// TestManifestCarriesUnknownFields holds L4: fields of later releases survive a commit of ours.
func TestManifestCarriesUnknownFields(t *testing.T) {
	m := &pb.Manifest{Version: 7, Fragments: []*pb.DataFragment{{Id: 1, PhysicalRows: 5}}}
	unknown := protowire.AppendString(protowire.AppendTag(nil, 999, protowire.BytesType), "later")
	m.ProtoReflect().SetUnknown(unknown)
	m.Fragments[0].ProtoReflect().SetUnknown(unknown)
	data, err := encodeManifest(m, nil, nil)
	require.NoError(t, err)
	back, err := decodeManifest("x", data)
	require.NoError(t, err)
	next := shallow(back.pb)
	require.Equal(t, unknown, []byte(next.ProtoReflect().GetUnknown()))
	require.Equal(t, unknown, []byte(next.Fragments[0].ProtoReflect().GetUnknown()))
}

func TestManifestSections(t *testing.T) {
	data, err := encodeManifest(&pb.Manifest{Version: 3}, []byte("\x12\x01u"), []byte{})
	require.NoError(t, err)
	m, err := decodeManifest("x", data)
	require.NoError(t, err)
	require.Equal(t, []byte{}, m.index)
	require.Equal(t, "u", m.transactionUUID())
	require.EqualValues(t, 0, m.pb.GetIndexSection())
	require.EqualValues(t, 4, m.pb.GetTransactionSection())
}

// TestLaterTransactionSection: releases after 10.0.0 state the transaction's offset in another field. Carried into a version of ours
// it would point into the middle of something, and those releases crash on it.
func TestLaterTransactionSection(t *testing.T) {
	data, err := encodeManifest(&pb.Manifest{Version: 3}, []byte("\x12\x01u"), []byte{10, 0})
	require.NoError(t, err)
	m, err := decodeManifest("x", data)
	require.NoError(t, err)
	at := *m.pb.TransactionSection
	later := shallow(m.pb)
	later.TransactionSection, later.LaterTransactionSection = nil, &at
	message, err := marshal(later)
	require.NoError(t, err)
	position := binary.LittleEndian.Uint64(data[len(data)-16:])
	file := append(data[:position:position], binary.LittleEndian.AppendUint32(nil, uint32(len(message)))...)
	file = append(append(file, message...), data[len(data)-16:]...)
	m, err = decodeManifest("x", file)
	require.NoError(t, err)
	require.Equal(t, "u", m.transactionUUID())
	_, err = encodeManifest(m.pb, m.tx, nil)
	require.NoError(t, err)
	require.Nil(t, m.pb.LaterTransactionSection)
	require.EqualValues(t, 0, *m.pb.TransactionSection)
	require.ErrorIs(t, checkReaderFlags(&pb.Manifest{FragmentTree: []byte{}}), ErrUnsupported)
}

func TestManifestRefusesDamage(t *testing.T) {
	whole := goldenManifest(t)
	for n := range whole {
		_, err := decodeManifest("cut", whole[:n])
		require.ErrorIs(t, err, ErrCorrupt, "cut to %d bytes", n)
	}
	for _, at := range []int{101, len(whole) - 16, len(whole) - 1} {
		damaged := bytes.Clone(whole)
		damaged[at]++
		_, err := decodeManifest("damaged", damaged)
		require.ErrorIs(t, err, ErrCorrupt, "byte %d", at)
	}
}

// TestUnknownFlags holds L4 for every bit: a reader flag refuses to open, a writer flag refuses to commit.
func TestUnknownFlags(t *testing.T) {
	for bit := range 64 {
		flag := uint64(1) << bit
		reader := &pb.Manifest{ReaderFeatureFlags: flag}
		writer := &pb.Manifest{WriterFeatureFlags: flag}
		if flag <= 32 {
			require.NoError(t, checkReaderFlags(reader))
			require.NoError(t, checkWriterFlags(writer))
			continue
		}
		require.ErrorIs(t, checkReaderFlags(reader), ErrUnsupported)
		require.ErrorIs(t, checkWriterFlags(writer), ErrUnsupported)
		require.NoError(t, checkReaderFlags(writer))
		require.ErrorIs(t, checkWriterFlags(reader), ErrUnsupported)
	}
}

func TestManifestNames(t *testing.T) {
	require.Equal(t, "18446744073709551614.manifest", namingV2.manifestName(1))
	require.Equal(t, "7.manifest", namingV1.manifestName(7))
	for name, want := range map[string]uint64{
		"18446744073709551614.manifest": 1, "00000000000000000000.manifest": 1<<64 - 1, "7.manifest": 7, "12.manifest": 12,
	} {
		v, _, ok := parseManifestName(name)
		require.True(t, ok, name)
		require.Equal(t, want, v, name)
	}
	for _, name := range []string{
		"d9223372036854775809.manifest", "7.manifest#1", "18446744073709551614.manifest-0a", ".tmpabc", "latest_version_hint.json",
		".manifest", "-1.manifest", "99999999999999999999.manifest", "+7.manifest", "x.manifest",
	} {
		_, _, ok := parseManifestName(name)
		require.False(t, ok, name)
	}
}

// FuzzManifest holds L5: no bytes panic, and what decodes encodes to something that decodes to the same.
func FuzzManifest(f *testing.F) {
	f.Add(goldenManifest(f))
	small, err := encodeManifest(&pb.Manifest{Version: 2, Fragments: []*pb.DataFragment{{Id: 3}}}, []byte{18, 1, 'u'}, []byte{10, 0})
	require.NoError(f, err)
	f.Add(small)
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := decodeManifest("fuzz", data)
		if err != nil {
			return
		}
		m.transactionUUID()
		_, _ = m.indexSection()
		if table, err := newTable(nil, "", namingV2, m); err == nil {
			table.Rows()
		}
		again, err := encodeManifest(shallow(m.pb), m.tx, m.index)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decodeManifest("again", again); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzTransaction holds L5 for transaction messages.
func FuzzTransaction(f *testing.F) {
	golden := goldenManifest(f)
	f.Add(golden[4 : 4+binary.LittleEndian.Uint32(golden)])
	f.Fuzz(func(t *testing.T, data []byte) {
		tx, err := UnmarshalTransaction(data)
		if err != nil {
			return
		}
		for _, ours := range oneOfEach() {
			judge(ours, tx)
		}
		if _, err := tx.Marshal(); err == nil && tx.Op.Kind() == KindOther {
			t.Fatal("marshalled an unknown operation")
		}
	})
}
