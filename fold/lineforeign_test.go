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

// apply makes the commit on a plain map; a compaction changes no row.
func (a foreignAct) apply(state map[string]string) {
	switch a.what {
	case "upsert":
		state[a.key] = fmt.Sprint(a.value)
	case "delete":
		delete(state, a.key)
	}
}

// drawForeign draws one commit of another engine.
func (h *line) drawForeign(t *rapid.T) foreignAct {
	h.value++
	return foreignAct{
		what:  rapid.SampledFrom([]string{"upsert", "upsert", "delete", "compact"}).Draw(t, "what"),
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
