package fold

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/publisher"
	"github.com/foldline/foldline/wal"
)

var scanAll = lance.ScanOptions{}

// sequences are all words of length n over the operations.
func sequences(ops []wal.Op, n int) [][]wal.Op {
	if n == 0 {
		return [][]wal.Op{nil}
	}
	var out [][]wal.Op
	for _, head := range ops {
		for _, tail := range sequences(ops, n-1) {
			out = append(out, append([]wal.Op{head}, tail...))
		}
	}
	return out
}

// TestRaceR9OrderWithinAndAcrossFolds is C67 with strict inserts added: every
// sequence of four operations on one key, cut into folds in all eight ways, ends
// as a plain map ends (F3). The 16 sequences of upserts and deletes are among
// the 81.
func TestRaceR9OrderWithinAndAcrossFolds(t *testing.T) {
	all := sequences([]wal.Op{wal.OpUpsert, wal.OpDelete, wal.OpInsert}, 4)
	for cuts := range 8 {
		t.Run(fmt.Sprintf("cuts %03b", cuts), func(t *testing.T) {
			w := newWorld(t, objstore.NewMemory(), 1, noteTable("node:T"))
			defer w.close()
			m := newModel()
			for step := range 4 {
				var rows []row
				for i, ops := range all {
					rows = append(rows, row{ops[step], []any{fmt.Sprintf("k%02d", i), 10*i + step}})
				}
				m.apply("node:T", rows)
				w.write("node:T", rows...)
				if step == 3 || cuts>>step&1 == 1 {
					w.fold()
				}
			}
			require.Equal(t, m.lines("node:T"), w.scan("node:T"))
			require.Equal(t, m.sortedRejects(), sorted(w.rejects()))
			for i, ops := range all {
				if !slices.Contains(ops, wal.OpInsert) {
					_, alive := m.tables["node:T"][fmt.Sprintf("k%02d", i)]
					require.Equal(t, ops[3] == wal.OpUpsert, alive, "%v", ops)
				}
			}
		})
	}
}

// TestManyEventsPerKey is C65: the table gets one row per key, the last one.
func TestManyEventsPerKey(t *testing.T) {
	w := newWorld(t, objstore.NewMemory(), 1, noteTable("node:T"))
	defer w.close()
	m := newModel()
	for message := range 10 {
		var rows []row
		for i := range 1000 {
			rows = append(rows, upsert(fmt.Sprintf("k%03d", i*7%100), message*1000+i))
		}
		m.apply("node:T", rows)
		w.write("node:T", rows...)
	}
	r := w.fold()
	require.Equal(t, 10_000, r.Rows)
	require.Equal(t, 100, r.Inserted)
	require.Equal(t, m.lines("node:T"), w.scan("node:T"))
	opened, err := w.heads().OpenTable(w.ctx, w.store, "node:T")
	require.NoError(t, err)
	require.Len(t, opened.Fragments(), 1)
	require.Equal(t, uint64(100), opened.Fragments()[0].PhysicalRows(), "superseded rows are not written")
}

// TestManyKeysInOneFold is C68: no bound on distinct keys changes the result.
func TestManyKeysInOneFold(t *testing.T) {
	w := newWorld(t, objstore.NewMemory(), 1, noteTable("node:T"))
	defer w.close()
	var rows []row
	for i := range 110_000 {
		rows = append(rows, upsert(fmt.Sprintf("k%06d", i), i))
	}
	for i := range 100 {
		rows = append(rows, upsert(fmt.Sprintf("k%06d", i), -i))
	}
	for part := range slices.Chunk(rows, 20_000) {
		w.write("node:T", part...)
	}
	w.opts.MaxRows = 1_000_000
	w.claim(w.store)
	r := w.fold()
	require.Equal(t, 110_100, r.Rows)
	lines := w.scan("node:T")
	require.Len(t, lines, 110_000)
	require.Equal(t, "k000099=-99", lines[99])
	require.Equal(t, "k000100=100", lines[100])
}

