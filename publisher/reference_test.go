package publisher

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/countstore"
	"github.com/foldline/foldline/objstore/faultstore"
)

func refer(table string, columns ...string) ReferenceSpec {
	return ReferenceSpec{Columns: columns, Table: table}
}

// edgeGraph has a table with columns to refer with.
func edgeGraph(t testing.TB, store objstore.Store) *Publisher {
	p := newGraph(t, store)
	_, err := p.CreateTable(context.Background(), TableSpec{Key: "edge:E", Columns: []heads.Column{{Name: "id", Type: "string"}, {Name: "src", Type: "string", Nullable: true}, {Name: "n", Type: "int64"}}})
	require.NoError(t, err)
	return p
}

// TestSetReferences: one graph commit that changes the registry and nothing else, none when there is nothing to change, and everybody reads it.
func TestSetReferences(t *testing.T) {
	ctx := context.Background()
	store := countstore.New(objstore.NewMemory())
	p := edgeGraph(t, store)
	before := p.snap
	airport, _ := before.Table(testTables[0])
	edge, err := p.SetReferences(ctx, "edge:E", []ReferenceSpec{refer(testTables[0], "src"), refer("edge:E", "src")})
	require.NoError(t, err)
	want := []heads.Reference{{Columns: []string{"src"}, Table: airport.ID}, {Columns: []string{"src"}, Table: edge.ID}}
	require.Equal(t, want, edge.References)
	snap, err := heads.Resolve(ctx, store, testRoot)
	require.NoError(t, err)
	require.Equal(t, before.Version+1, snap.Version)
	require.Equal(t, heads.KindAlter, snap.Commit.Kind)
	got, _ := snap.Table("edge:E")
	require.Equal(t, want, got.References)
	before.SetTable(got)
	require.Equal(t, before.Tables, snap.Tables)

	store.Reset()
	_, err = p.SetReferences(ctx, "edge:E", []ReferenceSpec{refer(testTables[0], "src"), refer("edge:E", "src")})
	require.NoError(t, err)
	require.Equal(t, 1, store.Counts().Requests(), "the refresh")
	edge, err = p.SetReferences(ctx, "edge:E", nil)
	require.NoError(t, err)
	require.Nil(t, edge.References)
	_, err = publishThrough(ctx, p, []entry{{{testTables[0], "a", 1, "upsert"}}}, 1)
	require.NoError(t, err)
}

// TestReferencesThatCannotBeJudged name table, columns and reason, and change nothing.
func TestReferencesThatCannotBeJudged(t *testing.T) {
	ctx := context.Background()
	p := edgeGraph(t, objstore.NewMemory())
	before := p.snap.Version
	for _, c := range []struct {
		key  string
		refs []ReferenceSpec
		want string
	}{
		{"edge:E", []ReferenceSpec{refer("node:None", "src")}, `table "edge:E": reference [src] to "node:None": there is no such table`},
		{"edge:E", []ReferenceSpec{refer(testTables[0], "dst")}, `reference [dst] to "node:Airport": table "edge:E" has no column "dst"`},
		{"edge:E", []ReferenceSpec{refer(testTables[0], "n")}, `column "n" is int64, key column "id" of table "node:Airport" is string`},
		{"edge:E", []ReferenceSpec{refer(testTables[0], "src", "n")}, `2 columns for the key [id] of table "node:Airport"`},
		{"edge:E", []ReferenceSpec{refer(testTables[0])}, `0 columns for the key [id]`},
		{"edge:E", []ReferenceSpec{refer(heads.RejectsKey, "src")}, `is the graph's own`},
		{"edge:E", []ReferenceSpec{refer(testTables[0], "src"), refer(testTables[0], "src")}, `comes twice`},
		{heads.RejectsKey, []ReferenceSpec{refer(testTables[0], "id")}, `takes no rows from lanes`},
	} {
		_, err := p.SetReferences(ctx, c.key, c.refs)
		require.ErrorIs(t, err, ErrInvalid)
		require.ErrorContains(t, err, c.want)
	}
	_, err := p.SetReferences(ctx, "edge:None", nil)
	require.ErrorIs(t, err, heads.ErrNotFound)
	require.Equal(t, before, p.snap.Version)
}

