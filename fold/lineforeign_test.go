package fold

import (
	"fmt"
	"slices"

	"pgregory.net/rapid"
)

// foreignAct is a commit of another engine.
type foreignAct struct {
	what, table, key string
	value            int64
}

// plainTable is what a table holds: the values of the live rows of each key. Only an append of another engine makes more than one.
type plainTable map[string][]string

// apply makes the commit on a plain table; a compaction changes no row.
func (a foreignAct) apply(state plainTable) {
	switch a.what {
	case "upsert":
		state[a.key] = []string{fmt.Sprint(a.value)}
	case "append":
		state[a.key] = slices.Concat(state[a.key], []string{fmt.Sprint(a.value)})
	case "delete":
		delete(state, a.key)
	}
}

// drawForeign draws one commit of another engine.
func (h *line) drawForeign(t *rapid.T) foreignAct {
	h.value++
	return foreignAct{
		what:  rapid.SampledFrom([]string{"upsert", "upsert", "append", "delete", "compact"}).Draw(t, "what"),
		table: rapid.SampledFrom(modelTables).Draw(t, "their table"),
		key:   rapid.SampledFrom(slices.Concat(laneKeys[0][:5], laneKeys[1][:5], []string{"theirs"})).Draw(t, "their key"),
		value: int64(h.value),
	}
}

// commitForeign makes a commit of another engine and notes it by its transaction. It may run on a folder's goroutine.
func (h *line) commitForeign(a foreignAct) {
	e, path := engine{h.w.ctx, h.w.store}, tablePaths[a.table]
	h.mu.Lock()
	defer h.mu.Unlock()
	var id string
	var err error
	switch a.what {
	case "upsert":
		id, err = e.merge(path, map[string]int64{a.key: a.value}, nil)
	case "append":
		id, err = e.append(path, map[string]int64{a.key: a.value})
	case "delete":
		id, err = e.merge(path, nil, []string{a.key})
	case "compact":
		id, err = e.compact(path)
	}
	if id != "" {
		h.foreign[id] = a
	}
	if h.err == nil {
		h.err = err
	}
}

func (h *line) foreignOf(transaction string) (foreignAct, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a, ok := h.foreign[transaction]
	return a, ok
}