// TestKeyColumnsByName is C71: the key's order is not the columns' order.
func TestKeyColumnsByName(t *testing.T) {
	w := newWorld(t, objstore.NewMemory(), 1, publisher.TableSpec{
		Key: "node:Order", PrimaryKey: []string{"order_id", "customer_id"},
		Columns: []heads.Column{{Name: "customer_id", Type: "int64"}, {Name: "order_id", Type: "int64"}, {Name: "amount", Type: "int64", Nullable: true}},
	})
	defer w.close()
	w.write("node:Order", upsert(1, 2, 10), upsert(2, 1, 20), upsert(1, 1, 30), upsert(2, 2, 40))
	w.fold()
	w.write("node:Order", upsert(1, 2, 99))
	r := w.fold()
	require.Equal(t, 1, r.Updated)
	require.Equal(t, []string{"1=1=30", "1=2=99", "2=1=20", "2=2=40"}, w.scan("node:Order"))
	w.write("node:Order", remove(2, 1))
	w.fold()
	require.Equal(t, []string{"1=1=30", "1=2=99", "2=2=40"}, w.scan("node:Order"))
}

// TestCompositeTextKeys: keys whose Lance bytes are equal are still two keys.
func TestCompositeTextKeys(t *testing.T) {
	w := newWorld(t, objstore.NewMemory(), 1, publisher.TableSpec{
		Key: "edge:E", PrimaryKey: []string{"src", "dst"},
		Columns: []heads.Column{{Name: "src", Type: "string"}, {Name: "dst", Type: "string"}, {Name: "v", Type: "int64"}},
	})
	defer w.close()
	w.write("edge:E", upsert("a\x00b", "c", 1), upsert("a", "b\x00c", 2))
	w.fold()
	w.write("edge:E", upsert("a\x00b", "c", 3))
	w.fold()
	require.Equal(t, []string{"a\x00b=c=3", "a=b\x00c=2"}, w.scan("edge:E"))
}

// TestDeleteNeedsTheKeyOnly is C72, with C85: what meets nothing is counted.
func TestDeleteNeedsTheKeyOnly(t *testing.T) {
	w := newWorld(t, objstore.NewMemory(), 1, publisher.TableSpec{Key: "node:T", Columns: []heads.Column{
		{Name: "id", Type: "int64"}, {Name: "name", Type: "string"}, {Name: "at", Type: "timestamp:us:UTC"},
	}})
	defer w.close()
	w.write("node:T", upsert(7, "seven", "2026-01-02 03:04:05Z"), upsert(8, "eight", "2026-01-02 03:04:05Z"))
	w.fold()
	w.write("node:T", remove(7), remove(9))
	r := w.fold()
	require.Equal(t, 1, r.Deleted)
	require.Equal(t, 1, r.Missing)
	require.Len(t, w.scan("node:T"), 1)
	require.Empty(t, w.rejects())
}

// TestFirstFoldHoldsOneRowPerKey is C80.
func TestFirstFoldHoldsOneRowPerKey(t *testing.T) {
	w := newWorld(t, objstore.NewMemory(), 1, noteTable("node:T"))
	defer w.close()
	for message := range 2 {
		var rows []row
		for i := range 2500 {
			rows = append(rows, upsert(i%1000, message*10_000+i))
		}
		w.write("node:T", rows...)
	}
	r := w.fold()
	require.Equal(t, 1000, r.Inserted)
	require.Len(t, w.scan("node:T"), 1000)
}

// TestUntouchedRowsStay is C66.
func TestUntouchedRowsStay(t *testing.T) {
	w := newWorld(t, objstore.NewMemory(), 1, noteTable("node:T"))
	defer w.close()
	for _, rows := range [][]row{{upsert(1, 11), upsert(2, 12)}, {remove(1)}, {upsert(3, 13)}} {
		w.write("node:T", rows...)
		w.fold()
	}
	require.Equal(t, []string{"2=12", "3=13"}, w.scan("node:T"))
}

