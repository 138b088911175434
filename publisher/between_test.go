package publisher

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
)

// theirValue is what another writer puts into the column v.
const theirValue = 555

// outcome is what has to become of a table when another program's operation falls before or behind our commit to it.
type outcome struct {
	rows    map[string]int64 // in the heads, after an adoption
	rejects []string         // dead letters of the table
	state   heads.State
}

// ours is the table after the fold alone.
func ours(change ...func(map[string]int64)) outcome {
	rows := map[string]int64{"a": 10, "k": 3, "n": 5, "u": 6}
	for _, c := range change {
		c(rows)
	}
	return outcome{rows: rows, state: heads.StateLive}
}

func set(id string) func(map[string]int64)  { return func(m map[string]int64) { m[id] = theirValue } }
func drop(id string) func(map[string]int64) { return func(m map[string]int64) { delete(m, id) } }

// givenUp is a table that was taken away before our commit: what it held is shown, our rows are dead letters.
func givenUp() outcome {
	return outcome{rows: map[string]int64{"a": 1, "b": 2, "k": 3}, state: heads.StateReplaced, rejects: []string{
		`upsert table_unavailable {"id":"a","v":10}`, `upsert table_unavailable {"id":"u","v":6}`,
		`insert table_unavailable {"id":"n","v":5}`, `delete table_unavailable {"id":"b"}`}}
}

// frozen is a table that was taken away above our commit: ours is shown, and nothing of theirs.
func frozen() outcome {
	o := ours()
	o.state = heads.StateReplaced
	return o
}

// lostInsert is the fold whose strict insert met a key of theirs.
func lostInsert() outcome {
	o := ours(set("n"))
	o.rejects = []string{`insert key_exists {"id":"n","v":5}`}
	return o
}

// betweenOperations is what another program does (rows f1 to f7 of the protocol notes, 1.3, and race R10), and what has to come of it before and
// behind our commit.
var betweenOperations = []struct {
	name           string
	before, behind outcome
}{
	{"merge our new key", ours(), ours(set("u"))},           // f1, f2, race R2
	{"merge our strict key", lostInsert(), ours(set("n"))},  // f1, f2
	{"merge our deleted key", ours(), ours(set("b"))},       // f1, f2: the delete comes after
	{"merge another key", ours(set("z")), ours(set("z"))},   // f1, f2
	{"delete our key", ours(), ours(drop("a"))},             // report C116
	{"append another key", ours(set("z")), ours(set("z"))},  // f3
	{"overwrite", givenUp(), frozen()},                      // f4, f5
	{"restore", givenUp(), frozen()},                        // f4, f5
	{"compact", ours(), ours()},                             // f6, crash C18
	{"clean up", ours(), ours()},                            // f7: the head and the witness go
	{"append and clean up", ours(set("z")), ours(set("z"))}, // f7: an emptied slot above our base
	{"add a column", ours(), ours()},                        // race R10
	{"drop a column", givenUp(), frozen()},                  // race R10, f4
	{"rename a column", givenUp(), frozen()},                // race R10, f4
	{"drop and add a column", givenUp(), frozen()},          // race R10: the same name, another field
	{"change metadata", ours(), ours()},                     //
}

type betweenStep struct {
	step   string
	behind bool
}

// betweenSteps are the steps of a fold between which the other program comes; "planned" is before the record. behind tells those at which the
// table's commit has landed.
var betweenSteps = []betweenStep{
	{"planned", false}, {"record.before", false}, {"record.after", false}, {"commit.node:Airport.before", false},
	{"commit.node:Airport.after", true}, {"commit._rejects.before", true}, {"draft.after", true}, {"commit._rejects.after", true}, {"publish.before", true},
	{"publish.after", true},
}

// foreignWriter does an operation on a table with an engine of its own.
type foreignWriter interface {
	do(ctx context.Context, key, operation string) error
}

// betweenCell is one cell: an operation at a step of a fold that goes on, or whose folder dies right behind it.
type betweenCell struct {
	operation, step string
	dies            bool
}

// TestForeignOperationBetweenAnyTwoSteps lets another program's operation fall between any two steps of a fold, with the folder going on and with a
// successor that completes or repeats the fold: the outcome is that of the protocol notes, 1.3, in every cell. -v prints the matrix.
func TestForeignOperationBetweenAnyTwoSteps(t *testing.T) {
	t.Parallel()
	runBetween(t, betweenSteps, func(*testing.T) (objstore.Store, foreignWriter) {
		store := objstore.NewMemory()
		return store, foreign{store}
	})
}

// runBetween runs every cell on a store of its own and prints the matrix.
func runBetween(t *testing.T, steps []betweenStep, open func(*testing.T) (objstore.Store, foreignWriter)) {
	matrix := &strings.Builder{}
	fmt.Fprintf(matrix, "%-22s", "")
	for _, s := range steps {
		fmt.Fprintf(matrix, " %-18s", strings.TrimPrefix(strings.Replace(s.step, "node:Airport", "T", 1), "commit."))
	}
	for _, op := range betweenOperations {
		fmt.Fprintf(matrix, "\n%-22s", op.name)
		for _, s := range steps {
			want := op.before
			if s.behind {
				want = op.behind
			}
			for _, dies := range []bool{false, true} {
				c := betweenCell{op.name, s.step, dies}
				t.Run(strings.NewReplacer(" ", "_", ":", "_").Replace(fmt.Sprintf("%s/%s/dies=%t", op.name, s.step, dies)), func(t *testing.T) {
					store, writer := open(t)
					c.run(t, store, writer, want)
				})
			}
			fmt.Fprintf(matrix, " %-18s", want.word(s.behind))
		}
	}
	if !t.Failed() {
		t.Logf("what is in the heads in the end, whether the folder goes on or dies:\n%s", matrix)
	}
}

