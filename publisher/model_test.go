package publisher

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/foldline/foldline/fence"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
)

// foreign writes to a table as another program would: through package lance alone.
type foreign struct{ store objstore.Store }

func (f foreign) open(ctx context.Context, key string) (*lance.Table, error) {
	return lance.Open(ctx, f.store, heads.Join(testRoot, heads.TablePath(key)))
}

// upsert is a fenced merge of one row, delete when value is nil.
func (f foreign) merge(ctx context.Context, key, id string, value *int64) error {
	t, err := f.open(ctx, key)
	if err != nil {
		return err
	}
	row := op{table: key, id: id}
	if value != nil {
		row.value = *value
	}
	rec := rowsOf([]placed{{op: row}})
	defer rec.Release()
	set := fence.KeySet{}
	if err := set.AddRecord(rec, []string{"id"}); err != nil {
		return err
	}
	found, err := fence.FindRows(ctx, t, set)
	if err != nil {
		return err
	}
	rows := fence.Rows{}
	for _, at := range found[id] {
		rows.Add(at)
	}
	update := &lance.Update{PreservedFields: fieldIDs(t.Schema())}
	if update.UpdatedFragments, update.RemovedFragmentIDs, err = t.DeleteRows(ctx, rows); err != nil {
		return err
	}
	inserted := fence.KeySet{}
	if value != nil {
		fr, err := writeOne(ctx, f.store, t, rec)
		if err != nil {
			return err
		}
		update.NewFragments = []lance.Fragment{fr}
		if len(found[id]) == 0 {
			inserted = set
		}
	}
	if update.Filter, err = fence.NewFilter(t.Schema(), inserted.Hashes()); err != nil {
		return err
	}
	_, err = t.Commit(ctx, lance.NewTransaction(t, update), lance.CommitOptions{Affected: rows})
	return err
}

// append is an unfenced append of one row.
func (f foreign) append(ctx context.Context, key, id string, value int64) error {
	t, err := f.open(ctx, key)
	if err != nil {
		return err
	}
	rec := rowsOf([]placed{{op: op{table: key, id: id, value: value}}})
	defer rec.Release()
	fr, err := writeOne(ctx, f.store, t, rec)
	if err != nil {
		return err
	}
	_, err = t.Commit(ctx, lance.NewTransaction(t, &lance.Append{Fragments: []lance.Fragment{fr}}), lance.CommitOptions{})
	return err
}

// config is a commit that touches no row.
func (f foreign) config(ctx context.Context, key string) error {
	t, err := f.open(ctx, key)
	if err != nil {
		return err
	}
	_, err = t.Commit(ctx, lance.NewTransaction(t, &lance.UpdateConfig{TableMetadata: &lance.MapUpdate{Set: map[string]string{"their": "key"}}}), lance.CommitOptions{})
	return err
}

// machine is a graph under random folds, crashes, takeovers and foreign commits, beside a model of the newest version of every table.
type machine struct {
	store objstore.Store
	log   []entry
	p     *Publisher

	mu      sync.Mutex
	model   *model                       // guarded by mu
	pending map[string]map[string]placed // by table: operations of the fold in flight that have not landed; guarded by mu
	record  string                       // name of that fold
	lost    map[string]bool              // rejects that it will bring
	err     error                        // of a hook; guarded by mu
	plan    map[string]string            // foreign commits to make at steps
}

// land applies the pending operations of tables that name the fold in flight. It runs before anything else touches a table.
func (m *machine) land(ctx context.Context, tables ...string) error {
	for _, key := range tables {
		ops, ok := m.pending[key]
		if !ok {
			continue
		}
		t, err := foreign{m.store}.open(ctx, key)
		if err != nil {
			return err
		}
		if t.Metadata()[fence.MetaFold] != m.record {
			continue
		}
		delete(m.pending, key)
		rows := m.model.tables[key]
		for _, id := range slices.Sorted(maps.Keys(ops)) {
			o := ops[id]
			_, exists := rows[id]
			switch {
			case o.kind == "delete":
				delete(rows, id)
			case o.kind == "insert" && exists:
				m.lost[Reject{Origin: o.origin}.ID()] = true
			default:
				rows[id] = o.value
			}
		}
	}
	return nil
}

