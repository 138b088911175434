package fold

import (
	"flag"
	"fmt"
	"strconv"
	"testing"

	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/foldline/foldline/internal/keys"
	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/wal"
)

// TestModel plays random histories over two lanes and three tables — upserts,
// strict inserts, deletes, entries over several tables, folds with small bounds,
// releases, new owners of lanes and of the graph — and compares every table and
// the dead letters with plain maps (F2, F3, F4).
func TestModel(t *testing.T) {
	defer fewerChecks(30)()
	rapid.Check(t, func(t *rapid.T) {
		h := &history{t: t, model: newModel()}
		mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
		h.mem = mem
		h.w = newWorld(t, objstore.NewMemory(), 2, noteTable("node:A"), noteTable("node:B"), noteTable("edge:C"))
		defer h.w.close()
		t.Repeat(map[string]func(*rapid.T){
			"write":      h.write,
			"fold":       h.fold,
			"release":    func(*rapid.T) { h.w.release() },
			"new lane":   h.reopen,
			"new folder": h.reclaim,
		})
		h.w.fold()
		h.check()
		mem.AssertSize(fataler{t}, 0)
	})
}

// fewerChecks lowers the number of histories, each of which builds a whole
// graph, unless the command line asks for a number. Its result undoes it.
func fewerChecks(n int) func() {
	f := flag.Lookup("rapid.checks")
	if f == nil || f.Value.String() != f.DefValue {
		return func() {}
	}
	_ = f.Value.Set(strconv.Itoa(n)) // a number is taken
	return func() { _ = f.Value.Set(f.DefValue) }
}

type history struct {
	t     *rapid.T
	w     *world
	model *model
	mem   memory.Allocator
}

var modelTables = []string{"node:A", "node:B", "edge:C"}

// write appends one entry with rows for one to three tables, all of the lane
// that their keys belong to (W5).
func (h *history) write(t *rapid.T) {
	o := h.w.lanes[rapid.IntRange(0, 1).Draw(t, "lane")]
	var e wal.Entry
	for _, table := range modelTables {
		if !rapid.Bool().Draw(t, table) && len(e.Rows) > 0 {
			continue
		}
		rows := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) row {
			key := rapid.SampledFrom(laneKeys[o.lane]).Draw(t, "key")
			op := rapid.SampledFrom([]wal.Op{wal.OpUpsert, wal.OpUpsert, wal.OpInsert, wal.OpDelete}).Draw(t, "op")
			return row{op, []any{key, rapid.IntRange(0, 999).Draw(t, "value")}}
		}), 1, 6).Draw(t, "rows")
		h.model.apply(table, rows)
		e.Rows = append(e.Rows, o.rowsOf(h.w, table, rows...))
	}
	h.w.append(o, e)
}

// laneKeys are ten keys for each of two lanes.
var laneKeys = func() [2][]string {
	var out [2][]string
	for i := 0; len(out[0]) < 10 || len(out[1]) < 10; i++ {
		key := fmt.Sprintf("key-%d", i)
		if lane := keys.Lane([]byte(key), 2); len(out[lane]) < 10 {
			out[lane] = append(out[lane], key)
		}
	}
	return out
}()

func (h *history) fold(t *rapid.T) {
	if rapid.Bool().Draw(t, "once") {
		_, err := h.w.folder.FoldOnce(h.w.ctx)
		require.NoError(t, err)
		return
	}
	h.w.fold()
	h.check()
}

func (h *history) reopen(t *rapid.T) {
	o := h.w.lanes[rapid.IntRange(0, 1).Draw(t, "lane")]
	o.stop()
	h.w.open(o)
}

func (h *history) reclaim(t *rapid.T) {
	h.w.opts.MaxRows = rapid.IntRange(1, 20).Draw(t, "max rows")
	h.w.opts.MaxBytes = rapid.SampledFrom([]int64{1, 1000, 1 << 20}).Draw(t, "max bytes")
	switch rapid.IntRange(0, 3).Draw(t, "index") {
	case 0:
		h.w.indexFS = nil
	case 1:
		h.w.indexFS = vfs.NewMem() // a lost one
	default:
		if h.w.indexFS == nil {
			h.w.indexFS = vfs.NewMem()
		}
	}
	h.w.opts.Memory = h.mem
	h.w.claim(h.w.store)
}

func (h *history) check() {
	for _, table := range modelTables {
		require.Equal(h.t, h.model.lines(table), h.w.scan(table), table)
	}
	require.Equal(h.t, h.model.sortedRejects(), sorted(h.w.rejects()))
}
