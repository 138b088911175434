package fold

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/countstore"
	"github.com/foldline/foldline/publisher"
	"github.com/foldline/foldline/wal"
)

func to(table string, columns ...string) publisher.ReferenceSpec {
	return publisher.ReferenceSpec{Columns: columns, Table: table}
}

// edgeTable has two ends, which may be null.
func edgeTable(key string) publisher.TableSpec {
	return publisher.TableSpec{Key: key, Columns: []heads.Column{
		{Name: "id", Type: "string"}, {Name: "src", Type: "string", Nullable: true}, {Name: "dst", Type: "string", Nullable: true},
	}}
}

// edgeWorld is nodes and edges between them.
func edgeWorld(t tester, store objstore.Store) *world {
	w := newWorld(t, store, 1, noteTable("node:A"), edgeTable("edge:E"))
	w.setReferences("edge:E", to("node:A", "src"), to("node:A", "dst"))
	return w
}

// setReferences declares references, for the folders to come too.
func (w *world) setReferences(key string, refs ...publisher.ReferenceSpec) {
	w.t.Helper()
	if w.refs == nil {
		w.refs = map[string][]publisher.ReferenceSpec{}
	}
	w.refs[key] = refs
	w.claim(w.store)
}

// missing is the line of a dead letter of an edge, as letter is with another code.
func missing(op, id string, ends ...string) string {
	return letterOf(op, "missing_reference", id, ends...)
}

func letterOf(op, code, id string, ends ...string) string {
	text := []string{"null", "null"}
	for i, end := range ends {
		text[i] = strconv.Quote(end)
	}
	return fmt.Sprintf(`edge:E %s %s {"id":%q,"src":%s,"dst":%s}`, op, code, id, text[0], text[1])
}

// TestRaceR12EdgeAndItsNodes: of an edge and its nodes in one cut the order does not matter; an edge whose nodes come with the next one is a dead letter that
// says which of them is missing, nothing is made up in its place, and a replay brings it in. A row that refers to nothing by a null needs no node.
func TestRaceR12EdgeAndItsNodes(t *testing.T) {
	nodes := func(w *world) { w.write("node:A", upsert("n", 1), upsert("m", 1)) }
	edge := func(w *world) { w.write("edge:E", upsert("e", "n", "m"), insert("half", "n", nil), upsert("free")) }
	whole := []string{"e=n=m", "free=(null)=(null)", "half=n=(null)"}
	for name, c := range map[string]struct {
		write []func(*world)
		late  bool
	}{
		"nodes, then the edge, one cut":   {[]func(*world){nodes, edge}, false},
		"the edge, then its nodes":        {[]func(*world){edge, nodes}, false},
		"nodes, the edge in the next cut": {[]func(*world){nodes, (*world).foldOnly, edge}, false},
		"the edge, nodes in the next cut": {[]func(*world){edge, (*world).foldOnly, nodes}, true},
	} {
		for _, indexed := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, indexed %t", name, indexed), func(t *testing.T) {
				w := edgeWorld(t, objstore.NewMemory())
				defer w.close()
				if !indexed {
					w.withoutIndex()
				}
				for _, do := range c.write {
					do(w)
				}
				w.fold()
				require.Equal(t, []string{"m=1", "n=1"}, w.scan("node:A"))
				if !c.late {
					require.Equal(t, whole, w.scan("edge:E"))
					require.Empty(t, w.rejects())
					return
				}
				require.Equal(t, []string{"free=(null)=(null)"}, w.scan("edge:E"))
				require.Equal(t, []string{missing("upsert", "e", "n", "m"), missing("insert", "half", "n")}, w.rejects())
				require.Equal(t, []string{`src: {"src":"n"} is the key of no row of table "node:A"`, `src: {"src":"n"} is the key of no row of table "node:A"`}, w.reasons())
				r, err := w.folder.replay(w.ctx, "edge:E", Selection{})
				require.NoError(t, err)
				require.Equal(t, ReplayReport{Replayed: 2}, r)
				require.Equal(t, whole, w.scan("edge:E"))
				require.Empty(t, w.rejects())
			})
		}
	}
}

