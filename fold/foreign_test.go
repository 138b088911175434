package fold

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
)

// foreign commits to a table as another engine does: an upsert of the rows, with
// a key filter when it is fenced, else as an append.
func (w *world) foreign(table string, fenced bool, rows map[string]int64) {
	w.t.Helper()
	entry, _ := w.heads().Table(table)
	e := engine{w.ctx, w.store}
	if fenced {
		_, err := e.merge(entry.Path, rows, nil)
		require.NoError(w.t, err)
		return
	}
	_, err := e.append(entry.Path, rows)
	require.NoError(w.t, err)
}

// TestForeignWriterBetweenPlanAndCommit is C60: a foreign merge of the same keys
// lands after our verdicts and before our commit. No key gets two rows, a strict
// insert that lost is a dead letter, a delete removes what it did not know, and
// the folds after it know the foreign rows.
func TestForeignWriterBetweenPlanAndCommit(t *testing.T) {
	for name, fenced := range map[string]bool{"fenced": true, "append": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, objstore.NewMemory(), 1, noteTable("node:T"))
			defer w.close()
			w.write("node:T", upsert("old", 1), upsert("gone", 1))
			w.fold()
			once := false
			w.opts.Step = func(s string) {
				if s == "prepared" && !once {
					once = true
					w.foreign("node:T", fenced, map[string]int64{"up": 100, "strict": 100, "absent": 100, "theirs": 100})
				}
			}
			w.claim(w.store)
			w.write("node:T", upsert("up", 2), insert("strict", 2), remove("absent"), upsert("old", 2), remove("gone"))
			r := w.fold()
			require.True(t, once)
			require.Equal(t, 1, r.Rejected)
			require.Equal(t, []string{"old=2", "strict=100", "theirs=100", "up=2"}, w.scan("node:T"))
			require.Equal(t, []string{`node:T insert key_exists {"id":"strict","value":2}`}, w.rejects())

			w.write("node:T", upsert("strict", 3), upsert("theirs", 3), insert("up", 3), remove("old"))
			w.fold()
			require.Equal(t, []string{"strict=3", "theirs=3", "up=2"}, w.scan("node:T"))
			require.Len(t, w.rejects(), 2)
		})
	}
}

// TestForeignWriterBetweenFolds: what others committed above the head is part of
// the next fold's input, whatever way it came.
func TestForeignWriterBetweenFolds(t *testing.T) {
	for name, fenced := range map[string]bool{"fenced": true, "append": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, objstore.NewMemory(), 1, noteTable("node:T"))
			defer w.close()
			w.write("node:T", upsert("a", 1), upsert("b", 1))
			w.fold()
			w.foreign("node:T", fenced, map[string]int64{"c": 100, "d": 100})
			w.write("node:T", upsert("b", 2), upsert("c", 2), insert("d", 2))
			w.fold()
			require.Equal(t, []string{"a=1", "b=2", "c=2", "d=100"}, w.scan("node:T"))
			require.Equal(t, []string{`node:T insert key_exists {"id":"d","value":2}`}, w.rejects())
		})
	}
}

// TestForeignDuplicateGoesWithTheNextWrite: a key that an unfenced writer wrote
// twice has two live rows; the next upsert or delete of it removes them all.
func TestForeignDuplicateGoesWithTheNextWrite(t *testing.T) {
	w := newWorld(t, objstore.NewMemory(), 1, noteTable("node:T"))
	defer w.close()
	w.write("node:T", upsert("a", 1), upsert("b", 1))
	w.fold()
	w.foreign("node:T", false, map[string]int64{"a": 100, "b": 100})
	w.write("node:T", upsert("x", 1))
	w.fold()
	require.Equal(t, []string{"a=1", "a=100", "b=1", "b=100", "x=1"}, w.scan("node:T"))
	w.write("node:T", upsert("a", 2), remove("b"))
	w.fold()
	require.Equal(t, []string{"a=2", "x=1"}, w.scan("node:T"))
}

// overwrite replaces all rows of a table, as another engine does.
func (w *world) overwrite(key string, rows map[string]int64) {
	w.t.Helper()
	latest, err := lance.Open(w.ctx, w.store, w.table(key).Path)
	require.NoError(w.t, err)
	rec, fragments, err := engine{w.ctx, w.store}.upload(latest, rows)
	require.NoError(w.t, err)
	rec.Release()
	_, err = latest.Commit(w.ctx, lance.NewTransaction(latest, &lance.Overwrite{Fragments: fragments, Schema: latest.Schema()}), lance.CommitOptions{})
	require.NoError(w.t, err)
}