// hook runs at every step of a publish, on the goroutine of the table's commit: it settles the model, then lets a foreign writer in.
func (m *machine) hook(s Step) {
	m.mu.Lock()
	defer m.mu.Unlock()
	name, isCommit := strings.CutPrefix(string(s), "commit.")
	if !isCommit || m.err != nil {
		return
	}
	key, _, _ := cutLast(name, ".")
	if !slices.Contains(testTables, key) {
		return
	}
	ctx := context.Background()
	if m.err = m.land(ctx, key); m.err != nil {
		return
	}
	if act, ok := m.plan[string(s)]; ok {
		delete(m.plan, string(s))
		m.err = m.foreign(ctx, key, act)
	}
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// foreign makes one foreign commit and applies it to the model. act is "<what> <id>".
func (m *machine) foreign(ctx context.Context, key, act string) error {
	what, id, _ := strings.Cut(act, " ")
	f, value := foreign{m.store}, int64(1000+len(act))
	switch what {
	case "merge":
		m.model.tables[key][id] = value
		return f.merge(ctx, key, id, &value)
	case "delete":
		delete(m.model.tables[key], id)
		return f.merge(ctx, key, id, nil)
	case "append": // of a key that is not there: an unfenced writer cannot be kept from making duplicates
		if _, exists := m.model.tables[key][id]; exists || m.touches(key, id) {
			return nil
		}
		m.model.tables[key][id] = value
		return f.append(ctx, key, id, value)
	}
	return f.config(ctx, key)
}

// touches tells whether the fold in flight, landed or not, has an operation on a key.
func (m *machine) touches(key, id string) bool {
	for _, e := range m.log {
		for _, o := range e {
			if o.table == key && o.id == id {
				return true
			}
		}
	}
	return false
}

// begin sets the model up for a prepared fold.
func (m *machine) begin(f *Prepared) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pending, m.lost, m.record = map[string]map[string]placed{}, map[string]bool{}, recordName(f.Fold, m.p.epoch)
	for seq := f.Previous[0].Through + 1; seq <= f.Cut[0].Through; seq++ {
		for i, o := range m.log[seq-1] {
			pl := placed{op: o, origin: Origin{Incarnation: testIncarnation, Seq: seq, Row: uint32(i)}}
			_, exists := m.model.tables[o.table][o.id]
			if o.kind == "insert" && exists {
				m.lost[Reject{Origin: pl.origin}.ID()] = true
				continue
			}
			if m.pending[o.table] == nil {
				m.pending[o.table] = map[string]placed{}
			}
			m.pending[o.table][o.id] = pl
		}
	}
}

// settle ends a fold in flight: complete when it was published or its completion has been, dropped when no table holds it.
func (m *machine) settle(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return m.err
	}
	if err := m.land(ctx, testTables...); err != nil {
		return err
	}
	snap, err := heads.Resolve(ctx, m.store, testRoot)
	if err != nil {
		return err
	}
	if snap.FoldRecord != m.record {
		return nil
	}
	if len(m.pending) > 0 {
		return fmt.Errorf("fold %s is published, but not in %v", m.record, slices.Collect(maps.Keys(m.pending)))
	}
	maps.Copy(m.model.rejects, m.lost)
	m.record = ""
	return nil
}

func (m *machine) claim(t *rapid.T) {
	o := options(m.store)
	o.Step = m.hook
	p, err := Claim(context.Background(), o, "folder")
	require.NoError(t, err)
	m.p = p
	require.NoError(t, m.settle(context.Background()))
}