// TestHotKeys is C64: the same keys are folded again and again.
func TestHotKeys(t *testing.T) {
	w := newWorld(t, objstore.NewMemory(), 1, noteTable("node:T"))
	defer w.close()
	for i := range 60 {
		w.write("node:T", upsert("A", i), upsert("B", i), upsert("C", i))
		r := w.fold()
		require.Equal(t, 1, r.Tables)
	}
	require.Equal(t, []string{"A=59", "B=59", "C=59"}, w.scan("node:T"))
}

// TestNoEffectIsNoCommit: a table on which the cut has no effect keeps its
// version, and the cut moves on.
func TestNoEffectIsNoCommit(t *testing.T) {
	w := newWorld(t, objstore.NewMemory(), 1, noteTable("node:T"), noteTable("node:U"))
	defer w.close()
	w.write("node:T", upsert("a", 1))
	w.write("node:U", upsert("a", 1))
	w.fold()
	before := w.heads()
	w.write("node:T", remove("b"), upsert("c", 1), remove("c"))
	receipt := w.write("node:U", upsert("b", 1))
	r := w.fold()
	require.Equal(t, 1, r.Tables)
	require.Equal(t, 1, r.Missing)
	after := w.heads()
	require.Equal(t, versionOf(before, "node:T"), versionOf(after, "node:T"))
	require.Greater(t, versionOf(after, "node:U"), versionOf(before, "node:U"))
	w.write("node:T", remove("b"))
	last := w.write("node:T", remove("c"))
	r = w.fold()
	require.Zero(t, r.Tables)
	cut, _ := w.heads().Cut(0, w.lanes[0].log.Incarnation())
	require.Equal(t, uint64(last.Seq), cut.Through)
	require.Greater(t, last.Seq, receipt.Seq)
}

func versionOf(s *heads.Snapshot, table string) uint64 {
	t, _ := s.Table(table)
	return t.Head.Version
}

// TestOneEntryIsOnePublish: rows of one entry for several tables land together,
// with the dead letters of its refused rows (F1, F4).
func TestOneEntryIsOnePublish(t *testing.T) {
	w := newWorld(t, objstore.NewMemory(), 1, noteTable("node:T"), noteTable("node:U"))
	defer w.close()
	w.write("node:T", upsert("a", 1))
	w.fold()
	o := w.lanes[0]
	receipt := w.append(o, wal.Entry{Rows: []wal.Rows{
		o.rowsOf(w, "node:T", insert("a", 2), insert("b", 3)), o.rowsOf(w, "node:U", upsert("x", 4)),
	}})
	r := w.fold()
	require.Equal(t, Report{Fold: r.Fold, Entries: 1, Rows: 3, Tables: 2, Inserted: 2, Rejected: 1}, r)
	require.Equal(t, []string{"a=1", "b=3"}, w.scan("node:T"))
	require.Equal(t, []string{"x=4"}, w.scan("node:U"))
	require.Equal(t, []string{`node:T insert key_exists {"id":"a","value":2}`}, w.rejects())
	require.Len(t, w.events, 2)
	published := w.events[1].Snapshot
	require.True(t, slices.ContainsFunc(published.Cuts, func(c heads.Cut) bool { return c.Through == uint64(receipt.Seq) }))
}

// TestUnknownTable: rows of a table that the graph does not know are dead
// letters, and nothing of the rest stops.
func TestUnknownTable(t *testing.T) {
	w := newWorld(t, objstore.NewMemory(), 1, noteTable("node:T"))
	defer w.close()
	o := w.lanes[0]
	o.tables["node:Gone"], o.schemas["node:Gone"] = 999, o.schemas["node:T"]
	w.append(o, wal.Entry{Rows: []wal.Rows{o.rowsOf(w, "node:Gone", upsert("a", 1), remove("b")), o.rowsOf(w, "node:T", upsert("a", 1))}})
	r := w.fold()
	require.Equal(t, 2, r.Rejected)
	require.Equal(t, []string{"a=1"}, w.scan("node:T"))
	require.Equal(t, []string{
		`table 999 upsert table_unknown {"id":"a","value":1}`,
		`table 999 delete table_unknown {"id":"b","value":null}`,
	}, w.rejects())
}