func (w *world) foldOnly() { w.fold() }

// withoutIndex makes a folder that scans.
func (w *world) withoutIndex() {
	w.closeIndex()
	w.indexFS = nil
	w.claim(w.store)
}

// reasons are the fields and reasons of the dead letters.
func (w *world) reasons() (out []string) {
	w.t.Helper()
	opened, err := w.heads().OpenTable(w.ctx, w.store, heads.RejectsKey)
	require.NoError(w.t, err)
	for rec, err := range opened.Scan(w.ctx, scanAll) {
		require.NoError(w.t, err)
		text := func(i int, column string) string {
			return rec.Column(rec.Schema().FieldIndices(column)[0]).ValueStr(i)
		}
		for i := range int(rec.NumRows()) {
			out = append(out, text(i, "field")+": "+text(i, "reason"))
		}
		rec.Release()
	}
	return out
}

// TestRaceR13DeleteOfANodeInTheSameCut: of a node's delete and an edge to it in one cut, in either order, the edge is a dead letter. A delete of a node that
// has edges goes through, and what dangles then may be written again only with a node.
func TestRaceR13DeleteOfANodeInTheSameCut(t *testing.T) {
	for _, edgeFirst := range []bool{true, false} {
		t.Run(fmt.Sprint("edge first ", edgeFirst), func(t *testing.T) {
			w := edgeWorld(t, objstore.NewMemory())
			defer w.close()
			w.write("node:A", upsert("n", 1), upsert("m", 1))
			w.write("edge:E", upsert("old", "n", "m"))
			w.fold()
			if edgeFirst {
				w.write("edge:E", upsert("e", "n", "m"), upsert("old", "m", "m"))
			}
			w.write("node:A", remove("n"))
			if !edgeFirst {
				w.write("edge:E", upsert("e", "n", "m"), upsert("old", "m", "m"))
			}
			w.fold()
			require.Equal(t, []string{"m=1"}, w.scan("node:A"))
			require.Equal(t, []string{"old=m=m"}, w.scan("edge:E"))
			require.Equal(t, []string{missing("upsert", "e", "n", "m")}, w.rejects())
			w.write("node:A", remove("m"))
			w.fold()
			require.Equal(t, []string{"old=m=m"}, w.scan("edge:E"), "no cascade")
			w.write("edge:E", upsert("old", "m", nil))
			w.write("edge:E", remove("old"))
			w.fold()
			require.Empty(t, w.scan("edge:E"), "what is overwritten in the cut is not judged")
			require.Len(t, w.rejects(), 1)
		})
	}
}

// TestRefusedRowChangesNothing: an earlier write of a refused row's key stands, and what it had made fail does not fail any more.
func TestRefusedRowChangesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		writes   []row
		want     []string
		rejected []string
	}{
		"the write before it stands":  {[]row{upsert("e", "n"), upsert("e", "x")}, []string{"e=n=(null)", "old=n=(null)"}, []string{missing("upsert", "e", "x")}},
		"the table's row stands":      {[]row{upsert("old", "x"), upsert("old", "y")}, []string{"old=n=(null)"}, []string{missing("upsert", "old", "x"), missing("upsert", "old", "y")}},
		"the delete before it stands": {[]row{remove("old"), upsert("old", "x")}, nil, []string{missing("upsert", "old", "x")}},
		"the insert behind it wins": {[]row{insert("e", "x"), insert("e", "n"), insert("e", "n", "n")}, []string{"e=n=(null)", "old=n=(null)"},
			[]string{missing("insert", "e", "x"), letterOf("insert", "key_exists", "e", "n", "n")}},
		"each insert behind it fails": {[]row{upsert("e", "x"), insert("e", "y"), insert("e", "z")}, []string{"old=n=(null)"},
			[]string{missing("upsert", "e", "x"), missing("insert", "e", "y"), missing("insert", "e", "z")}},
		"the insert fails by its key first": {[]row{insert("old", "x")}, []string{"old=n=(null)"}, []string{letterOf("insert", "key_exists", "old", "x")}},
	} {
		t.Run(name, func(t *testing.T) {
			w := edgeWorld(t, objstore.NewMemory())
			defer w.close()
			w.write("node:A", upsert("n", 1))
			w.write("edge:E", upsert("old", "n"))
			w.fold()
			w.write("edge:E", c.writes...)
			w.fold()
			require.Equal(t, c.want, w.scan("edge:E"))
			require.Equal(t, c.rejected, w.rejects())
		})
	}
}

