package publisher

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/foldline/foldline/fence"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/countstore"
	"github.com/foldline/foldline/objstore/faultstore"
)

var manifestRoot = heads.Join(testRoot, heads.ManifestPath)

// aheadLog is a fold of one row, then one of all tables without dead letters: its tables are confirmed side by side.
func aheadLog() []entry {
	var all entry
	for i, key := range testTables {
		all = append(all, op{key, "a", int64(i), "upsert"}, op{key, fmt.Sprint("k", i), 1, "insert"})
	}
	return []entry{{{testTables[0], "a", 9, "upsert"}}, all}
}

// aheadWorld is a folder that has the second fold of aheadLog to publish, on a store whose calls can be counted and disturbed.
type aheadWorld struct {
	t      *testing.T
	inner  objstore.Store
	counts *countstore.Store
	p      *Publisher
	fold   *Prepared
	reader *metric.ManualReader
	armed  atomic.Bool
}

// newAheadWorld makes one whose calls are disturbed while it publishes.
func newAheadWorld(t *testing.T, disturb faultstore.Injector) *aheadWorld {
	t.Helper()
	ctx := context.Background()
	w := &aheadWorld{t: t, inner: objstore.NewMemory(), reader: metric.NewManualReader()}
	newGraph(t, w.inner)
	w.counts = countstore.New(w.inner)
	o := options(w.counts)
	o.Meter = metric.NewMeterProvider(metric.WithReader(w.reader)).Meter("publisher")
	var err error
	w.p, err = Claim(ctx, o, "folder")
	require.NoError(t, err)
	_, err = publishThrough(ctx, w.p, aheadLog(), 1)
	require.NoError(t, err)
	require.NoError(t, w.p.Tidy(ctx))
	w.p.moveTo(ctx, t, faultstore.New(w.counts, func(ctx context.Context, c faultstore.Call) faultstore.Fault {
		if !w.armed.Load() {
			return faultstore.Fault{}
		}
		return disturb(ctx, c)
	}))
	w.fold, err = plan(ctx, w.p, aheadLog(), 2)
	require.NoError(t, err)
	return w
}

func (w *aheadWorld) publish() (*Published, error) {
	w.counts.Reset()
	w.armed.Store(true)
	defer w.armed.Store(false)
	return w.p.Publish(context.Background(), w.fold)
}

// confirms matches the LIST that confirms the commit to a table.
func confirms(key string) faultstore.Match {
	return faultstore.Under(tableRoot(key)+"/_versions/", faultstore.List)
}

var (
	uploadsHeads = faultstore.Under(manifestRoot+"/data/", faultstore.Commit)
	putsHeads    = faultstore.Under(manifestRoot+"/_versions/", faultstore.PutIfAbsent)
)

// beside are the calls of a publish that are made side by side: the heads' file is uploaded while each table is confirmed.
func beside() []faultstore.Match {
	out := []faultstore.Match{uploadsHeads}
	for _, key := range testTables {
		out = append(out, confirms(key))
	}
	return out
}

// dropped is how many files were uploaded ahead in vain.
func (w *aheadWorld) dropped() int64 {
	w.t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(w.t, w.reader.Collect(context.Background(), &all))
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name == "foldline.publish.redrafts" {
				return m.Data.(metricdata.Sum[int64]).DataPoints[0].Value
			}
		}
	}
	return 0
}

// holds requires that the heads show the rows, and that each data file of the manifest is named by one of its versions.
func (w *aheadWorld) holds(more map[string]map[string]int64) *heads.Snapshot {
	w.t.Helper()
	ctx := context.Background()
	snap, err := heads.Resolve(ctx, w.inner, testRoot)
	require.NoError(w.t, err)
	want := wholeModel(aheadLog())
	for key, rows := range more {
		for id, v := range rows {
			want.tables[key][id] = v
		}
	}
	require.NoError(w.t, want.compare(ctx, w.inner, snap))
	w.requireNoOrphans()
	return snap
}

func (w *aheadWorld) requireNoOrphans() {
	w.t.Helper()
	ctx := context.Background()
	named := map[string]bool{}
	newest, err := lance.Open(ctx, w.inner, manifestRoot)
	require.NoError(w.t, err)
	for v := newest.Version(); v > 0; v-- {
		at, err := newest.At(ctx, v)
		require.NoError(w.t, err)
		for _, f := range at.Fragments() {
			for _, file := range f.Files() {
				named[dataPath(manifestRoot, file.Path)] = true
			}
		}
	}
	files, err := w.inner.List(ctx, manifestRoot+"/data/", "", 0)
	require.NoError(w.t, err)
	for _, f := range files {
		require.True(w.t, named[f.Key], "%s is named by no version", f.Key)
	}
}

// TestHeadsAheadInEveryOrder lets the upload of the heads' file and the tables' confirmations end in every order: the heads' manifest is put when all of them
// have, the requests are the same ones, and no file is made in vain.
func TestHeadsAheadInEveryOrder(t *testing.T) {
	t.Parallel()
	for _, order := range permutations(beside()) {
		w := newAheadWorld(t, faultstore.InOrder(nil, order...))
		_, err := w.publish()
		require.NoError(t, err)
		require.Equal(t, requests{put: 1 + len(testTables) + 2, list: len(testTables) + 1}, counted(w.counts.Counts()))
		calls := w.counts.Calls()
		slot := slices.IndexFunc(calls, func(c countstore.Call) bool { return putsHeads(faultstore.Call{Op: faultstore.Op(c.Op), Key: c.Key}) })
		require.Equal(t, len(calls)-2, slot, "the manifest is put when all else has ended, and checked: %v", calls)
		require.Zero(t, w.dropped())
		w.holds(nil)
	}
}