// word is the outcome in one word for the matrix.
func (o outcome) word(behind bool) string {
	switch {
	case o.state == heads.StateReplaced && behind:
		return "ours, frozen"
	case o.state == heads.StateReplaced:
		return "rejects, frozen"
	case len(o.rejects) > 0:
		return "theirs, reject"
	case maps.Equal(o.rows, ours().rows):
		return "ours"
	}
	return "both"
}

// betweenGraph is a graph whose first table has two fragments, and a log whose last entry is the fold of every cell: an update, a delete, a strict
// insert and an upsert of a new key there, a row of another table, and a strict insert that has lost.
func betweenGraph(t *testing.T, store objstore.Store) (*Publisher, []entry) {
	ctx := context.Background()
	p := newGraph(t, store)
	log := []entry{
		{{testTables[0], "a", 1, "upsert"}, {testTables[0], "k", 3, "upsert"}, {testTables[2], "r", 1, "upsert"}}, {{testTables[0], "b", 2, "upsert"}},
		{{testTables[0], "a", 10, "upsert"}, {testTables[0], "b", 0, "delete"}, {testTables[0], "n", 5, "insert"}, {testTables[0], "u", 6, "upsert"},
			{testTables[1], "y", 7, "upsert"}, {testTables[2], "r", 9, "insert"}},
	}
	for _, through := range []uint64{1, 2} {
		_, err := publishThrough(ctx, p, log, through)
		require.NoError(t, err)
	}
	return p, log
}

func (c betweenCell) run(t *testing.T, store objstore.Store, writer foreignWriter, want outcome) {
	ctx := context.Background()
	p, log := betweenGraph(t, store)
	mortal, kill := mortalStore(store)
	p.moveTo(ctx, t, mortal)
	var once sync.Once
	act := func() {
		once.Do(func() {
			require.NoError(t, writer.do(ctx, testTables[0], c.operation))
			if c.dies {
				kill()
			}
		})
	}
	f, err := planOn(ctx, p, log, 3, atHead)
	require.NoError(t, err)
	// Behind our commit means behind those of all tables: a restore rewinds the table's metadata, and when no other table held the fold it
	// would be planned afresh, with our rows as dead letters.
	other := make(chan struct{})
	p.o.Step = func(s Step) {
		if string(s) == "commit."+testTables[1]+".after" {
			close(other)
		}
		if string(s) == c.step {
			if c.step == "commit."+testTables[0]+".after" {
				<-other
			}
			act()
		}
	}
	if c.step == "planned" {
		act()
	}
	_, err = p.Publish(ctx, f)
	if c.dies {
		p = c.succeed(t, store, log, err)
	} else {
		require.NoError(t, err)
	}
	p.o.Step = func(Step) {}
	snap, err := p.Adopt(ctx)
	require.NoError(t, err)
	c.check(t, store, snap, want)
}

// succeed lets a successor finish what the dead folder left, as package fold does: it folds afresh over what others have done in between.
func (c betweenCell) succeed(t *testing.T, store objstore.Store, log []entry, died error) *Publisher {
	ctx := context.Background()
	if c.step != "publish.after" {
		require.ErrorIs(t, died, errCrash)
	}
	p, err := Claim(ctx, options(store), "successor")
	require.NoError(t, err)
	if cut, _ := p.snap.Cut(0, testIncarnation); cut.Through == 3 {
		return p
	}
	require.Nil(t, p.Recovered())
	f, err := planOn(ctx, p, log, 3, atHead)
	if errors.Is(err, lance.ErrNotFound) { // the head was cleaned up
		_, err = p.Adopt(ctx)
		require.NoError(t, err)
		f, err = planOn(ctx, p, log, 3, atHead)
	}
	require.NoError(t, err)
	_, err = p.Publish(ctx, f)
	require.NoError(t, err)
	return p
}

func (c betweenCell) check(t *testing.T, store objstore.Store, snap *heads.Snapshot, want outcome) {
	ctx := context.Background()
	head, _ := snap.Table(testTables[0])
	require.Equal(t, want.state, head.Head.State)
	got, err := content(ctx, store, snap, testTables[0])
	require.NoError(t, err)
	require.Equal(t, want.rows, got)
	rejects := rejectRows(t, store, snap, testTables[0])
	slices.Sort(rejects)
	slices.Sort(want.rejects)
	require.Equal(t, want.rejects, rejects)
	require.Len(t, rejectRows(t, store, snap, testTables[2]), 1, "the reject of the other table, once")
	others, err := content(ctx, store, snap, testTables[1])
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"y": 7}, others)
	cut, _ := snap.Cut(0, testIncarnation)
	require.EqualValues(t, 3, cut.Through)
}
