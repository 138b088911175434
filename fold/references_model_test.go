package fold

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/wal"
)

// TestReferencesModel holds random cuts over tables that refer to themselves and to each other to the plainest way of judging: refuse what dangles, decide all
// anew, until nothing does.
func TestReferencesModel(t *testing.T) {
	defer fewerChecks(30)()
	ids := []string{"a", "b", "c"}
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, objstore.NewMemory(), 1, edgeTable("node:P"), edgeTable("node:Q"))
		defer w.close()
		w.setReferences("node:P", to("node:P", "src"), to("node:Q", "dst"))
		w.setReferences("node:Q", to("node:P", "dst"))
		if rapid.Bool().Draw(t, "scan") {
			w.withoutIndex()
		}
		m := &referenceModel{state: map[string]map[string][2]string{"node:P": {}, "node:Q": {}}}
		for range rapid.IntRange(1, 3).Draw(t, "folds") {
			var writes []modelWrite
			for range rapid.IntRange(1, 12).Draw(t, "writes") {
				write := modelWrite{table: rapid.SampledFrom([]string{"node:P", "node:Q"}).Draw(t, "table"), id: rapid.SampledFrom(ids).Draw(t, "id"),
					op: rapid.SampledFrom([]wal.Op{wal.OpUpsert, wal.OpUpsert, wal.OpInsert, wal.OpDelete}).Draw(t, "op")}
				if write.op != wal.OpDelete {
					write.ends = [2]string{rapid.SampledFrom(append(ids, "")).Draw(t, "src"), rapid.SampledFrom(append(ids, "")).Draw(t, "dst")}
				}
				writes = append(writes, write)
				w.write(write.table, row{write.op, []any{write.id, orNull(write.ends[0]), orNull(write.ends[1])}})
			}
			m.fold(writes)
			w.fold()
			for table, rows := range m.state {
				require.Equal(t, modelLines(rows), w.scan(table), table)
			}
			require.Len(t, w.rejects(), m.rejects)
		}
	})
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

type modelWrite struct {
	table, id string
	op        wal.Op
	ends      [2]string
}

type referenceModel struct {
	state   map[string]map[string][2]string
	rejects int
}

// fold plays all writes but the refused ones, again and again until none of those that stand dangles.
func (m *referenceModel) fold(writes []modelWrite) {
	refused := make([]bool, len(writes))
	for {
		next, standing, lost := m.play(writes, refused)
		again := false
		for table, rows := range standing {
			for id, i := range rows {
				ends := next[table][id]
				_, src := next["node:P"][ends[0]]
				_, dst := next[map[string]string{"node:P": "node:Q", "node:Q": "node:P"}[table]][ends[1]]
				if table == "node:P" && ends[0] != "" && !src || ends[1] != "" && !dst {
					refused[i], again = true, true
				}
			}
		}
		if !again {
			m.state = next
			m.rejects += lost
			for _, r := range refused {
				if r {
					m.rejects++
				}
			}
			return
		}
	}
}

func (m *referenceModel) play(writes []modelWrite, refused []bool) (next map[string]map[string][2]string, standing map[string]map[string]int, lost int) {
	next, standing = map[string]map[string][2]string{}, map[string]map[string]int{}
	for table, rows := range m.state {
		next[table], standing[table] = map[string][2]string{}, map[string]int{}
		for id, ends := range rows {
			next[table][id] = ends
		}
	}
	for i, write := range writes {
		if refused[i] {
			continue
		}
		_, exists := next[write.table][write.id]
		switch {
		case write.op == wal.OpInsert && exists:
			lost++
		case write.op == wal.OpDelete:
			delete(next[write.table], write.id)
			delete(standing[write.table], write.id)
		default:
			next[write.table][write.id], standing[write.table][write.id] = write.ends, i
		}
	}
	return next, standing, lost
}

func modelLines(rows map[string][2]string) (out []string) {
	text := func(s string) string {
		if s == "" {
			return "(null)"
		}
		return s
	}
	for id, ends := range rows {
		out = append(out, id+"="+text(ends[0])+"="+text(ends[1]))
	}
	slices.Sort(out)
	return out
}
