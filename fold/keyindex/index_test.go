package keyindex

import (
	"context"
	"fmt"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/foldline/foldline/fence"
	"github.com/foldline/foldline/internal/testkit"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/countstore"
)

func TestMain(m *testing.M) { testkit.Main(m) }

const tableID = 7

// tester is what *testing.T and *rapid.T share.
type tester interface {
	require.TestingT
	Helper()
}

// bed is a table with its key index.
type bed struct {
	t      tester
	ctx    context.Context
	store  *countstore.Store
	table  *lance.Table // the newest version
	schema *arrow.Schema
	fs     *vfs.MemFS
	index  *Index
}

func newBed(t tester) *bed {
	t.Helper()
	b := &bed{t: t, ctx: context.Background(), store: countstore.New(objstore.NewMemory()), fs: vfs.NewCrashableMem()}
	b.schema = arrow.NewSchema([]arrow.Field{
		{Name: "n", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, {Name: "id", Type: arrow.BinaryTypes.String},
	}, nil)
	s, err := lance.NewSchema(b.schema, []string{"id"})
	require.NoError(t, err)
	b.table, err = lance.Create(b.ctx, b.store, "t.lance", s, lance.CreateOptions{})
	require.NoError(t, err)
	b.open()
	return b
}

func (b *bed) open() {
	b.t.Helper()
	var err error
	b.index, err = Open(Options{Dir: "index", FS: b.fs})
	require.NoError(b.t, err)
}

func (b *bed) reopen() {
	b.t.Helper()
	require.NoError(b.t, b.index.Close())
	b.open()
}

// upload writes one fragment with a row for each key.
func (b *bed) upload(keys []string) []lance.Fragment {
	b.t.Helper()
	if len(keys) == 0 {
		return nil
	}
	rb := array.NewRecordBuilder(memory.DefaultAllocator, b.schema)
	defer rb.Release()
	for i, k := range keys {
		rb.Field(0).(*array.Int64Builder).Append(int64(i))
		rb.Field(1).(*array.StringBuilder).Append(k)
	}
	rec := rb.NewRecord()
	defer rec.Release()
	w := b.table.NewFragmentWriter(b.ctx, lance.WriteOptions{MaxRowsPerFile: 5})
	require.NoError(b.t, w.Write(rec))
	out, err := w.Finish()
	require.NoError(b.t, err)
	return out
}

func (b *bed) commit(op lance.Operation, affected map[uint64]*roaring.Bitmap) *lance.Transaction {
	b.t.Helper()
	tx := lance.NewTransaction(b.table, op)
	result, err := b.table.Commit(b.ctx, tx, lance.CommitOptions{Affected: affected})
	require.NoError(b.t, err)
	b.table = result.Table
	return tx
}

// set is a set of keys.
func set(keys []string) fence.KeySet {
	out := make(fence.KeySet, len(keys))
	for _, k := range keys {
		out[k] = 0 // the hash is not looked at
	}
	return out
}

// scanned is what the index must answer.
func (b *bed) scanned(t *lance.Table, keys []string) map[string][]lance.RowAddress {
	b.t.Helper()
	want, err := fence.FindRows(b.ctx, t, set(keys))
	require.NoError(b.t, err)
	return want
}

func (b *bed) check(t *lance.Table, keys []string) {
	b.t.Helper()
	got, err := b.index.Find(b.ctx, tableID, t, set(keys))
	require.NoError(b.t, err)
	require.Equal(b.t, b.scanned(t, keys), got)
}

// fold upserts and removes keys as a fold does, and tells the index when tell is set.
func (b *bed) fold(upserts, removes []string, tell bool) {
	b.t.Helper()
	base := b.table
	affected := map[uint64]*roaring.Bitmap{}
	for _, addresses := range b.scanned(base, append(append([]string{}, upserts...), removes...)) {
		for _, a := range addresses {
			if affected[uint64(a.Fragment())] == nil {
				affected[uint64(a.Fragment())] = roaring.New()
			}
			affected[uint64(a.Fragment())].Add(a.Offset())
		}
	}
	updated, removed, err := base.DeleteRows(b.ctx, affected)
	require.NoError(b.t, err)
	fragments := b.upload(upserts)
	if len(fragments)+len(updated)+len(removed) == 0 {
		return
	}
	tx := b.commit(&lance.Update{NewFragments: fragments, UpdatedFragments: updated, RemovedFragmentIDs: removed}, affected)
	if tell {
		require.NoError(b.t, b.index.Committed(b.ctx, tableID, b.table, Commit{
			Base: base, Transaction: tx.UUID, NewFragments: fragments, Upserts: upserts, Removed: removes, Affected: affected,
		}))
	}
}

func someKeys(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("key-%02d", i)
	}
	return out
}

