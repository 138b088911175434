package publisher

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/fence"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/testkit"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
)

func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "25"); err != nil { // the default of this package; the command line may ask for more
		panic(err)
	}
	testkit.Main(m)
}

const (
	testGraph       = "demo"
	testRoot        = "graphs/demo"
	testIncarnation = "01JDTN0000000000000000000C"
)

var testTables = []string{"node:Airport", "edge:Flight", "node:Route"}

// op is one operation of a test's log; entry i has sequence i+1 and holds one or more of them.
type op struct {
	table, id string
	value     int64
	kind      string // upsert, insert, delete
}

type entry []op

func options(store objstore.Store) Options {
	return Options{Store: store, Root: testRoot, SuspendAfter: time.Nanosecond} // a store that fails in these tests does not come back
}

func tableSpec(key string) TableSpec {
	return TableSpec{Key: key, Columns: []heads.Column{{Name: "id", Type: "string"}, {Name: "v", Type: "int64", Nullable: true}}}
}

// newGraph makes a graph with the test's tables and an open lane, and returns its folder.
func newGraph(t testing.TB, store objstore.Store) *Publisher {
	t.Helper()
	ctx := context.Background()
	_, err := Init(ctx, options(store), InitSpec{Graph: testGraph})
	require.NoError(t, err)
	_, err = ClaimLane(ctx, options(store), LaneClaim{Incarnation: testIncarnation})
	require.NoError(t, err)
	p, err := Claim(ctx, options(store), "folder")
	require.NoError(t, err)
	for _, key := range testTables {
		_, err := p.CreateTable(ctx, tableSpec(key))
		require.NoError(t, err)
	}
	return p
}

// opener opens the version of a table that a fold is planned on.
type opener func(ctx context.Context, p *Publisher, snap *heads.Snapshot, key string) (*lance.Table, error)

func atNewest(ctx context.Context, p *Publisher, snap *heads.Snapshot, key string) (*lance.Table, error) {
	t, _ := snap.Table(key)
	return p.newestOf(ctx, t.Path)
}

// atHead is what package fold plans on.
func atHead(ctx context.Context, p *Publisher, snap *heads.Snapshot, key string) (*lance.Table, error) {
	return snap.OpenTable(ctx, p.o.Store, key)
}

// plan is planOn the newest versions, so that a model of those knows every verdict beforehand.
func plan(ctx context.Context, p *Publisher, log []entry, through uint64) (*Prepared, error) {
	return planOn(ctx, p, log, through, atNewest)
}

// planOn is a small stand-in for package fold: it turns entries after the published cut, up to through, into a prepared fold. One
// key has at most one operation in it.
func planOn(ctx context.Context, p *Publisher, log []entry, through uint64, open opener) (*Prepared, error) {
	snap, err := p.Refresh(ctx)
	if err != nil {
		return nil, err
	}
	cut, _ := snap.Cut(0, testIncarnation)
	f := &Prepared{Fold: p.NextFold(), Previous: []heads.Cut{cut}}
	cut.Through = through
	f.Cut = []heads.Cut{cut}
	perTable := map[string][]placed{}
	for seq := f.Previous[0].Through + 1; seq <= through; seq++ {
		for i, o := range log[seq-1] {
			perTable[o.table] = append(perTable[o.table], placed{op: o, origin: Origin{Incarnation: testIncarnation, Seq: seq, Row: uint32(i)}})
		}
	}
	var rejects []Reject
	for _, key := range slices.Sorted(maps.Keys(perTable)) {
		t, more, err := planTable(ctx, p, snap, f.Fold, key, perTable[key], open)
		if err != nil {
			return nil, err
		}
		rejects = append(rejects, more...)
		if t != nil {
			f.Tables = append(f.Tables, *t)
		}
	}
	f.RejectCount = len(rejects)
	if len(rejects) > 0 {
		f.Rejects, err = planRejects(ctx, p, snap, rejects)
	}
	return f, err
}

type placed struct {
	op
	origin Origin
}