// TestCutIsBounded: what is above the bounds waits, on value boundaries, and
// nothing is lost or folded twice (F2).
func TestCutIsBounded(t *testing.T) {
	w := newWorld(t, objstore.NewMemory(), 1, noteTable("node:T"))
	defer w.close()
	m := newModel()
	for i := range 10 {
		rows := []row{upsert(i, i), upsert(i+1, i), insert("s", i)}
		m.apply("node:T", rows)
		w.write("node:T", rows...)
	}
	w.opts.MaxRows = 7
	w.claim(w.store)
	r, err := w.folder.FoldOnce(w.ctx)
	require.NoError(t, err)
	require.Equal(t, 6, r.Rows)
	require.True(t, r.More)
	r = w.fold()
	require.Equal(t, 24, r.Rows)
	require.Equal(t, m.lines("node:T"), w.scan("node:T"))
	require.Equal(t, m.sortedRejects(), sorted(w.rejects()))
}

// TestNothingToFold costs no commit.
func TestNothingToFold(t *testing.T) {
	w := newWorld(t, objstore.NewMemory(), 2, noteTable("node:T"))
	defer w.close()
	before := w.heads().Version
	r, err := w.folder.FoldOnce(w.ctx)
	require.NoError(t, err)
	require.True(t, r.Empty())
	require.Equal(t, before, w.heads().Version)
}

// TestForeignLogIsRefused: a log that is not the lane's open incarnation is
// never read, and the other lanes go on.
func TestForeignLogIsRefused(t *testing.T) {
	w := newWorld(t, objstore.NewMemory(), 2, noteTable("node:T"))
	defer w.close()
	o := w.lanes[1]
	w.append(o, wal.Entry{Rows: []wal.Rows{o.rowsOf(w, "node:T", upsert("one", 1))}})
	w.write("node:T", upsert("zero", 0))
	stranger, err := wal.Open(w.ctx, wal.Options{Dir: "elsewhere", FS: o.fs, Graph: "g", Lane: 1, MinFreeBytes: -1})
	require.NoError(t, err)
	defer func() { require.NoError(t, stranger.Close()) }()
	own := o.log
	o.log = stranger
	r, err := w.folder.FoldOnce(w.ctx)
	o.log = own
	require.NoError(t, err)
	require.Len(t, r.Lanes, 1)
	require.ErrorIs(t, r.Lanes[0].Err, ErrIncarnation)
	require.Equal(t, []string{"zero=0"}, w.scan("node:T"))
	w.fold()
	require.Equal(t, []string{"one=1", "zero=0"}, w.scan("node:T"))
}

func sorted(lines []string) []string {
	out := slices.Clone(lines)
	slices.Sort(out)
	return out
}

// model is a plain map that plays the rows one by one.
type model struct {
	tables  map[string]map[string]string // table, key: line of text
	rejects []string
}

func newModel() *model { return &model{tables: map[string]map[string]string{}} }

func (m *model) apply(table string, rows []row) {
	if m.tables[table] == nil {
		m.tables[table] = map[string]string{}
	}
	live := m.tables[table]
	for _, r := range rows {
		key := fmt.Sprint(r.values[0])
		_, exists := live[key]
		switch {
		case r.op == wal.OpDelete:
			delete(live, key)
		case r.op == wal.OpInsert && exists:
			m.rejects = append(m.rejects, fmt.Sprintf("%s insert key_exists {\"id\":%q,\"value\":%v}", table, key, r.values[1]))
		default:
			live[key] = fmt.Sprintf("%s=%v", key, r.values[1])
		}
	}
}

func (m *model) lines(table string) []string {
	var out []string
	for _, line := range m.tables[table] {
		out = append(out, line)
	}
	slices.SortFunc(out, strings.Compare)
	return out
}

func (m *model) sortedRejects() []string { return sorted(m.rejects) }
