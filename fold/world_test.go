package fold

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/fold/keyindex"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/envelope"
	"github.com/foldline/foldline/internal/envelope/rows"
	"github.com/foldline/foldline/internal/testkit"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/publisher"
	"github.com/foldline/foldline/wal"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// tester is what *testing.T and *rapid.T share.
type tester interface {
	require.TestingT
	Helper()
	Logf(format string, args ...any)
}

// world is a whole line without NATS: real logs, a real publisher, real Lance
// tables on a store in memory.
type world struct {
	t      tester
	ctx    context.Context
	store  objstore.Store
	specs  []publisher.TableSpec
	refs   map[string][]publisher.ReferenceSpec // by table key
	lanes  []*laneOwner
	opts   Options // for the next folder
	folder *Folder
	events []*publisher.Published

	indexFS vfs.FS // of the key index; nil = none
	index   *keyindex.Index

	publisherStep func(publisher.Step) // for the next folder
	retention     publisher.Retention  // of it
	clock         *manualClock         // of the next folder and its publisher; nil = the machine's
}

// manualClock stands until a test moves it.
type manualClock struct{ seconds atomic.Int64 }

func (c *manualClock) now() time.Time { return time.Unix(1_800_000_000+c.seconds.Load(), 0) }

// laneOwner is the owner of one lane.
type laneOwner struct {
	lane    uint32
	fs      vfs.FS
	log     *wal.Log
	schemas map[string]*arrow.Schema
	tables  map[string]wal.TableID
	stop    func()
}

// noteTable is the table that most tests use: a text key and a value.
func noteTable(key string) publisher.TableSpec {
	return publisher.TableSpec{Key: key, Columns: []heads.Column{
		{Name: "id", Type: "string"}, {Name: "value", Type: "int64", Nullable: true},
	}}
}

// noteTables are n of them, node:T0 and on.
func noteTables(n int) []publisher.TableSpec {
	specs := make([]publisher.TableSpec, n)
	for i := range specs {
		specs[i] = noteTable(fmt.Sprintf("node:T%d", i))
	}
	return specs
}

func newWorld(t tester, store objstore.Store, lanes int, specs ...publisher.TableSpec) *world {
	t.Helper()
	return newWorldOn(t, store, func() vfs.FS { return vfs.NewMem() }, lanes, specs...)
}

// newWorldOn is newWorld with a file system for the index, and one for each lane's log.
func newWorldOn(t tester, store objstore.Store, files func() vfs.FS, lanes int, specs ...publisher.TableSpec) *world {
	t.Helper()
	w := &world{t: t, ctx: context.Background(), store: store, specs: specs, indexFS: files()}
	_, err := publisher.Init(w.ctx, publisher.Options{Store: store}, publisher.InitSpec{Graph: "g", Lanes: uint32(lanes)})
	require.NoError(t, err)
	w.claim(store)
	for i := range lanes {
		o := &laneOwner{lane: uint32(i), fs: files()}
		w.lanes = append(w.lanes, o)
		w.open(o)
	}
	return w
}

// claim makes a new folder whose publisher and files go through store.
func (w *world) claim(store objstore.Store) {
	w.t.Helper()
	require.NoError(w.t, w.tryClaim(store))
}

func (w *world) publisherOptions(store objstore.Store) publisher.Options {
	o := publisher.Options{Store: store, Step: w.publisherStep, Retention: w.retention}
	if w.clock != nil {
		o.Clock = w.clock.now
	}
	return o
}

func (w *world) tryClaim(store objstore.Store) error {
	po := w.publisherOptions(store)
	if w.clock != nil {
		w.opts.Clock = w.clock.now
	}
	w.closeIndex()
	if w.indexFS != nil {
		var err error
		if w.index, err = keyindex.Open(keyindex.Options{Dir: "index", FS: w.indexFS}); err != nil {
			return err
		}
		po.Keys = w.index
	}
	p, err := publisher.Claim(w.ctx, po, "test")
	if err != nil {
		return err
	}
	for _, spec := range w.specs {
		if _, err := p.CreateTable(w.ctx, spec); err != nil {
			return err
		}
	}
	for key, refs := range w.refs {
		if _, err := p.SetReferences(w.ctx, key, refs); err != nil {
			return err
		}
	}
	w.folderOf(p, store, w.index)
	return nil
}

// folderOf makes the folder of a publisher.
func (w *world) folderOf(p Publisher, store objstore.Store, index *keyindex.Index) {
	w.t.Helper()
	o := w.opts
	o.Publisher, o.Store, o.Index, o.Decode = p, store, index, decodeRows
	o.Lanes = func(lane uint32) wal.Source {
		if int(lane) >= len(w.lanes) {
			return nil
		}
		return w.lanes[lane].log
	}
	if o.Notify == nil {
		o.Notify = func(_ context.Context, p *publisher.Published) { w.events = append(w.events, p) }
	}
	var err error
	w.folder, err = New(o)
	require.NoError(w.t, err)
}

