package fold

import (
	"fmt"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/countstore"
	"github.com/foldline/foldline/publisher"
)

// pairTable has a key of two columns.
func pairTable(key string) publisher.TableSpec {
	return publisher.TableSpec{Key: key, PrimaryKey: []string{"a", "b"}, Columns: []heads.Column{
		{Name: "a", Type: "string"}, {Name: "b", Type: "int64"}, {Name: "value", Type: "int64", Nullable: true},
	}}
}

// appendPairs appends rows to a table of pairs without a look at what is there.
func (w *world) appendPairs(t *lance.Table, rows ...[3]any) *lance.Table {
	w.t.Helper()
	b := array.NewRecordBuilder(memory.DefaultAllocator, t.Schema().Arrow())
	defer b.Release()
	for _, r := range rows {
		for i, v := range r {
			require.NoError(w.t, b.Field(i).AppendValueFromString(fmt.Sprint(v)))
		}
	}
	rec := b.NewRecord()
	defer rec.Release()
	fw := t.NewFragmentWriter(w.ctx, lance.WriteOptions{})
	require.NoError(w.t, fw.Write(rec))
	fragments, err := fw.Finish()
	require.NoError(w.t, err)
	done, err := t.Commit(w.ctx, lance.NewTransaction(t, &lance.Append{Fragments: fragments}), lance.CommitOptions{})
	require.NoError(w.t, err)
	return done.Table
}

// repeated requires what the head of a table says of repeated keys, and the state that goes with it.
func (w *world) repeated(key string, want heads.Duplicates) {
	w.t.Helper()
	head := w.table(key).Head
	require.Equal(w.t, want, head.Duplicates)
	state := heads.StateLive
	if want.Keys > 0 {
		state = heads.StateDuplicateKeys
	}
	require.Equal(w.t, state, head.State)
}

// adopt adopts, and tells whether that was a graph commit.
func (w *world) adopt() bool {
	w.t.Helper()
	before := w.heads().Version
	_, err := w.folder.publisher.Adopt(w.ctx)
	require.NoError(w.t, err)
	after := w.heads().Version
	require.LessOrEqual(w.t, after, before+1)
	return after > before
}

// eachIndex runs a test with a key index and without one.
func eachIndex(t *testing.T, run func(t *testing.T, indexed bool, w *world), specs ...publisher.TableSpec) {
	for _, indexed := range []bool{true, false} {
		t.Run(map[bool]string{true: "with an index", false: "by scans"}[indexed], func(t *testing.T) {
			w := newWorldOn(t, objstore.NewMemory(), func() vfs.FS { return vfs.NewMem() }, 1, specs...)
			defer w.close()
			if !indexed {
				w.indexFS = nil
				w.claim(w.store)
			}
			run(t, indexed, w)
		})
	}
}