func planTable(ctx context.Context, p *Publisher, snap *heads.Snapshot, fold uint64, key string, ops []placed, open opener) (*PreparedTable, []Reject, error) {
	t, ok := snap.Table(key)
	if !ok {
		return nil, nil, fmt.Errorf("no table %q", key)
	}
	base, err := open(ctx, p, snap, key)
	if err != nil {
		return nil, nil, err
	}
	set := fence.KeySet{}
	all := rowsOf(ops)
	defer all.Release()
	if err := set.AddRecord(all, []string{"id"}); err != nil {
		return nil, nil, err
	}
	found, err := fence.FindRows(ctx, base, set)
	if err != nil {
		return nil, nil, err
	}
	out := &PreparedTable{Table: t, Base: base}
	var rejects []Reject
	var rows []placed
	var deletes []string
	dead, absent := fence.Rows{}, fence.KeySet{}
	for _, o := range ops {
		exists := len(found[o.id]) > 0
		switch {
		case o.kind == "insert" && exists:
			rejects = append(rejects, Reject{Origin: o.origin, Table: key, Op: "insert", Code: CodeKeyExists, Reason: "exists", Fold: fold,
				Row: fmt.Appendf(nil, `{"id":%q,"v":%d}`, o.id, o.value)})
			continue
		case o.kind == "delete":
			deletes = append(deletes, o.id)
			if !exists {
				absent[o.id] = set[o.id]
			}
		default:
			if o.kind == "insert" {
				out.Strict = append(out.Strict, StrictRow{Offset: uint32(len(rows)), Origin: o.origin})
			}
			rows = append(rows, o)
			if !exists {
				absent[o.id] = set[o.id]
			}
		}
		for _, at := range found[o.id] {
			dead.Add(at)
		}
	}
	if len(rows) == 0 && len(deletes) == 0 {
		return nil, rejects, nil
	}
	update := &lance.Update{PreservedFields: fieldIDs(base.Schema())}
	if len(rows) > 0 {
		rec := rowsOf(rows)
		defer rec.Release()
		f, err := writeOne(ctx, p.o.Store, base, rec)
		if err != nil {
			return nil, nil, err
		}
		update.NewFragments = []lance.Fragment{f}
	}
	if len(deletes) > 0 {
		if out.DeleteKeys, err = p.PutDeleteKeys(ctx, fold, t, deletes); err != nil {
			return nil, nil, err
		}
	}
	if update.UpdatedFragments, update.RemovedFragmentIDs, err = base.DeleteRows(ctx, dead); err != nil {
		return nil, nil, err
	}
	if update.Filter, err = fence.NewFilter(base.Schema(), absent.Hashes()); err != nil {
		return nil, nil, err
	}
	out.Tx, out.Affected = lance.NewTransaction(base, update), dead
	return out, rejects, nil
}

func planRejects(ctx context.Context, p *Publisher, snap *heads.Snapshot, rejects []Reject) (*PreparedTable, error) {
	t, _ := snap.Table(heads.RejectsKey)
	base, err := lance.Open(ctx, p.o.Store, heads.Join(p.o.Root, t.Path))
	if err != nil {
		return nil, err
	}
	rec := EncodeRejects(rejects)
	defer rec.Release()
	set := fence.KeySet{}
	if err := set.AddRecord(rec, []string{RejectKey}); err != nil {
		return nil, err
	}
	f, err := writeOne(ctx, p.o.Store, base, rec)
	if err != nil {
		return nil, err
	}
	update := &lance.Update{NewFragments: []lance.Fragment{f}, PreservedFields: fieldIDs(base.Schema())}
	if update.Filter, err = fence.NewFilter(base.Schema(), set.Hashes()); err != nil {
		return nil, err
	}
	return &PreparedTable{Table: t, Base: base, Tx: lance.NewTransaction(base, update), Inserted: len(rejects)}, nil
}

func rowsOf(ops []placed) arrow.Record {
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.BinaryTypes.String}, {Name: "v", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil))
	defer b.Release()
	for _, o := range ops {
		b.Field(0).(*array.StringBuilder).Append(o.id)
		b.Field(1).(*array.Int64Builder).Append(o.value)
	}
	return b.NewRecord()
}

// publishThrough plans and publishes one fold.
func publishThrough(ctx context.Context, p *Publisher, log []entry, through uint64) (*Published, error) {
	f, err := plan(ctx, p, log, through)
	if err != nil {
		return nil, err
	}
	return p.Publish(ctx, f)
}