// drawEntries appends entries with at most one operation per key, so that a fold's outcome does not hang on where it was cut.
func (m *machine) drawEntries(t *rapid.T, folded uint64) {
	used := map[string]bool{}
	for _, e := range m.log[folded:] { // of a plan that a crash dropped
		for _, o := range e {
			used[o.table+o.id] = true
		}
	}
	for range rapid.IntRange(1, 4).Draw(t, "entries") {
		var e entry
		for range rapid.IntRange(1, 3).Draw(t, "rows") {
			o := op{table: rapid.SampledFrom(testTables).Draw(t, "table"), id: rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "id"),
				value: int64(len(m.log)), kind: rapid.SampledFrom([]string{"upsert", "upsert", "insert", "delete"}).Draw(t, "kind")}
			if !used[o.table+o.id] {
				used[o.table+o.id] = true
				e = append(e, o)
			}
		}
		if len(e) > 0 {
			m.log = append(m.log, e)
		}
	}
}

// fold publishes everything, with foreign commits in between and perhaps a crash.
func (m *machine) fold(t *rapid.T) {
	ctx := context.Background()
	snap, err := m.p.Refresh(ctx)
	require.NoError(t, err)
	cut, _ := snap.Cut(0, testIncarnation)
	m.drawEntries(t, cut.Through)
	if cut.Through == uint64(len(m.log)) {
		return
	}
	m.plan = map[string]string{}
	for range rapid.IntRange(0, 3).Draw(t, "foreign commits") {
		step := "commit." + rapid.SampledFrom(testTables).Draw(t, "at table") + "." + rapid.SampledFrom([]string{"before", "after"}).Draw(t, "when")
		m.plan[step] = drawForeign(t)
	}
	crash := rapid.IntRange(0, 14).Draw(t, "crash at write")
	if crash > 0 {
		store, _ := cutOff(m.store, crash, rapid.Bool().Draw(t, "after it"))
		m.p.moveTo(ctx, t, store)
	}
	f, err := plan(ctx, m.p, m.log, uint64(len(m.log)))
	if err == nil {
		m.begin(f)
		_, err = m.p.Publish(ctx, f)
	}
	require.NoError(t, m.settle(ctx))
	if err != nil {
		require.ErrorIs(t, err, errCrash)
		m.claim(t)
		return
	}
	if crash > 0 {
		m.p.moveTo(ctx, t, m.store)
	}
}

func drawForeign(t *rapid.T) string {
	return rapid.SampledFrom([]string{"merge", "merge", "delete", "append", "config"}).Draw(t, "what") + " " +
		rapid.SampledFrom([]string{"a", "b", "c", "f", "g"}).Draw(t, "key")
}

func (m *machine) between(t *rapid.T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := rapid.SampledFrom(testTables).Draw(t, "table")
	require.NoError(t, m.foreign(context.Background(), key, drawForeign(t)))
}

// check compares the newest version of every table with the model: nobody else is writing now.
func (m *machine) check(t *rapid.T) {
	ctx := context.Background()
	for _, key := range testTables {
		table, err := foreign{m.store}.open(ctx, key)
		require.NoError(t, err)
		got, err := contentOf(ctx, table)
		require.NoError(t, err)
		require.Equal(t, m.model.tables[key], got, key)
	}
	snap, err := heads.Resolve(ctx, m.store, testRoot)
	require.NoError(t, err)
	got, err := rejectIDs(ctx, m.store, snap)
	require.NoError(t, err)
	require.Equal(t, m.model.rejects, got)
}

// TestModel runs random histories of folds, crashes, takeovers and foreign commits between any two table commits, against plain maps: F2, F4, F5,
// X1, X2, P2.
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		store := objstore.NewMemory()
		m := &machine{store: store, model: newModel(), p: newGraph(t, store)}
		m.p.o.Step = m.hook
		rt.Repeat(map[string]func(*rapid.T){
			"":         m.check,
			"fold":     m.fold,
			"takeover": m.claim,
			"foreign":  m.between,
		})
	})
}