// TestRepeatedKeysOfAnEnrolledTable: a table that comes with two live rows of some keys is taken over in state duplicate_keys, which names them; an insert
// of one is refused, an upsert replaces both rows by one, a delete removes both, and the state goes with the last of them (report C60). A key of two columns.
func TestRepeatedKeysOfAnEnrolledTable(t *testing.T) {
	eachIndex(t, func(t *testing.T, _ bool, w *world) {
		schema, err := lance.NewSchema(arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.BinaryTypes.String}, {Name: "b", Type: arrow.PrimitiveTypes.Int64},
			{Name: "value", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil), []string{"a", "b"})
		require.NoError(t, err)
		theirs, err := lance.Create(w.ctx, w.store, "theirs.lance", schema, lance.CreateOptions{})
		require.NoError(t, err)
		theirs = w.appendPairs(theirs, [3]any{"x", 1, 10}, [3]any{"x", 2, 20}, [3]any{"y", 1, 30}, [3]any{"y", 1, 31})
		w.appendPairs(theirs, [3]any{"x", 1, 11}, [3]any{"z", 1, 40}, [3]any{"z", 1, 41}, [3]any{"z", 1, 42})
		_, err = w.folder.publisher.(*publisher.Publisher).EnrolTable(w.ctx, publisher.EnrolSpec{Path: "theirs.lance", TableSpec: publisher.TableSpec{Key: "node:P"}})
		require.NoError(t, err)
		w.specs = []publisher.TableSpec{pairTable("node:P")}
		w.lanes[0].learn(w)
		w.repeated("node:P", heads.Duplicates{Keys: 3, Sample: `{"a":"x","b":1}, {"a":"y","b":1}, {"a":"z","b":1}`})

		w.write("node:P", insert("x", 1, 12), insert("x", 3, 50))
		require.Equal(t, 1, w.fold().Rejected)
		require.Equal(t, []string{`node:P insert key_exists {"a":"x","b":1,"value":12}`}, w.rejects())
		require.Equal(t, uint64(3), w.table("node:P").Head.Duplicates.Keys)

		w.write("node:P", upsert("x", 1, 13))
		w.fold()
		require.Equal(t, []string{"x=1=13", "x=2=20", "x=3=50", "y=1=30", "y=1=31", "z=1=40", "z=1=41", "z=1=42"}, w.scan("node:P"))
		require.Equal(t, uint64(2), w.table("node:P").Head.Duplicates.Keys)
		require.Equal(t, heads.StateDuplicateKeys, w.table("node:P").Head.State)

		w.write("node:P", remove("y", 1), remove("z", 1))
		w.fold()
		require.Equal(t, []string{"x=1=13", "x=2=20", "x=3=50"}, w.scan("node:P"))
		w.repeated("node:P", heads.Duplicates{})
	}, noteTable("node:T"))
}

// TestRepeatedKeysOfForeignAppends: what an append of another engine does to a table that the index knows is in the heads with the adoption or the publish
// that shows it, in that one graph commit, and nothing is committed when nothing has changed; their delete takes it back
// (report C61).
func TestRepeatedKeysOfForeignAppends(t *testing.T) {
	w := newWorld(t, objstore.NewMemory(), 1, noteTable("node:T"), noteTable("node:Idle"))
	defer w.close()
	w.write("node:T", upsert("a", 1), upsert("b", 1))
	w.write("node:Idle", upsert("a", 1), upsert("b", 1))
	w.fold()
	w.adopt() // the barriers of the claim
	require.False(t, w.adopt())

	w.foreign("node:Idle", false, map[string]int64{"b": 2, "c": 2})
	require.True(t, w.adopt())
	w.repeated("node:Idle", heads.Duplicates{Keys: 1, Sample: `{"id":"b"}`})
	require.False(t, w.adopt(), "nothing has changed")

	w.foreign("node:T", false, map[string]int64{"a": 2})
	w.write("node:T", upsert("c", 3))
	w.fold()
	w.repeated("node:T", heads.Duplicates{Keys: 1, Sample: `{"id":"a"}`})
	require.False(t, w.adopt(), "the publish has said it")
	w.write("node:T", upsert("a", 3))
	w.fold()
	w.repeated("node:T", heads.Duplicates{})

	w.foreignDelete("node:Idle", "b")
	require.True(t, w.adopt())
	w.repeated("node:Idle", heads.Duplicates{})
	require.False(t, w.adopt())
	require.Equal(t, []string{"a=1", "c=2"}, w.scan("node:Idle"))
}

