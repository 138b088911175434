package fold

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/fence"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/keys"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/faultstore"
	"github.com/foldline/foldline/publisher"
)

// foreignDelete deletes rows as another engine does, fenced.
func (w *world) foreignDelete(key string, ids ...string) {
	w.t.Helper()
	latest, err := lance.Open(w.ctx, w.store, w.table(key).Path)
	require.NoError(w.t, err)
	set := fence.KeySet{}
	for _, id := range ids {
		set[id] = keys.Hash(keys.AppendString(nil, id))
	}
	_, err = fence.Apply(w.ctx, latest, fence.Changes{Deletes: set}, lance.CommitOptions{})
	require.NoError(w.t, err)
}

// requireNoDangling requires that the edges of a published state refer to its nodes.
func (w *world) requireNoDangling(s *heads.Snapshot) {
	w.t.Helper()
	lines := func(key string) []string {
		t, err := s.OpenTable(w.ctx, w.store, key)
		require.NoError(w.t, err)
		return w.scanVersion(t)
	}
	nodes := []string{"(null)"}
	for _, line := range lines("node:A") {
		id, _, _ := strings.Cut(line, "=")
		nodes = append(nodes, id)
	}
	for _, line := range lines("edge:E") {
		for _, end := range strings.Split(line, "=")[1:] {
			require.Contains(w.t, nodes, end, "edge %s of fold %d", line, s.Fold)
		}
	}
}

// skewSteps are the steps of a fold of node:A and edge:E, and whether the commit to node:A has landed by then.
var skewSteps = []struct {
	step   string
	behind bool
}{
	{"cut", false}, {"prepared", false}, {"record.before", false}, {"record.after", false}, {"commit.node:A.before", false},
	{"commit.node:A.after", true}, {"commit.edge:E.before", true}, {"draft.after", true}, {"commit.edge:E.after", true}, {"publish.before", true}, {"publish.after", true},
}

// TestRaceR13ForeignDeleteBetweenAnyTwoSteps: another program deletes a node, in between any two steps of a fold that inserts an edge to it and writes another
// node, with a folder that goes on and one that dies. What a publish shows of its edges it shows with their nodes: a delete before the commit to the nodes makes
// the edge a dead letter, one behind it comes after the edge, when it is adopted.
func TestRaceR13ForeignDeleteBetweenAnyTwoSteps(t *testing.T) {
	for _, s := range skewSteps {
		for _, dies := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, dies %t", s.step, dies), func(t *testing.T) {
				w := skewWorld(t)
				defer w.close()
				d := &doom{call: faultstore.FromCall(1, faultstore.Ops(), errKilled)}
				var once sync.Once
				act := func(step string) {
					if step == s.step {
						once.Do(func() {
							w.foreignDelete("node:A", "n")
							d.armed.Store(dies)
						})
					}
				}
				w.opts.Step, w.publisherStep = act, func(p publisher.Step) { act(string(p)) }
				w.claim(faultstore.New(w.store, d.inject))
				w.events = nil
				_, err := w.folder.FoldOnce(w.ctx)
				require.Equal(t, dies && s.step != "publish.after", err != nil, "%v", err)
				d.armed.Store(false)
				w.opts, w.publisherStep = Options{}, nil
				w.claim(w.store)
				if r := w.folder.publisher.(*publisher.Publisher).Recovered(); r != nil {
					w.requireNoDangling(r.Snapshot)
				}
				w.fold()
				for _, p := range w.events {
					w.requireNoDangling(p.Snapshot)
				}
				w.requireSkew(!s.behind)
			})
		}
	}
}

// skewWorld has a node and a fold to come: another node, and two edges.
func skewWorld(t tester) *world {
	w := edgeWorld(t, objstore.NewMemory())
	w.write("node:A", upsert("n", 1), upsert("m", 1))
	w.write("edge:E", upsert("old", "m", "m"), upsert("free"))
	w.fold()
	w.write("node:A", upsert("o", 1))
	w.write("edge:E", upsert("e", "m", "n"), insert("strict", "n"), upsert("old", "n", "o"), upsert("f", "m", "o"), remove("free"))
	return w
}

// requireSkew requires what the fold of skewWorld leaves behind when the node n goes before it, or after it.
func (w *world) requireSkew(before bool) {
	w.t.Helper()
	_, err := w.folder.publisher.Adopt(w.ctx)
	require.NoError(w.t, err)
	require.Equal(w.t, []string{"m=1", "o=1"}, w.scan("node:A"))
	if !before {
		require.Equal(w.t, []string{"e=m=n", "f=m=o", "old=n=o", "strict=n=(null)"}, w.scan("edge:E"))
		require.Empty(w.t, w.rejects())
		return
	}
	require.Equal(w.t, []string{"f=m=o", "old=m=m"}, w.scan("edge:E"))
	require.ElementsMatch(w.t, []string{missing("upsert", "e", "m", "n"), missing("insert", "strict", "n"), missing("upsert", "old", "n", "o")}, w.rejects())
	w.write("node:A", upsert("n", 2))
	w.fold()
	r, err := w.folder.replay(w.ctx, "edge:E", Selection{})
	require.NoError(w.t, err)
	require.Equal(w.t, ReplayReport{Replayed: 3}, r)
	require.Equal(w.t, []string{"e=m=n", "f=m=o", "old=n=o", "strict=n=(null)"}, w.scan("edge:E"))
	require.Empty(w.t, w.rejects())
}