// permutations are all orders of some things.
func permutations[T any](of []T) [][]T {
	if len(of) == 0 {
		return [][]T{nil}
	}
	var out [][]T
	for i := range of {
		for _, rest := range permutations(slices.Delete(slices.Clone(of), i, i+1)) {
			out = append(out, append([]T{of[i]}, rest...))
		}
	}
	return out
}

// Crash C11, c4: the folder dies between the early upload of the heads' file and each of the tables' confirmations, wherever the upload stands among them. The
// fold is completed once.
func TestCrashC11BesideTheHeadsAhead(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for at := range beside() {
		order := slices.Insert(beside()[1:], at, uploadsHeads)
		puts := len(testTables)
		for _, key := range testTables {
			order = slices.Insert(order, 0, faultstore.Under(tableRoot(key)+"/_versions/", faultstore.PutIfAbsent))
		}
		for ended := 1; ended <= len(order)-puts; ended++ {
			life, die := context.WithCancel(ctx)
			dies := faultstore.InOrder(func(n int) {
				if n == puts+ended {
					die()
				}
			}, order...)
			w := newAheadWorld(t, func(_ context.Context, c faultstore.Call) (f faultstore.Fault) {
				if life.Err() == nil {
					f = dies(life, c)
				}
				if life.Err() != nil { // a call that was held up is not made any more
					f.Before = errCrash
				}
				return f
			})
			_, err := w.publish()
			name := fmt.Sprintf("upload at %d, %d ended", at, ended)
			require.ErrorIs(t, err, errCrash, name)
			snap, err := heads.Resolve(ctx, w.inner, testRoot)
			require.NoError(t, err)
			require.Equal(t, w.fold.Fold-1, snap.Fold, name)
			p, err := Claim(ctx, options(w.inner), "successor")
			require.NoError(t, err)
			require.Equal(t, w.fold.Fold, p.Recovered().Commit.Fold, name)
			require.NoError(t, wholeModel(aheadLog()).check(ctx, w.inner, aheadLog()), name)
		}
	}
}

// TestHeadsAheadThatDoNotStand: a table is not what it was put as when it is confirmed, after the heads' file was uploaded. The file is dropped and counted, and
// the heads show what the tables have become. It is used where nothing has changed for the heads.
func TestHeadsAheadThatDoNotStand(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	first := testTables[0]
	for name, c := range map[string]struct {
		// before is done ahead of the publish, between by another program when the file is there and the table not confirmed.
		before, between func(f foreign) error
		more            map[string]map[string]int64
		state           heads.State
		dropped         int64
	}{
		"nothing happens": {state: heads.StateLive},
		"another commit stands on ours": {
			between: func(f foreign) error { return f.append(ctx, first, "theirs", 5) }, state: heads.StateLive,
		},
		"it was put into a hole": {
			before: func(f foreign) error {
				for i := range int64(3) {
					if err := f.append(ctx, first, fmt.Sprint("f", i), i); err != nil {
						return err
					}
				}
				return f.cleanUp(ctx, first)
			},
			more: map[string]map[string]int64{first: {"f0": 0, "f1": 1, "f2": 2}}, state: heads.StateLive, dropped: 1,
		},
		"it is overwritten": {
			between: func(f foreign) error { return f.overwrite(ctx, first) }, state: heads.StateReplaced, dropped: 1,
		},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			between := func() {}
			w := newAheadWorld(t, faultstore.InOrder(func(n int) {
				if n == 1 {
					between()
				}
			}, uploadsHeads, confirms(first)))
			f := foreign{w.inner}
			if c.before != nil {
				require.NoError(t, c.before(f))
			}
			if c.between != nil {
				between = func() { require.NoError(t, c.between(f)) }
			}
			published, err := w.publish()
			require.NoError(t, err)
			require.Equal(t, c.dropped, w.dropped())
			head, _ := published.Snapshot.Table(first)
			require.Equal(t, c.state, head.Head.State)
			require.NoError(t, w.p.Tidy(ctx))
			w.holds(c.more)
		})
	}
}

// TestHeadsAheadUnconfirmed: the store does not answer whether a table's commit counts. Read back, it does, in the version that was put: the file stands (X3).
func TestHeadsAheadUnconfirmed(t *testing.T) {
	t.Parallel()
	const asked = 4 // times that a confirmation asks
	lists := 0
	w := newAheadWorld(t, func(_ context.Context, c faultstore.Call) faultstore.Fault {
		if confirms(testTables[0])(c) {
			if lists++; lists <= asked {
				return faultstore.Fault{Before: faultstore.ErrInjected}
			}
		}
		return faultstore.Fault{}
	})
	_, err := w.publish()
	require.NoError(t, err)
	require.Greater(t, lists, asked)
	require.Zero(t, w.dropped())
	w.holds(nil)
}

// TestHeadsAheadOfAFencedFolder (race R5): the file is there, and a successor has claimed the graph when the tables are confirmed. The stale folder is fenced and
// leaves nothing behind; the file that it uploaded is named by nobody and removed.
func TestHeadsAheadOfAFencedFolder(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	claim := func() {}
	w := newAheadWorld(t, faultstore.InOrder(func(n int) {
		if n == 1 {
			claim()
		}
	}, uploadsHeads, confirms(testTables[0])))
	claim = func() {
		p, err := Claim(ctx, options(w.inner), "successor")
		require.NoError(t, err)
		require.Equal(t, w.fold.Fold, p.Recovered().Commit.Fold)
	}
	_, err := w.publish()
	require.ErrorIs(t, err, fence.ErrFenced)
	require.NoError(t, wholeModel(aheadLog()).check(ctx, w.inner, aheadLog()))
	w.requireNoOrphans()
}