// TestRepeatedKeysMetByAScan: a folder without an index finds what its rows touch. It says that there may be more, goes on to count from what it has said,
// and counts anew when another writer has moved a table in that state.
func TestRepeatedKeysMetByAScan(t *testing.T) {
	w := newWorldOn(t, objstore.NewMemory(), func() vfs.FS { return vfs.NewMem() }, 1, noteTable("node:T"))
	defer w.close()
	w.indexFS = nil
	w.claim(w.store)
	w.write("node:T", upsert("a", 1), upsert("b", 1), upsert("c", 1))
	w.fold()
	w.foreign("node:T", false, map[string]int64{"a": 2, "b": 2, "c": 2})
	require.True(t, w.adopt())
	w.repeated("node:T", heads.Duplicates{}) // not looked for
	w.write("node:T", insert("a", 3))
	require.Equal(t, 1, w.fold().Rejected)
	w.repeated("node:T", heads.Duplicates{Keys: 1, Stale: true, Sample: `{"id":"a"}`})
	require.True(t, w.adopt(), "a table that is known to have some is searched")
	w.repeated("node:T", heads.Duplicates{Keys: 3, Sample: `{"id":"a"}, {"id":"b"}, {"id":"c"}`})
	require.False(t, w.adopt())
	w.write("node:T", upsert("a", 4), insert("b", 4))
	w.fold()
	w.repeated("node:T", heads.Duplicates{Keys: 2, Sample: `{"id":"b"}`})
	w.foreignDelete("node:T", "b")
	require.True(t, w.adopt())
	w.repeated("node:T", heads.Duplicates{Keys: 1, Sample: `{"id":"c"}`})
	w.write("node:T", remove("c"))
	w.fold()
	w.repeated("node:T", heads.Duplicates{})
	require.Equal(t, []string{"a=4"}, w.scan("node:T"))
}

// TestRepeatedKeysSurviveATakeover: a new folder finds the state that the former one has published. One whose index has the table says the same; one that
// knows nothing, or whose table is paused in between, leaves it alone.
func TestRepeatedKeysSurviveATakeover(t *testing.T) {
	w := newWorld(t, objstore.NewMemory(), 1, noteTable("node:T"))
	defer w.close()
	w.write("node:T", upsert("a", 1), upsert("b", 1))
	w.fold()
	w.foreign("node:T", false, map[string]int64{"a": 2, "b": 2})
	require.True(t, w.adopt())
	want := heads.Duplicates{Keys: 2, Sample: `{"id":"a"}, {"id":"b"}`}
	w.repeated("node:T", want)

	s, _ := standbyOf(t, w)
	require.NoError(t, s.FollowOnce(w.ctx))
	own := w.index
	takeOver(t, w, s)
	w.repeated("node:T", want)
	require.True(t, w.adopt(), "the barrier")
	w.repeated("node:T", want)

	w.indexFS = vfs.NewMem() // a cold index
	require.NoError(t, own.Close())
	w.index = nil
	w.claim(w.store)
	w.repeated("node:T", want)
	_, err := w.folder.publisher.Pause(w.ctx, "node:T", "test", w.folder.opts.Clock().Add(1<<40))
	require.NoError(t, err)
	require.Equal(t, want, w.table("node:T").Head.Duplicates, "kept while it is paused")
	_, err = w.folder.publisher.Resume(w.ctx, "node:T")
	require.NoError(t, err)
	w.repeated("node:T", want)
	w.write("node:T", upsert("a", 3))
	w.fold()
	w.repeated("node:T", heads.Duplicates{Keys: 1, Sample: `{"id":"b"}`})
	w.write("node:T", remove("b"))
	w.fold()
	w.repeated("node:T", heads.Duplicates{})
	require.Equal(t, []string{"a=3"}, w.scan("node:T"))
	w.adopt() // the barriers of the claim
	require.False(t, w.adopt())
}

// TestRepeatedKeysBetweenPlanAndCommit: an append that comes in between plan and commit repeats keys that the fold writes, whose rows go, and others, which
// the publish names (report C60).
func TestRepeatedKeysBetweenPlanAndCommit(t *testing.T) {
	eachIndex(t, func(t *testing.T, indexed bool, w *world) {
		w.write("node:T", upsert("a", 1), upsert("b", 1))
		w.fold()
		once := false
		w.opts.Step = func(s string) {
			if s == "prepared" && !once {
				once = true
				w.foreign("node:T", false, map[string]int64{"a": 100, "b": 100, "c": 100})
			}
		}
		w.claim(w.store)
		w.write("node:T", upsert("a", 2), insert("c", 2), upsert("new", 2))
		require.Equal(t, 1, w.fold().Rejected)
		require.Equal(t, []string{"a=2", "b=1", "b=100", "c=100", "new=2"}, w.scan("node:T"))
		if indexed {
			w.repeated("node:T", heads.Duplicates{Keys: 1, Sample: `{"id":"b"}`})
		}
		require.False(t, w.adopt())
		require.Equal(t, map[bool]uint64{true: 1}[indexed], w.table("node:T").Head.Duplicates.Keys, "without an index nobody has looked")
	}, noteTable("node:T"))
}