// TestRaceR13SurvivesEveryCrash cuts the folder off at the k-th store call of a fold whose node was deleted by another program before the commit to it, for
// every k: whoever completes or repeats the fold comes to the same verdicts (F5).
func TestRaceR13SurvivesEveryCrash(t *testing.T) {
	for k := 1; ; k++ {
		w := skewWorld(t)
		d := &doom{call: faultstore.FromCall(k, faultstore.Ops(), errKilled)}
		w.opts.Step = func(step string) {
			if step == "prepared" {
				w.foreignDelete("node:A", "n")
				d.armed.Store(true)
			}
		}
		w.claim(faultstore.New(w.store, d.inject))
		_, err := w.folder.FoldOnce(w.ctx)
		d.armed.Store(false)
		require.Equal(t, d.hit.Load(), err != nil || w.heads().Fold == 2 && d.hit.Load())
		w.opts = Options{}
		w.claim(w.store)
		w.fold()
		w.requireNoDangling(w.heads())
		w.requireSkew(true)
		w.close()
		if !d.hit.Load() {
			require.Greater(t, k, 12)
			return
		}
	}
}

// TestRaceR13NodesThatTheFoldDoesNotTouch: the head of a table that the fold does not commit to stays with the publish, so a delete above it comes later,
// whenever it was made.
func TestRaceR13NodesThatTheFoldDoesNotTouch(t *testing.T) {
	for _, step := range []string{"prepared", "record.after", "commit.edge:E.before", "publish.before"} {
		w := edgeWorld(t, objstore.NewMemory())
		w.write("node:A", upsert("n", 1))
		w.fold()
		act := func(s string) {
			if s == step {
				w.foreignDelete("node:A", "n")
			}
		}
		w.opts.Step, w.publisherStep = act, func(p publisher.Step) { act(string(p)) }
		w.claim(w.store)
		w.write("edge:E", upsert("e", "n"))
		w.fold()
		w.requireNoDangling(w.heads())
		require.Equal(t, []string{"e=n=(null)"}, w.scan("edge:E"))
		_, err := w.folder.publisher.Adopt(w.ctx)
		require.NoError(t, err)
		w.write("edge:E", upsert("f", "n"))
		w.fold()
		require.Equal(t, []string{missing("upsert", "f", "n")}, w.rejects())
		w.close()
	}
}

// TestRaceR13ChainsAndCircles: what a foreign delete takes away is followed through the rows of the fold: of a table that refers to itself, and of one that
// refers to another whose rows were left out.
func TestRaceR13ChainsAndCircles(t *testing.T) {
	w := newWorld(t, objstore.NewMemory(), 1, edgeTable("node:P"), edgeTable("node:Q"))
	defer w.close()
	w.setReferences("node:P", to("node:P", "src"))
	w.setReferences("node:Q", to("node:P", "src"), to("node:Q", "dst"))
	w.write("node:P", upsert("root"), upsert("stays", "stays"))
	w.write("node:Q", upsert("top"))
	w.fold()
	w.opts.Step = func(s string) {
		if s == "prepared" {
			w.foreignDelete("node:P", "root")
		}
	}
	w.claim(w.store)
	w.write("node:P", upsert("c", "b"), upsert("b", "a"), upsert("a", "root"), upsert("x", "y"), upsert("y", "x"), upsert("s", "stays"))
	w.write("node:Q", upsert("qc", "c"), upsert("qx", "x"), upsert("qq", "s", "qc"), upsert("qr", "s", "qx"), upsert("top", "c"))
	w.fold()
	require.Equal(t, []string{"s=stays=(null)", "stays=stays=(null)", "x=y=(null)", "y=x=(null)"}, w.scan("node:P"))
	require.Equal(t, []string{"qr=s=qx", "qx=x=(null)", "top=(null)=(null)"}, w.scan("node:Q"))
	require.Len(t, w.rejects(), 6)
	require.False(t, slices.ContainsFunc(w.rejects(), func(l string) bool { return !strings.Contains(l, "missing_reference") }))
}

// TestReferencesToATableThatIsGivenUp: nodes that become dead letters because their table was replaced while the fold was committed take the edges to them along;
// edges to the nodes that the head still shows stay.
func TestReferencesToATableThatIsGivenUp(t *testing.T) {
	for _, gone := range []bool{false, true} {
		w := edgeWorld(t, objstore.NewMemory())
		w.write("node:A", upsert("n", 1))
		w.fold()
		once := false
		w.opts.Step = func(s string) {
			if s != "prepared" || once {
				return
			}
			once = true
			w.overwrite("node:A", map[string]int64{"z": 1})
			if gone {
				latest, err := lance.Open(w.ctx, w.store, w.table("node:A").Path)
				require.NoError(t, err)
				require.NoError(t, latest.DeleteVersions(w.ctx, []uint64{w.table("node:A").Head.Version}))
			}
		}
		w.claim(w.store)
		w.write("node:A", upsert("o", 1))
		w.write("edge:E", upsert("new", "o"), upsert("old", "n"), upsert("free"))
		w.fold()
		require.True(t, w.table("node:A").Head.State.Held())
		want, rejected := []string{"free=(null)=(null)", "old=n=(null)"}, []string{missing("upsert", "new", "o")}
		if gone {
			want, rejected = want[:1], []string{letterOf("upsert", CodeTableUnavailable, "new", "o"), letterOf("upsert", CodeTableUnavailable, "old", "n")}
		}
		require.Equal(t, want, w.scan("edge:E"), "gone %t", gone)
		require.ElementsMatch(t, append(rejected, `node:A upsert table_unavailable {"id":"o","value":1}`), w.rejects())
		w.close()
	}
}
