package fold

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/keys"
	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/publisher"
	"github.com/foldline/foldline/wal"
)

const (
	mostLanes      = 4
	laneModelTable = "node:A"
	// laneModelChecks is how many histories a run plays unless -rapid.checks asks for more.
	laneModelChecks = 40
)

// placedWrite is an acknowledged write of one key.
type placedWrite struct {
	lane        uint32
	incarnation string
	seq         wal.Seq
}

// laneModel is a line whose lane count changes, and a plain map of what was acknowledged, which is the order of the writes of each key.
type laneModel struct {
	t      *rapid.T
	w      *world
	rows   map[string]string
	writes map[string][]placedWrite
	value  int
}

// TestLaneChangeModel plays random histories of lane changes: writes to the lane of their key, owners that seal, crash and open new logs, folders that fold and take
// over, and changes that are begun, replaced and made at any moment. No key ever has unfolded rows in two incarnations (W5), and in the end the table is the plain map
// (W2, F2, F3).
func TestLaneChangeModel(t *testing.T) {
	defer fewerChecks(laneModelChecks)()
	changes := 0
	rapid.Check(t, func(t *rapid.T) {
		m := newLaneModel(t)
		defer m.w.close()
		t.Repeat(map[string]func(*rapid.T){
			"":            func(*rapid.T) { m.check() },
			"write":       m.write,
			"write again": m.write,
			"owner looks": func(t *rapid.T) { m.look(m.owner(t)) },
			"owner dies":  m.crash,
			"fold":        func(*rapid.T) { m.fold() },
			"take over":   func(*rapid.T) { m.w.claim(m.w.store) },
			"change": func(t *rapid.T) {
				_, err := m.w.folder.publisher.ChangeLanes(m.w.ctx, uint32(rapid.IntRange(1, mostLanes).Draw(t, "lanes")))
				require.NoError(t, err)
			},
		})
		m.finish()
		changes += int(m.w.heads().LaneGeneration)
	})
	t.Logf("%d changes of the lane count", changes)
	require.Positive(t, changes)
}

func newLaneModel(t *rapid.T) *laneModel {
	m := &laneModel{t: t, rows: map[string]string{}, writes: map[string][]placedWrite{}}
	m.w = newWorldOn(t, objstore.NewMemory(), func() vfs.FS { return vfs.NewCrashableMem() }, 1, noteTable(laneModelTable))
	for lane := uint32(1); lane < mostLanes; lane++ {
		m.w.lanes = append(m.w.lanes, &laneOwner{lane: lane, stop: func() {}})
	}
	return m
}

func (m *laneModel) owner(t *rapid.T) *laneOwner {
	return m.w.lanes[rapid.IntRange(0, mostLanes-1).Draw(t, "lane")]
}

// write sends one row to the lane of its key. A lane without an owner, and one that is sealed, takes none.
func (m *laneModel) write(t *rapid.T) {
	key := fmt.Sprint("k", rapid.IntRange(0, 7).Draw(t, "key"))
	gone := rapid.IntRange(0, 3).Draw(t, "delete") == 0
	o := m.w.lanes[keys.Lane([]byte(key), m.w.heads().LaneCount)]
	if o.log == nil {
		return
	}
	m.value++
	r := upsert(key, m.value)
	if gone {
		r = remove(key)
	}
	rows := o.rowsOf(m.w, laneModelTable, r)
	defer rows.Record.Release()
	answer := make(chan wal.Result, 1)
	err := o.log.Append(m.w.ctx, wal.Entry{Rows: []wal.Rows{rows}}, func(r wal.Receipt, err error) { answer <- wal.Result{Receipt: r, Err: err} })
	if errors.Is(err, wal.ErrSealed) {
		return
	}
	require.NoError(t, err)
	got := <-answer
	require.NoError(t, got.Err)
	m.writes[key] = append(m.writes[key], placedWrite{o.lane, got.Receipt.Incarnation, got.Receipt.Seq})
	if delete(m.rows, key); !gone {
		m.rows[key] = fmt.Sprint(m.value)
	}
}

// look is what an ingester does when it has read the heads: it seals its lane, opens a new log in place of a closed one, or ends.
func (m *laneModel) look(o *laneOwner) {
	s := m.w.heads()
	if o.log != nil {
		cut, ok := s.Cut(o.lane, o.log.Incarnation())
		require.True(m.t, ok)
		if cut.Open {
			if s.LaneTarget > 0 || cut.Sealed {
				m.seal(o, s, cut)
			}
			return
		}
		require.True(m.t, cut.Drained())
		o.stop()
		o.log, o.stop = nil, func() {}
	}
	if o.lane < s.LaneCount && s.LaneTarget == 0 {
		o.fs = vfs.NewCrashableMem()
		m.w.open(o)
	}
}

func (m *laneModel) seal(o *laneOwner, s *heads.Snapshot, cut heads.Cut) {
	end, err := o.log.Seal(m.w.ctx)
	require.NoError(m.t, err)
	if cut.Sealed {
		require.Equal(m.t, wal.Seq(cut.End), end)
		return
	}
	require.NoError(m.t, publisher.SealLane(m.w.ctx, publisher.Options{Store: m.w.store},
		publisher.LaneSeal{Lane: o.lane, Incarnation: o.log.Incarnation(), Epoch: s.LaneEpoch(o.lane), End: uint64(end)}))
}

// crash ends an owner with its machine; the next one looks at the heads before it takes anything.
func (m *laneModel) crash(t *rapid.T) {
	o := m.owner(t)
	if o.log == nil {
		return
	}
	left := crashClone(t, o)
	if cut, _ := m.w.heads().Cut(o.lane, o.log.Incarnation()); cut.Open {
		o.stop()
		o.fs = left
		m.w.open(o)
	}
	m.look(o)
}

func (m *laneModel) fold() {
	r, err := m.w.folder.FoldOnce(m.w.ctx)
	require.NoError(m.t, err)
	require.Empty(m.t, r.Lanes)
}

// check requires that the unfolded writes of a key are in one incarnation (W5).
func (m *laneModel) check() {
	s := m.w.heads()
	for key, writes := range m.writes {
		in := map[string]bool{}
		for _, w := range writes {
			if cut, ok := s.Cut(w.lane, w.incarnation); !ok || wal.Seq(cut.Through) < w.seq {
				in[w.incarnation] = true
			}
		}
		require.LessOrEqual(m.t, len(in), 1, "key %s has unfolded rows in several logs", key)
	}
}

// finish lets a change that is under way be made and everything be folded, and compares.
func (m *laneModel) finish() {
	for m.w.heads().LaneTarget > 0 {
		for _, o := range m.w.lanes {
			m.look(o)
		}
		m.fold()
	}
	for _, o := range m.w.lanes {
		m.look(o)
	}
	m.w.fold()
	m.check()
	var want []string
	for _, key := range slices.Sorted(maps.Keys(m.rows)) {
		want = append(want, key+"="+m.rows[key])
	}
	require.Equal(m.t, want, m.w.scan(laneModelTable))
}
