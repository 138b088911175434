package e2e

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/cmd/internal/run"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/rowjson"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/publisher"
)

// openGraph opens the store of a graph root.
func openGraph(t *testing.T, root string) objstore.Store {
	t.Helper()
	store, err := run.OpenStore(t.Context(), root)
	require.NoError(t, err)
	return store
}

// scan calls row for every row of a table at the version that the snapshot names.
func scan(t *testing.T, store objstore.Store, s *heads.Snapshot, table string, row func(rec arrow.Record, i int)) {
	t.Helper()
	open, err := s.OpenTable(t.Context(), store, table)
	require.NoError(t, err, table)
	for rec, err := range open.Scan(t.Context(), lance.ScanOptions{}) {
		require.NoError(t, err, table)
		for i := range int(rec.NumRows()) {
			row(rec, i)
		}
		rec.Release()
	}
}

// checkAtomic requires that the heads show every message whole or not at all (P2, P4): the newest mark of each worker is
// the same in all tables. It may be called while the line is dead, before anything has recovered it.
func checkAtomic(t *testing.T, store objstore.Store, workers int) {
	t.Helper()
	s, err := heads.Resolve(t.Context(), store, "")
	if err != nil {
		require.ErrorIs(t, err, heads.ErrNoGraph)
		return
	}
	var newest [][]int64
	for _, table := range tables {
		if _, ok := s.Table(table); !ok {
			return // killed before the tables were there
		}
		revs := make([]int64, workers)
		scan(t, store, s, table, func(rec arrow.Record, i int) {
			w := column(t, rec, "worker").Value(i)
			revs[w] = max(revs[w], column(t, rec, "rev").Value(i))
		})
		newest = append(newest, revs)
	}
	require.Equal(t, newest[0], newest[1], "a message is visible in %s and not in %s", tables[0], tables[1])
	require.Equal(t, newest[0], newest[2], "a message is visible in %s and not in %s", tables[0], tables[2])
}

func column(t *testing.T, rec arrow.Record, name string) *array.Int64 {
	t.Helper()
	at := rec.Schema().FieldIndices(name)
	require.Len(t, at, 1)
	return rec.Column(at[0]).(*array.Int64)
}

// checkExact requires that every table holds exactly the acknowledged rows, each once (F2, F3, F4), and the dead letters exactly the
// strict inserts that had to lose (crash C15).
func checkExact(t *testing.T, store objstore.Store, workers []*worker) {
	t.Helper()
	s, err := heads.Resolve(t.Context(), store, "")
	require.NoError(t, err)
	checkTable[airport](t, store, s, airports, workers)
	checkTable[route](t, store, s, routes, workers)
	checkTable[flight](t, store, s, flights, workers)
	checkRejects(t, store, s, workers)
}

func checkRejects(t *testing.T, store objstore.Store, s *heads.Snapshot, workers []*worker) {
	t.Helper()
	want, got := map[mark]int{}, map[mark]int{}
	for _, w := range workers {
		for rev := range w.rejected {
			want[mark{w.id, rev}] = 1
		}
	}
	scan(t, store, s, heads.RejectsKey, func(rec arrow.Record, i int) {
		text, err := rowjson.AppendRow(nil, rec, i)
		require.NoError(t, err)
		var letter struct{ Table, Op, Code, Row string }
		require.NoError(t, json.Unmarshal(text, &letter))
		require.Equal(t, []string{airports, "insert", publisher.CodeKeyExists}, []string{letter.Table, letter.Op, letter.Code}, "%s", text)
		var row airport
		require.NoError(t, json.Unmarshal([]byte(letter.Row), &row))
		got[row.mark]++
	})
	require.Equal(t, want, got, "dead letters")
}

func checkTable[T any](t *testing.T, store objstore.Store, s *heads.Snapshot, table string, workers []*worker) {
	t.Helper()
	want := map[string]any{}
	for _, w := range workers {
		for id, row := range w.acked[table] {
			want[id] = row
		}
	}
	require.NotEmpty(t, want)
	got := map[string]any{}
	scan(t, store, s, table, func(rec arrow.Record, i int) {
		text, err := rowjson.AppendRow(nil, rec, i)
		require.NoError(t, err)
		var row T
		require.NoError(t, json.Unmarshal(text, &row))
		id := rec.Column(0).(*array.String).Value(i)
		if _, twice := got[id]; twice {
			t.Errorf("%s: key %s is there twice", table, id)
		}
		got[string([]byte(id))] = row
	})
	for id, row := range want {
		if _, there := got[id]; !there {
			t.Errorf("%s: acknowledged row is not there: %+v", table, row)
		}
	}
	for id, row := range got {
		if _, acked := want[id]; !acked {
			t.Errorf("%s: row that should not be there: %+v", table, row)
		}
	}
	require.False(t, t.Failed())
	require.Equal(t, want, got, table)
	h, _ := s.Table(table)
	require.EqualValues(t, len(want), h.Head.Rows, "the head's row count of %s", table)
}

// visible reports whether the heads cover what the workers' last receipts name.
func visible(ctx context.Context, store objstore.Store, workers []*worker) bool {
	s, err := heads.Current(ctx, store, "")
	if err != nil {
		return false
	}
	for _, w := range workers {
		for _, part := range append(w.last.Parts, w.last.Receipt) {
			cut, ok := s.Cut(part.Lane, part.Incarnation)
			if !ok || cut.Through < part.Seq {
				return false
			}
		}
	}
	return true
}