// TestCrashInSetReferences kills the change at each of its writes, and loses the answer of each: repeated by a successor, the references are there.
func TestCrashInSetReferences(t *testing.T) {
	ctx := context.Background()
	refs := []ReferenceSpec{refer(testTables[0], "src")}
	for _, after := range []bool{false, true} {
		for k, met := 1, true; met; k++ {
			inner := objstore.NewMemory()
			p := edgeGraph(t, inner)
			store, hit := cutOff(inner, k, after)
			p.o.Store = store
			_, err := p.SetReferences(ctx, "edge:E", refs)
			met = hit()
			require.Equal(t, met, err != nil)
			q, err := Claim(ctx, options(inner), "successor")
			require.NoError(t, err)
			table, err := q.SetReferences(ctx, "edge:E", refs)
			require.NoError(t, err)
			require.Len(t, table.References, 1)
		}
	}
	inner := objstore.NewMemory()
	p := edgeGraph(t, inner)
	p.o.Store = faultstore.New(inner, faultstore.Lose(2, faultstore.Ops(faultstore.Writes()...)))
	table, err := p.SetReferences(ctx, "edge:E", refs)
	require.NoError(t, err, "a lost answer is read back (X3)")
	require.Len(t, table.References, 1)
}

// TestJudgedHeadsAreAPrecondition (race R13): a fold whose references were judged by a head that has moved is refused before anything is written, and at the publish.
func TestJudgedHeadsAreAPrecondition(t *testing.T) {
	ctx := context.Background()
	p := edgeGraph(t, objstore.NewMemory())
	log := []entry{{{testTables[0], "a", 1, "upsert"}}, {{testTables[2], "b", 1, "upsert"}}}
	_, err := publishThrough(ctx, p, log, 1)
	require.NoError(t, err)
	f, err := planOn(ctx, p, log, 2, atHead)
	require.NoError(t, err)
	airport, _ := p.snap.Table(testTables[0])
	f.Judged = map[heads.TableID]uint64{airport.ID: airport.Head.Version - 1}
	_, err = p.Publish(ctx, f)
	require.ErrorIs(t, err, ErrConflict)
	require.ErrorContains(t, err, fmt.Sprintf("references were judged by version %d", airport.Head.Version-1))
	f.Judged[airport.ID] = airport.Head.Version
	rec, _, err := p.record(f)
	require.NoError(t, err)
	next := p.snap.Clone()
	airport.Head.Version++
	next.SetTable(airport)
	err = p.applyFold(ctx, next, &heads.GraphCommit{}, rec, nil)
	require.ErrorIs(t, err, ErrConflict)
	_, err = p.Publish(ctx, f)
	require.NoError(t, err)
}

// TestWaves: a table is committed after those that it refers to, all of a circle but its beginning too, and all at once when nothing refers to anything.
func TestWaves(t *testing.T) {
	for name, c := range map[string]struct {
		refers map[heads.TableID][]heads.TableID
		want   [][]int
	}{
		"none":                                {nil, [][]int{{0, 1, 2, 3}}},
		"itself, and what is not of the fold": {map[heads.TableID][]heads.TableID{1: {1, 9}}, [][]int{{0, 1, 2, 3}}},
		"edges first in the record":           {map[heads.TableID][]heads.TableID{0: {2, 3}, 1: {0}}, [][]int{{2, 3}, {0}, {1}}},
		"a circle and one behind it":          {map[heads.TableID][]heads.TableID{0: {1}, 1: {0}, 2: {1}, 3: {0}}, [][]int{{1}, {0, 2}, {3}}},
	} {
		rec := &record{tables: make([]recordTable, 4)}
		for i := range rec.tables {
			rec.tables[i].id = heads.TableID(i)
			for _, to := range c.refers[heads.TableID(i)] {
				rec.tables[i].refers = append(rec.tables[i].refers, heads.Reference{Table: to})
			}
		}
		require.Equal(t, c.want, waves(rec), name)
	}
}