// TestModel plays random histories of folds, foreign appends, overwrites,
// restores, restarts and crashes, and asks for random versions: the index always
// answers what scans answer, where keys are and which have more than one row.
func TestModel(t *testing.T) {
	all := someKeys(12)
	rapid.Check(t, func(t *rapid.T) {
		b := newBed(t)
		defer func() { require.NoError(t, b.index.Close()) }()
		keys := rapid.SliceOfNDistinct(rapid.SampledFrom(all), 0, 8, rapid.ID)
		t.Repeat(map[string]func(*rapid.T){
			"fold": func(t *rapid.T) {
				chosen := keys.Draw(t, "keys")
				n := rapid.IntRange(0, len(chosen)).Draw(t, "upserts")
				b.fold(chosen[:n], chosen[n:], rapid.Bool().Draw(t, "tell"))
			},
			"foreign append": func(t *rapid.T) {
				b.append(rapid.SliceOfN(rapid.SampledFrom(all), 1, 8).Draw(t, "keys")...)
			},
			"overwrite": func(t *rapid.T) {
				b.commit(&lance.Overwrite{Fragments: b.upload(keys.Draw(t, "keys")), Schema: b.table.Schema()}, nil)
			},
			"restore": func(t *rapid.T) {
				b.commit(&lance.Restore{Version: rapid.Uint64Range(1, b.table.Version()).Draw(t, "version")}, nil)
			},
			"restart": func(*rapid.T) { b.reopen() },
			"crash":   func(t *rapid.T) { b.crash(rapid.Uint64().Draw(t, "seed")) },
			"follow":  func(*rapid.T) { b.follow() },
			"find":    func(*rapid.T) { b.check(b.table, all) },
			"duplicates": func(*rapid.T) {
				b.follow()
				b.checkDuplicates(b.table)
			},
			"find in an older version": func(t *rapid.T) {
				older, err := b.table.At(b.ctx, rapid.Uint64Range(1, b.table.Version()).Draw(t, "version"))
				require.NoError(t, err)
				b.check(older, all)
				b.checkDuplicates(older)
			},
		})
		b.check(b.table, all)
		b.checkDuplicates(b.table)
	})
}

// TestCommittedReadsNothingBack: after a fold of ours the index follows without
// a request, and the next look-up needs none either (K1).
func TestCommittedReadsNothingBack(t *testing.T) {
	b := newBed(t)
	defer func() { require.NoError(t, b.index.Close()) }()
	b.fold(someKeys(9), nil, false)
	b.check(b.table, someKeys(12))
	b.fold(someKeys(4), []string{"key-07"}, true)
	b.fold(someKeys(2), []string{"key-08"}, true)
	b.store.Reset()
	_, err := b.index.Find(b.ctx, tableID, b.table, set(someKeys(12)))
	require.NoError(t, err)
	require.Zero(t, b.store.Counts().Requests())
	b.check(b.table, someKeys(12))
}

// TestRestoredRowsAreFound is K3: a deletion vector that shrank.
func TestRestoredRowsAreFound(t *testing.T) {
	b := newBed(t)
	defer func() { require.NoError(t, b.index.Close()) }()
	b.fold([]string{"a", "b"}, nil, false)
	before := b.table.Version()
	b.fold(nil, []string{"a"}, false)
	b.check(b.table, []string{"a", "b"})
	b.commit(&lance.Restore{Version: before}, nil)
	b.check(b.table, []string{"a", "b"})
	require.Len(t, b.scanned(b.table, []string{"a"}), 1)
}

// TestOverwriteRebuilds is K2: fragment ids start again at 0.
func TestOverwriteRebuilds(t *testing.T) {
	b := newBed(t)
	defer func() { require.NoError(t, b.index.Close()) }()
	b.fold([]string{"a", "b"}, nil, false)
	b.check(b.table, []string{"a", "b", "c"})
	b.commit(&lance.Overwrite{Fragments: b.upload([]string{"c", "d"}), Schema: b.table.Schema()}, nil)
	b.check(b.table, []string{"a", "b", "c", "d"})
}

// TestDamagedPinRebuilds: what does not check is no pin.
func TestDamagedPinRebuilds(t *testing.T) {
	b := newBed(t)
	defer func() { require.NoError(t, b.index.Close()) }()
	b.fold([]string{"a"}, nil, false)
	b.check(b.table, []string{"a"})
	require.NoError(t, b.index.db.Set(prefix(kindPin, tableID), []byte("damage"), pebble.Sync))
	b.reopen()
	b.check(b.table, []string{"a"})
}

func TestFormats(t *testing.T) {
	b := newBed(t)
	b.fold([]string{"a"}, nil, false)
	b.check(b.table, []string{"a"})
	require.NoError(t, b.index.db.Set(formatKey, []byte("FLKI\x09\x00\x00\x00"), pebble.Sync))
	b.reopen()
	b.check(b.table, []string{"a"})
	require.NoError(t, b.index.db.Set(formatKey, []byte("else"), pebble.Sync))
	require.NoError(t, b.index.Close())
	_, err := Open(Options{Dir: "index", FS: b.fs})
	require.ErrorIs(t, err, ErrForeign)

	db, err := pebble.Open("other", &pebble.Options{FS: b.fs, FormatMajorVersion: pebble.FormatNewest, Logger: quietLogger{}})
	require.NoError(t, err)
	require.NoError(t, db.Set([]byte("x"), nil, pebble.Sync))
	require.NoError(t, db.Close())
	_, err = Open(Options{Dir: "other", FS: b.fs})
	require.ErrorIs(t, err, ErrForeign)
}

// TestPinRoundTrip, and every cut and every flipped byte of a pin is refused.
func TestPinRoundTrip(t *testing.T) {
	p := pin{version: 1 << 40, transaction: "uuid", highest: 9, fragments: []fragmentPin{
		{id: 3, rows: 100, keyFiles: "a.lance|b.lance", deletions: "_deletions/3-1-2.bin"}, {id: 9, rows: 1, keyFiles: "c.lance"},
	}}
	data := p.encode()
	got, err := decodePin(data)
	require.NoError(t, err)
	require.Equal(t, p, got)
	for i := range data {
		_, err := decodePin(data[:i])
		require.ErrorIs(t, err, errPin)
		damaged := append([]byte{}, data...)
		damaged[i] ^= 0x40
		_, err = decodePin(damaged)
		require.ErrorIs(t, err, errPin)
	}
}

func FuzzPin(f *testing.F) {
	f.Add(pin{version: 1, transaction: "u", fragments: []fragmentPin{{id: 1, rows: 2, keyFiles: "f"}}}.encode())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := decodePin(data)
		if err == nil {
			again, err := decodePin(p.encode())
			require.NoError(t, err)
			require.Equal(t, p, again)
		}
	})
}