// TestRepeatedKeysAreMeasured: the number is shown by table as long as there are any, and then once as 0.
func TestRepeatedKeysAreMeasured(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	w := newWorld(t, objstore.NewMemory(), 1, noteTable("node:T"))
	defer w.close()
	w.opts.Meter = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("fold")
	w.claim(w.store)
	keys := func() map[string]int64 {
		var all metricdata.ResourceMetrics
		require.NoError(t, reader.Collect(w.ctx, &all))
		out := map[string]int64{}
		for _, m := range all.ScopeMetrics[0].Metrics {
			if g, ok := m.Data.(metricdata.Gauge[int64]); ok && m.Name == "foldline.fold.duplicate_keys" {
				for _, p := range g.DataPoints {
					table, _ := p.Attributes.Value("table")
					out[table.AsString()] = p.Value
				}
			}
		}
		return out
	}
	w.write("node:T", upsert("a", 1), upsert("b", 1))
	w.fold()
	require.Empty(t, keys())
	w.foreign("node:T", false, map[string]int64{"a": 2, "b": 2})
	w.adopt()
	w.fold()
	require.Equal(t, map[string]int64{"node:T": 2}, keys())
	w.write("node:T", upsert("a", 3), remove("b"))
	w.fold()
	require.Equal(t, map[string]int64{"node:T": 0}, keys())
}

// TestRepeatedKeysOutliveACompaction: it moves rows and changes none, so the head says what it said, and a delete of the key still finds both rows.
func TestRepeatedKeysOutliveACompaction(t *testing.T) {
	eachIndex(t, func(t *testing.T, _ bool, w *world) {
		w.write("node:T", upsert("a", 1), upsert("b", 1))
		w.fold()
		w.foreign("node:T", false, map[string]int64{"a": 2})
		w.adopt()
		w.write("node:T", insert("a", 3), upsert("c", 3))
		w.fold()
		w.adopt()
		want := heads.Duplicates{Keys: 1, Sample: `{"id":"a"}`}
		w.repeated("node:T", want)
		done, err := w.folder.compact(w.ctx, "node:T", requestedFragments)
		require.NoError(t, err)
		require.NotNil(t, done.Table)
		w.repeated("node:T", want)
		require.False(t, w.adopt())
		w.write("node:T", remove("a"))
		w.fold()
		w.repeated("node:T", heads.Duplicates{})
		require.Equal(t, []string{"b=1", "c=3"}, w.scan("node:T"))
	}, noteTable("node:T"))
}

// TestPlannedAgainReadsTheDelta: a commit that is planned again behind another writer reads what that one has added, whatever the table holds, when there is
// a key index; without one it scans the key columns of all fragments.
func TestPlannedAgainReadsTheDelta(t *testing.T) {
	reads := func(indexed bool, fragments int) int {
		store := countstore.New(objstore.NewMemory())
		w := newWorld(t, store, 1, noteTable("node:T"))
		defer w.close()
		if !indexed {
			w.indexFS = nil
			w.claim(store)
		}
		for i := range fragments {
			w.write("node:T", upsert(fmt.Sprint("old-", i), 1))
			w.fold()
		}
		w.folder.opts.Step = func(s string) {
			if s == "prepared" {
				w.foreign("node:T", false, map[string]int64{"new": 100})
				store.Reset()
			}
		}
		w.write("node:T", upsert("new", 2))
		w.fold()
		n := 0
		for _, calls := range readOf(store) {
			n += calls
		}
		require.Contains(t, w.scan("node:T"), "new=2")
		require.Len(t, w.scan("node:T"), fragments+1)
		return n
	}
	few, many := reads(true, 3), reads(true, 30)
	require.Equal(t, 2, few, "the file that was added, and that of the fold")
	require.Equal(t, few, many)
	require.Equal(t, 27, reads(false, 30)-reads(false, 3), "a request for each small fragment")
}
