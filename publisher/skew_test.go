package publisher

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
)

// skewed are the flights, each of which refers to the airport of its id, that become dead letters when an operation of another program falls before our
// commit to the airports. Behind it none does, and no other operation takes any.
var skewed = map[string][]string{
	"delete our key": {`upsert missing_reference {"id":"a","v":1}`},
	"overwrite":      {`insert missing_reference {"id":"u","v":3}`}, // the airports are given up, and u with them; their head shows the others
	"restore":        {`insert missing_reference {"id":"u","v":3}`},
	"drop a column":  {`insert missing_reference {"id":"u","v":3}`}, "rename a column": {`insert missing_reference {"id":"u","v":3}`},
	"drop and add a column": {`insert missing_reference {"id":"u","v":3}`},
}

// TestRaceR13ForeignOperations lets every operation of another program fall before and behind our commit to a table that rows of the same fold refer to.
func TestRaceR13ForeignOperations(t *testing.T) {
	for _, op := range betweenOperations {
		runSkew(t, op.name, func(*testing.T) (objstore.Store, foreignWriter) {
			store := objstore.NewMemory()
			return store, foreign{store}
		})
	}
}

func runSkew(t *testing.T, operation string, open func(*testing.T) (objstore.Store, foreignWriter)) {
	for _, s := range []betweenStep{{"planned", false}, {"commit.node:Airport.before", false}, {"commit.edge:Flight.before", true}} {
		t.Run(operation+"/"+s.step, func(t *testing.T) {
			store, writer := open(t)
			p, log := skewGraph(t, store)
			ctx := context.Background()
			f, err := planOn(ctx, p, log, 3, atHead)
			require.NoError(t, err)
			var once sync.Once
			act := func(step string) {
				if step == s.step {
					once.Do(func() { require.NoError(t, writer.do(ctx, testTables[0], operation)) })
				}
			}
			act("planned")
			p.o.Step = func(step Step) { act(string(step)) }
			published, err := p.Publish(ctx, f)
			require.NoError(t, err)
			want := skewed[operation]
			if s.behind {
				want = nil
			}
			rejects := rejectRows(t, store, published.Snapshot, testTables[1])
			require.ElementsMatch(t, want, rejects)
			snap := published.Snapshot
			airports, err := content(ctx, store, snap, testTables[0])
			if errors.Is(err, lance.ErrNotFound) { // the head was cleaned up
				snap, err = p.Adopt(ctx)
				require.NoError(t, err)
				airports, err = content(ctx, store, snap, testTables[0])
			}
			require.NoError(t, err)
			flights, err := content(ctx, store, snap, testTables[1])
			require.NoError(t, err)
			require.Len(t, flights, 3-len(want))
			for id := range flights {
				require.Contains(t, airports, id)
			}
		})
	}
}

// skewGraph is a graph whose flights refer to airports, and a log whose last entry is a new airport and flights to it and to two older ones.
func skewGraph(t *testing.T, store objstore.Store) (*Publisher, []entry) {
	ctx := context.Background()
	p := newGraph(t, store)
	_, err := p.SetReferences(ctx, testTables[1], []ReferenceSpec{refer(testTables[0], "id")})
	require.NoError(t, err)
	log := []entry{
		{{testTables[0], "a", 1, "upsert"}, {testTables[0], "k", 3, "upsert"}}, {{testTables[0], "b", 2, "upsert"}},
		{{testTables[0], "u", 6, "upsert"}, {testTables[1], "a", 1, "upsert"}, {testTables[1], "k", 2, "upsert"}, {testTables[1], "u", 3, "insert"}},
	}
	for _, through := range []uint64{1, 2} {
		_, err := publishThrough(ctx, p, log, through)
		require.NoError(t, err)
	}
	return p, log
}

// TestReferencesOfARecord: whoever completes a fold commits its tables in the order of the references that the graph has.
func TestReferencesOfARecord(t *testing.T) {
	p, _ := skewGraph(t, objstore.NewMemory())
	flight, _ := p.snap.Table(testTables[1])
	airport, _ := p.snap.Table(testTables[0])
	rec := &record{tables: []recordTable{{id: flight.ID}, {id: airport.ID}}}
	p.noteReferences(rec)
	require.Equal(t, []heads.Reference{{Columns: []string{"id"}, Table: airport.ID}}, rec.tables[0].refers)
	require.True(t, slices.EqualFunc([][]int{{1}, {0}}, waves(rec), slices.Equal[[]int]))
}