// open opens the lane's log, claims the lane and runs the committer.
func (w *world) open(o *laneOwner) {
	w.t.Helper()
	log, err := wal.Open(w.ctx, wal.Options{Dir: "log", FS: o.fs, Graph: "g", Lane: o.lane, MinFreeBytes: -1})
	require.NoError(w.t, err)
	epoch, err := publisher.ClaimLane(w.ctx, publisher.Options{Store: w.store}, publisher.LaneClaim{Lane: o.lane, Incarnation: log.Incarnation()})
	require.NoError(w.t, err)
	require.NoError(w.t, log.Begin(wal.Epoch(epoch)))
	ctx, cancel := context.WithCancel(w.ctx)
	ended := make(chan error, 1)
	go func() { ended <- log.Run(ctx) }()
	o.log = log
	o.stop = func() {
		cancel()
		require.NoError(w.t, <-ended)
		require.NoError(w.t, log.Close())
	}
	o.learn(w)
}

// learn reads the tables' ids and schemas, as an ingester does.
func (o *laneOwner) learn(w *world) {
	snap := w.heads()
	o.schemas, o.tables = map[string]*arrow.Schema{}, map[string]wal.TableID{}
	for _, spec := range w.specs {
		table, ok := snap.Table(spec.Key)
		require.True(w.t, ok)
		schema, err := snap.ArrowSchema(table)
		require.NoError(w.t, err)
		relaxed := slices.Clone(schema.Fields())
		for i := range relaxed {
			relaxed[i].Nullable = !slices.Contains(table.PrimaryKey, relaxed[i].Name)
		}
		o.schemas[spec.Key] = arrow.NewSchema(relaxed, nil)
		o.tables[spec.Key] = wal.TableID(table.ID)
	}
}

func (w *world) closeIndex() {
	if w.index != nil {
		require.NoError(w.t, w.index.Close())
		w.index = nil
	}
}

func (w *world) close() {
	w.closeIndex()
	for _, o := range w.lanes {
		o.stop()
	}
}

func (w *world) heads() *heads.Snapshot {
	w.t.Helper()
	snap, err := heads.Resolve(w.ctx, w.store, "")
	require.NoError(w.t, err)
	return snap
}

// row is one row of a test: operation, then the values in column order; nil is
// null.
type row struct {
	op     wal.Op
	values []any
}

func upsert(values ...any) row { return row{wal.OpUpsert, values} }
func insert(values ...any) row { return row{wal.OpInsert, values} }
func remove(values ...any) row { return row{wal.OpDelete, values} }

// rowsOf builds the rows of one table; columns that a row does not name are null.
func (o *laneOwner) rowsOf(w *world, table string, rows ...row) wal.Rows {
	w.t.Helper()
	b := array.NewRecordBuilder(memory.DefaultAllocator, o.schemas[table])
	defer b.Release()
	out := wal.Rows{Table: o.tables[table]}
	for _, r := range rows {
		out.Ops = append(out.Ops, r.op)
		for i, field := range b.Fields() {
			if i >= len(r.values) || r.values[i] == nil {
				field.AppendNull()
				continue
			}
			require.NoError(w.t, field.AppendValueFromString(fmt.Sprint(r.values[i])))
		}
	}
	out.Record = b.NewRecord()
	return out
}

// write appends one entry and waits for its receipt.
func (w *world) write(table string, rows ...row) wal.Receipt {
	w.t.Helper()
	o := w.lanes[0]
	return w.append(o, wal.Entry{Rows: []wal.Rows{o.rowsOf(w, table, rows...)}})
}

func (w *world) append(o *laneOwner, e wal.Entry) wal.Receipt {
	w.t.Helper()
	type answer struct {
		receipt wal.Receipt
		err     error
	}
	answers := make(chan answer, 1)
	err := o.log.Append(w.ctx, e, func(r wal.Receipt, err error) { answers <- answer{r, err} })
	for _, r := range e.Rows {
		r.Record.Release()
	}
	require.NoError(w.t, err)
	got := <-answers
	require.NoError(w.t, got.err)
	return got.receipt
}