// model is what a graph must hold: plain maps.
type model struct {
	tables  map[string]map[string]int64
	rejects map[string]bool
}

func newModel() *model {
	m := &model{tables: map[string]map[string]int64{}, rejects: map[string]bool{}}
	for _, key := range testTables {
		m.tables[key] = map[string]int64{}
	}
	return m
}

// apply folds entries (from, to] in order. A strict insert is judged against the state before the fold.
func (m *model) apply(log []entry, from, to uint64) {
	for seq := from + 1; seq <= to; seq++ {
		for i, o := range log[seq-1] {
			rows := m.tables[o.table]
			_, exists := rows[o.id]
			switch {
			case o.kind == "delete":
				delete(rows, o.id)
			case o.kind == "insert" && exists:
				m.rejects[Reject{Origin: Origin{Incarnation: testIncarnation, Seq: seq, Row: uint32(i)}}.ID()] = true
			default:
				rows[o.id] = o.value
			}
		}
	}
}

// content reads a table at its head. A key met twice is an error.
func content(ctx context.Context, store objstore.Store, snap *heads.Snapshot, key string) (map[string]int64, error) {
	t, err := snap.OpenTable(ctx, store, key)
	if err != nil {
		return nil, err
	}
	return contentOf(ctx, t)
}

func contentOf(ctx context.Context, t *lance.Table) (map[string]int64, error) {
	out := map[string]int64{}
	for rec, err := range t.Scan(ctx, lance.ScanOptions{Columns: []string{"id", "v"}}) {
		if err != nil {
			return nil, err
		}
		for i := range int(rec.NumRows()) {
			id := rec.Column(0).(*array.String).Value(i)
			if _, twice := out[id]; twice {
				rec.Release()
				return nil, fmt.Errorf("key %q met twice", id)
			}
			out[string([]byte(id))] = rec.Column(1).(*array.Int64).Value(i)
		}
		rec.Release()
	}
	if uint64(len(out)) != t.Rows() {
		return nil, fmt.Errorf("%d rows scanned, the manifest says %d", len(out), t.Rows())
	}
	return out, nil
}

func rejectIDs(ctx context.Context, store objstore.Store, snap *heads.Snapshot) (map[string]bool, error) {
	t, err := snap.OpenTable(ctx, store, heads.RejectsKey)
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	for rec, err := range t.Scan(ctx, lance.ScanOptions{Columns: []string{RejectKey}}) {
		if err != nil {
			return nil, err
		}
		for i := range int(rec.NumRows()) {
			id := string([]byte(rec.Column(0).(*array.String).Value(i)))
			if out[id] {
				rec.Release()
				return nil, fmt.Errorf("reject %q met twice", id)
			}
			out[id] = true
		}
		rec.Release()
	}
	return out, nil
}

// check compares a graph with the model of its published cut, and every head with the newest version (no other writer is there).
func (m *model) check(ctx context.Context, store objstore.Store, log []entry) error {
	snap, err := heads.Resolve(ctx, store, testRoot)
	if err != nil {
		return err
	}
	if err := m.compare(ctx, store, snap); err != nil {
		return err
	}
	for _, t := range snap.Tables {
		newest, err := lance.Open(ctx, store, heads.Join(testRoot, t.Path))
		if err != nil {
			return err
		}
		if name := newest.Metadata()[fence.MetaFold]; name > snap.FoldRecord {
			return fmt.Errorf("table %q holds fold %q, published is %q", t.Key, name, snap.FoldRecord)
		}
	}
	return nil
}

func (m *model) compare(ctx context.Context, store objstore.Store, snap *heads.Snapshot) error {
	for _, key := range testTables {
		got, err := content(ctx, store, snap, key)
		if err != nil {
			return fmt.Errorf("table %q: %w", key, err)
		}
		if !maps.Equal(got, m.tables[key]) {
			return fmt.Errorf("table %q holds %v, want %v", key, got, m.tables[key])
		}
	}
	got, err := rejectIDs(ctx, store, snap)
	if err != nil {
		return err
	}
	if !maps.Equal(got, m.rejects) {
		return fmt.Errorf("rejects are %v, want %v", got, m.rejects)
	}
	return nil
}

var errCrash = errors.New("test: the process is gone")