// TestReferencesAmongThemselves: rows that refer to rows of the same table, and tables that refer to each other, come in together; a row that is refused is
// not there for those that refer to it, however long the chain.
func TestReferencesAmongThemselves(t *testing.T) {
	w := newWorld(t, objstore.NewMemory(), 1, edgeTable("node:P"), edgeTable("node:Q"))
	defer w.close()
	w.setReferences("node:P", to("node:P", "src"), to("node:Q", "dst"))
	w.setReferences("node:Q", to("node:P", "dst"))
	w.write("node:P", upsert("self", "self"), upsert("a", "b", "q"), upsert("b", "a"))
	w.write("node:Q", upsert("q", nil, "a"))
	w.fold()
	require.Empty(t, w.rejects())
	require.Equal(t, []string{"a=b=q", "b=a=(null)", "self=self=(null)"}, w.scan("node:P"))

	var chain []row
	for i := range 1000 {
		chain = append(chain, upsert(fmt.Sprint("c", i), fmt.Sprint("c", i+1)))
	}
	w.write("node:P", chain...)
	w.write("node:Q", upsert("r", nil, "c0"), upsert("s", nil, "self"))
	w.fold()
	require.Equal(t, []string{"q=(null)=a", "s=(null)=self"}, w.scan("node:Q"))
	require.Len(t, w.scan("node:P"), 3)
	require.Len(t, w.rejects(), 1001, "the chain ends in nothing")
}

// TestReferenceToAKeyOfSeveralColumns: in the order of the key, of the types that keys have.
func TestReferenceToAKeyOfSeveralColumns(t *testing.T) {
	node := publisher.TableSpec{Key: "node:K", PrimaryKey: []string{"part", "id"}, Columns: []heads.Column{{Name: "id", Type: "string"}, {Name: "part", Type: "int32"}}}
	edge := publisher.TableSpec{Key: "edge:E", Columns: []heads.Column{{Name: "id", Type: "string"}, {Name: "name", Type: "string", Nullable: true}, {Name: "of", Type: "int32", Nullable: true}}}
	w := newWorld(t, objstore.NewMemory(), 1, node, edge)
	defer w.close()
	w.setReferences("edge:E", to("node:K", "of", "name"))
	w.write("node:K", upsert("a", 1), upsert("b", 2))
	w.fold()
	w.write("edge:E", upsert("good", "a", 1), upsert("crossed", "a", 2), upsert("half", "x"), upsert("other", nil, 9))
	w.fold()
	require.Equal(t, []string{"good=a=1", "half=x=(null)", "other=(null)=9"}, w.scan("edge:E"))
	require.Equal(t, []string{`of,name: {"of":2,"name":"a"} is the key of no row of table "node:K"`}, w.reasons())
}

