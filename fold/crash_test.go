package fold

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/faultstore"
	"github.com/foldline/foldline/publisher"
)

// doom decides when a folder dies. Once hit is set, its store answers nothing.
type doom struct {
	armed, hit atomic.Bool
	call       faultstore.Injector
	step       func(name string)
}

func (d *doom) inject(ctx context.Context, c faultstore.Call) faultstore.Fault {
	if !d.armed.Load() || d.call == nil {
		return faultstore.Fault{}
	}
	f := d.call(ctx, c)
	if f.Before != nil || f.After != nil {
		d.hit.Store(true)
	}
	return f
}

// TestCrashAtEveryStoreCall cuts the folder off from its store at the k-th call
// of a fold, for every k, and lets a successor complete or repeat it. Whatever k
// is, each entry is folded exactly once (F2), with the verdicts of the plan (F5).
func TestCrashAtEveryStoreCall(t *testing.T) {
	crashLoop(t, func(k int) *doom {
		return &doom{call: faultstore.FromCall(k, faultstore.Ops(), errKilled)}
	})
}

// TestLostAnswerOfEveryWrite does the k-th write of a fold and loses its answer,
// for every k (X3).
func TestLostAnswerOfEveryWrite(t *testing.T) {
	crashLoop(t, func(k int) *doom {
		return &doom{call: faultstore.Lose(k, faultstore.Ops(faultstore.Writes()...))}
	})
}

// TestKilledAtEveryStep cuts the folder off at each of its own and of the
// publisher's steps: before and after the record, each table, the publish.
func TestKilledAtEveryStep(t *testing.T) {
	var seen sync.Map // names of steps; tables are committed side by side
	crashLoop(t, func(k int) *doom {
		d := &doom{}
		var n atomic.Int32
		d.step = func(name string) {
			if !d.armed.Load() {
				return
			}
			seen.Store(name, true)
			if int(n.Add(1)) == k {
				d.hit.Store(true)
			}
		}
		d.call = func(context.Context, faultstore.Call) faultstore.Fault {
			if d.hit.Load() {
				return faultstore.Fault{Before: errKilled}
			}
			return faultstore.Fault{}
		}
		return d
	})
	for _, want := range []string{
		"cut", "prepared", "record.before", "record.after", "commit.node:A.before", "commit.edge:C.after", "draft.before", "draft.after", "publish.before", "publish.after",
	} {
		_, ok := seen.Load(want)
		require.True(t, ok, want)
	}
}

// crashLoop runs one fold of three tables under the k-th fault, for k = 1, 2, …
// until a fold meets none.
func crashLoop(t *testing.T, fault func(k int) *doom) {
	for k := 1; ; k++ {
		d := fault(k)
		t.Run(fmt.Sprint(k), func(t *testing.T) { crashOnce(t, d) })
		if !d.hit.Load() || t.Failed() {
			require.Greater(t, k, 8, "a fold of three tables has more points than that")
			return
		}
	}
}

func crashOnce(t *testing.T, d *doom) {
	inner := objstore.NewMemory()
	w := newWorld(t, inner, 1, noteTable("node:A"), noteTable("node:B"), noteTable("edge:C"))
	defer w.close()
	m := newModel()
	write := func(table string, rows ...row) {
		m.apply(table, rows)
		w.write(table, rows...)
	}
	for _, table := range modelTables {
		write(table, upsert("old", 1), upsert("gone", 2))
	}
	w.fold()
	for i, table := range modelTables {
		write(table, upsert("old", 10+i), upsert("new", i), remove("gone"), insert("old", 3), insert("strict", 4))
	}
	if d.step != nil {
		w.opts.Step = d.step
		w.publisherStep = func(s publisher.Step) { d.step(string(s)) }
	}
	w.claim(faultstore.New(inner, d.inject))
	d.armed.Store(true)
	_, err := w.folder.FoldOnce(w.ctx)
	d.armed.Store(false)
	if !d.hit.Load() {
		require.NoError(t, err)
	}
	w.opts, w.publisherStep = Options{}, nil
	w.claim(inner) // completes what was recorded and committed
	write("node:A", insert("strict", 5))
	w.fold()
	for _, table := range modelTables {
		require.Equal(t, m.lines(table), w.scan(table), table)
	}
	require.Equal(t, m.sortedRejects(), sorted(w.rejects()))
}