// fold folds until nothing is left and returns the sum of the reports.
func (w *world) fold() Report {
	w.t.Helper()
	var sum Report
	for {
		r, err := w.folder.FoldOnce(w.ctx)
		require.NoError(w.t, err)
		require.Empty(w.t, r.Lanes)
		if r.Empty() {
			return sum
		}
		sum.Fold = r.Fold
		sum.Entries += r.Entries
		sum.Rows += r.Rows
		sum.Tables += r.Tables
		sum.Inserted += r.Inserted
		sum.Updated += r.Updated
		sum.Deleted += r.Deleted
		sum.Missing += r.Missing
		sum.Rejected += r.Rejected
	}
}

// release lets every log go up to the published cut, as an ingester does.
func (w *world) release() {
	w.t.Helper()
	snap := w.heads()
	for _, o := range w.lanes {
		cut, ok := snap.Cut(o.lane, o.log.Incarnation())
		require.True(w.t, ok)
		if cut.Through > 0 {
			require.NoError(w.t, o.log.Release(w.ctx, wal.Seq(cut.Through)))
		}
	}
}

// scan reads a table at its head: one line of text for each row, sorted. Two
// rows of one key give two lines, so a duplicate shows.
func (w *world) scan(table string) []string {
	w.t.Helper()
	snap := w.heads()
	opened, err := snap.OpenTable(w.ctx, w.store, table)
	require.NoError(w.t, err)
	head, _ := snap.Table(table)
	out := w.scanVersion(opened)
	require.Len(w.t, out, int(head.Head.Rows), "the head's row count")
	return out
}

// scanVersion reads one version of a table, as scan does.
func (w *world) scanVersion(t *lance.Table) []string {
	w.t.Helper()
	var out []string
	for rec, err := range t.Scan(w.ctx, scanAll) {
		require.NoError(w.t, err)
		for i := range int(rec.NumRows()) {
			line := ""
			for c, column := range rec.Columns() {
				if c > 0 {
					line += "="
				}
				line += column.ValueStr(i)
			}
			out = append(out, line)
		}
		rec.Release()
	}
	slices.Sort(out)
	return out
}

// rejects lists "table op code row" of all dead letters, in the order of the log.
func (w *world) rejects() []string {
	w.t.Helper()
	opened, err := w.heads().OpenTable(w.ctx, w.store, heads.RejectsKey)
	require.NoError(w.t, err)
	var out []string
	seen := map[string]bool{}
	for rec, err := range opened.Scan(w.ctx, scanAll) {
		require.NoError(w.t, err)
		text := func(i int, column string) string {
			return rec.Column(rec.Schema().FieldIndices(column)[0]).ValueStr(i)
		}
		for i := range int(rec.NumRows()) {
			require.False(w.t, seen[text(i, "id")], "dead letter %s twice", text(i, "id"))
			seen[text(i, "id")] = true
			out = append(out, fmt.Sprintf("%s %s %s %s", text(i, "table"), text(i, "op"), text(i, "code"), text(i, "row")))
		}
		rec.Release()
	}
	return out
}

var errKilled = errors.New("killed")

// decodeRows is what the programs give a folder to read dead letters.
func decodeRows(t heads.Table, lines []JSONRow) (DecodedRows, error) {
	schema, err := heads.ArrowSchema(t.Columns)
	if err != nil {
		return DecodedRows{}, err
	}
	table, err := rows.NewTable(rows.Spec{Table: t.Key, ID: uint64(t.ID), Arrow: schema, Key: t.PrimaryKey})
	if err != nil {
		return DecodedRows{}, err
	}
	in := make([]rows.Line, len(lines))
	for i, l := range lines {
		op, _ := envelope.ParseOp(l.Op.String())
		in[i] = rows.Line{Op: op, Row: l.Row}
	}
	rec, refused, err := rows.NewDecoder(nil, rows.Limits{}).DecodeEach(table, in)
	out := DecodedRows{Record: rec, Refused: map[int]Refusal{}}
	for i, e := range refused {
		out.Refused[i] = Refusal{Code: string(e.Code), Field: e.Field, Reason: e.Reason}
	}
	return out, err
}

func (w *world) newestVersion(key string) uint64 {
	w.t.Helper()
	v, err := lance.LatestVersion(w.ctx, w.store, w.table(key).Path)
	require.NoError(w.t, err)
	return v
}

func (w *world) table(key string) heads.Table {
	w.t.Helper()
	t, ok := w.heads().Table(key)
	require.True(w.t, ok)
	return t
}

// rejectIDs are the ids of a table's dead letters, oldest first.
func (w *world) rejectIDs(key string) []string {
	w.t.Helper()
	rejects, err := w.heads().OpenTable(w.ctx, w.store, heads.RejectsKey)
	require.NoError(w.t, err)
	letters, _, err := w.folder.readLetters(w.ctx, rejects, w.table(key), Selection{})
	require.NoError(w.t, err)
	var ids []string
	for _, l := range letters {
		ids = append(ids, l.id)
	}
	return ids
}