// TestReferencesThatComeLater: rows that are there are not looked at; what is written again is. Taking the reference away ends it.
func TestReferencesThatComeLater(t *testing.T) {
	w := newWorld(t, objstore.NewMemory(), 1, noteTable("node:A"), edgeTable("edge:E"))
	defer w.close()
	w.write("edge:E", upsert("old", "x"), upsert("again", "x"))
	w.fold()
	w.setReferences("edge:E", to("node:A", "src"))
	w.write("edge:E", upsert("again", "x", "y"), upsert("new", "x"))
	w.fold()
	require.Equal(t, []string{"again=x=(null)", "old=x=(null)"}, w.scan("edge:E"))
	require.Len(t, w.rejects(), 2)
	w.setReferences("edge:E")
	w.write("edge:E", upsert("new", "x"))
	w.fold()
	require.Contains(t, w.scan("edge:E"), "new=x=(null)")
}

// TestMessageOverNodeAndEdge: the rows of one message are judged together; a row that is refused is one row, the others of its message land.
func TestMessageOverNodeAndEdge(t *testing.T) {
	w := edgeWorld(t, objstore.NewMemory())
	defer w.close()
	o := w.lanes[0]
	w.append(o, wal.Entry{Rows: []wal.Rows{o.rowsOf(w, "edge:E", upsert("e", "n"), upsert("f", "x")), o.rowsOf(w, "node:A", upsert("n", 1))}})
	w.fold()
	require.Equal(t, []string{"e=n=(null)"}, w.scan("edge:E"))
	require.Equal(t, []string{"n=1"}, w.scan("node:A"))
	require.Equal(t, []string{missing("upsert", "f", "x")}, w.rejects())
}

// TestReferenceToATableThatCannotBeRead: edges wait as long as the rows of a suspended table do; then what cannot be judged is a dead letter that says so.
// A table that takes no rows and can be read judges as ever.
func TestReferenceToATableThatCannotBeRead(t *testing.T) {
	store := objstore.NewMemory()
	w := edgeWorld(t, store)
	defer w.close()
	w.clock = &manualClock{}
	w.claim(store)
	w.write("node:A", upsert("n", 1))
	w.fold()
	w.suspendTable("node:A")
	w.write("edge:E", upsert("held", "n"), upsert("x", "x"))
	w.fold()
	require.Equal(t, []string{"held=n=(null)"}, w.scan("edge:E"))
	require.Equal(t, []string{missing("upsert", "x", "x")}, w.rejects())
	_, _, err := w.folder.resume(w.ctx, "node:A")
	require.NoError(t, err)

	for key := range w.objects(w.table("node:A").Path) {
		require.NoError(t, store.Delete(w.ctx, key))
	}
	w.claim(store) // knows no version of it
	w.write("edge:E", upsert("e", "n"), upsert("free"))
	require.True(t, w.fold().Empty(), "it waits")
	require.Equal(t, heads.StateSuspended, w.table("node:A").Head.State)
	w.clock.seconds.Add(60)
	w.fold()
	require.Equal(t, []string{"free=(null)=(null)", "held=n=(null)"}, w.scan("edge:E"))
	require.Contains(t, w.rejects(), letterOf("upsert", "table_unavailable", "e", "n"))
}

// TestRequestsOfReferences: with a key index, judging references by a table that the folder knows costs no request; the commit waits for that of the table that
// it refers to, which is no request either.
func TestRequestsOfReferences(t *testing.T) {
	calls := func(refers bool) countstore.Counts {
		inner := objstore.NewMemory()
		store := countstore.New(inner)
		w := newWorld(t, inner, 1, noteTable("node:A"), edgeTable("edge:E"))
		defer w.close()
		if refers {
			w.setReferences("edge:E", to("node:A", "src"), to("node:A", "dst"))
		}
		w.claim(store)
		for i := range 4 {
			w.write("node:A", upsert(fmt.Sprint("n", i), 1))
			w.write("edge:E", upsert(fmt.Sprint("e", i), fmt.Sprint("n", i), "n0"))
			store.Reset()
			w.fold()
		}
		require.Empty(t, w.rejects())
		got := store.Counts()
		got.ReadBytes, got.WrittenBytes = 0, 0
		return got
	}
	require.Equal(t, calls(false), calls(true))
}
