package fold

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/publisher"
	"github.com/foldline/foldline/wal"
)

// line is a whole line under a random history: producers, two lanes, two folders and another engine. What happened is kept as plain maps,
// which verify compares with everything that was stored.
type line struct {
	t        *rapid.T
	w        *world
	folders  [2]*process
	messages []*message
	value    int            // of the last row, so that every row is told from every other
	met      map[string]int // what all histories together have met

	owner     int // the folder that claimed last, -1 = a claim failed and nobody knows
	stopped   int // the folder that is stopped in the middle of a fold, -1 = none
	stoppedAt string

	observed map[string][]observation // by table, one for each version from 1 on

	said map[string][]heads.Head // by table, what the heads have said

	seen    map[uint32]wal.Seq // the published cut by lane, as seen last
	version uint64             // of the heads then

	mu      sync.Mutex
	foreign map[string]foreignAct // by transaction; guarded by mu
	err     error                 // of another engine; guarded by mu
}

// message is what a producer sends, until it knows that it is durable.
type message struct {
	id   string
	lane *laneOwner
	rows map[string][]row
	seq  wal.Seq // of its receipt; 0 = not known
}

// TestLineModel plays random histories of a line: messages with lost replies and retries, crashes of the lanes' machines that lose what was not synced,
// folders that take over from each other, die at a step or at a call, are stopped at a step and go on under their successor's epoch, stores that fail or lose
// an answer, and another engine's upserts, unfenced appends, deletes and compactions at any of the steps; between folds a folder compacts, and
// old versions are removed. In the end everything stored is compared with plain maps: W1, W4,
// F2, F3, F4, F5, P2, X1, X2, X3. What is drawn hangs on nothing that has happened, so a seed gives its history again; only the order of table commits within a fold is free.
func TestLineModel(t *testing.T) {
	defer fewerChecks(lineChecks)()
	met := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		h := newLine(t, met)
		defer h.close()
		t.Repeat(map[string]func(*rapid.T){
			"":           h.check,
			"write":      h.write,
			"send again": h.sendAgain,
			"lane":       h.newOwner,
			"fold":       h.fold,
			"fold again": h.fold,
			"compact":    h.compact,
			"clean up":   h.cleanUp,
			"take over":  h.takeOver,
			"stop":       h.stop,
			"go on":      h.goOn,
			"foreign":    func(t *rapid.T) { h.commitForeign(h.drawForeign(t)) },
			"release":    func(*rapid.T) { h.w.release() },
		})
		h.finish()
		h.check(t)
		h.verify()
	})
	t.Logf("the histories met: %v", met)
	if met["history"] >= lineChecks { // fewer, as in a replay, need not meet everything
		require.Positive(t, met["stale folder fenced"]+met["stopped folder fenced"])
		require.Positive(t, met["folder died"])
		require.Positive(t, met["repeated keys in the heads"])
		require.Positive(t, met["table compacted"])
		require.Positive(t, met["version removed"])
		require.Positive(t, met["lost answer settled"])
		require.Positive(t, met["fold completed by a successor"]+met["stopped folder went on"])
		require.Positive(t, met["foreign commit between plan and commit"])
	}
}

// lineChecks is how many histories a run plays unless -rapid.checks asks for more.
const lineChecks = 24

func newLine(t *rapid.T, met map[string]int) *line {
	h := &line{t: t, met: met, stopped: -1, seen: map[uint32]wal.Seq{}, foreign: map[string]foreignAct{},
		observed: map[string][]observation{}, said: map[string][]heads.Head{}}
	h.w = newWorldOn(t, objstore.NewMemory(), func() vfs.FS { return vfs.NewCrashableMem() }, 2, noteTable("node:A"), noteTable("node:B"), noteTable("edge:C"))
	h.w.closeIndex()
	h.w.retention = publisher.Retention{MinVersions: 5, MaxVersions: 5}
	for i := range h.folders {
		h.folders[i] = newProcess(h)
	}
	require.NoError(t, h.folders[0].claim(trouble{}))
	met["history"]++
	return h
}

func (h *line) close() {
	if h.stopped >= 0 { // the history has failed
		p := h.folders[h.stopped]
		p.mu.Lock()
		p.dead = true
		p.mu.Unlock()
		_ = p.resume()
	}
	for _, p := range h.folders {
		p.close()
	}
	h.w.close()
}

// write sends one to three messages to a lane. Their replies come, or are lost, or the machine of the lane crashes at once.
func (h *line) write(t *rapid.T) {
	o := h.w.lanes[rapid.IntRange(0, 1).Draw(t, "lane")]
	var sent []*message
	for range rapid.IntRange(1, 3).Draw(t, "messages") {
		m := &message{id: fmt.Sprint("m", len(h.messages)), lane: o, rows: map[string][]row{}}
		for range rapid.IntRange(1, 5).Draw(t, "rows") {
			table := rapid.SampledFrom(modelTables).Draw(t, "table")
			key := rapid.SampledFrom(laneKeys[o.lane][:5]).Draw(t, "key")
			op := rapid.SampledFrom([]wal.Op{wal.OpUpsert, wal.OpUpsert, wal.OpInsert, wal.OpDelete}).Draw(t, "op")
			h.value++
			m.rows[table] = append(m.rows[table], row{op, []any{key, h.value}})
		}
		h.messages, sent = append(h.messages, m), append(sent, m)
	}
	reply := rapid.SampledFrom([]string{"comes", "comes", "comes", "is lost", "crash before the sync", "crash after the sync"}).Draw(t, "reply")
	before := crashClone(t, o)
	receipts := h.send(o, sent...)
	switch reply {
	case "comes":
		for i, m := range sent {
			h.acknowledge(m, receipts[i])
		}
	case "crash before the sync":
		h.crash(o, before)
	case "crash after the sync":
		h.crash(o, crashClone(t, o))
	}
}

// send appends messages to their lane at once and returns their receipts.
func (h *line) send(o *laneOwner, messages ...*message) []wal.Receipt {
	entries := make([]wal.Entry, len(messages))
	for i, m := range messages {
		entries[i].MsgID = m.id
		copy(entries[i].Digest[:], m.id)
		for _, table := range modelTables {
			if rows := m.rows[table]; len(rows) > 0 {
				entries[i].Rows = append(entries[i].Rows, o.rowsOf(h.w, table, rows...))
			}
		}
	}
	answers := make(chan wal.Result, len(messages))
	_, err := o.log.AppendAll(h.w.ctx, entries, func(_ int, results []wal.Result) {
		for _, r := range results {
			answers <- r
		}
	})
	for _, e := range entries {
		for _, r := range e.Rows {
			r.Record.Release()
		}
	}
	require.NoError(h.t, err)
	receipts := make([]wal.Receipt, len(messages))
	for i := range receipts {
		answer := <-answers
		require.NoError(h.t, answer.Err)
		receipts[i] = answer.Receipt
	}
	return receipts
}

// acknowledge takes a reply: a message that was acknowledged keeps its place for ever (W1).
func (h *line) acknowledge(m *message, r wal.Receipt) {
	if m.seq != 0 {
		require.Equal(h.t, m.seq, r.Seq, "message %s", m.id)
		require.True(h.t, r.Duplicate, "message %s was acknowledged", m.id)
	}
	m.seq = r.Seq
}

// sendAgain retries any message: one whose reply was lost, or one that is done.
func (h *line) sendAgain(t *rapid.T) {
	if i := rapid.IntRange(0, 50).Draw(t, "message"); i < len(h.messages) {
		m := h.messages[len(h.messages)-1-i]
		h.acknowledge(m, h.send(m.lane, m)[0])
	}
}

// sorted are the messages of a lane in the order of its log.
func (h *line) sorted(lane uint32) []*message {
	var out []*message
	for _, m := range h.messages {
		if m.lane.lane == lane {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b *message) int { return cmp.Compare(a.seq, b.seq) })
	return out
}

// newOwner ends the owner of a lane, cleanly or with its machine, and starts the next one.
func (h *line) newOwner(t *rapid.T) {
	o := h.w.lanes[rapid.IntRange(0, 1).Draw(t, "lane")]
	clone := crashClone(t, o)
	if !rapid.Bool().Draw(t, "crash") {
		clone = o.fs
	}
	h.crash(o, clone)
}

// crashClone is what a crash of a lane's machine now would leave: of what was not synced, any part may be gone.
func crashClone(t *rapid.T, o *laneOwner) vfs.FS {
	kept := rapid.SampledFrom([]int{0, 0, 50, 100}).Draw(t, "unsynced that survives, in percent")
	seed := rapid.Uint64().Draw(t, "which")
	return o.fs.(*vfs.MemFS).CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: kept, RNG: rand.New(rand.NewPCG(seed, 0))})
}

// crash ends the owner of a lane and lets the next one begin on what is left.
func (h *line) crash(o *laneOwner, left vfs.FS) {
	o.stop()
	o.fs = left
	h.w.open(o)
}

// fold lets a folder fold once: the owner, or one that does not know of its successor.
func (h *line) fold(t *rapid.T) {
	stale := rapid.IntRange(0, 3).Draw(t, "stale") == 0
	trouble, adopt := h.drawTrouble(t, folderSteps), rapid.Bool().Draw(t, "adopt")
	if rapid.Bool().Draw(t, "write first") {
		h.write(t)
	}
	i := h.ownerOr(0)
	if stale {
		i = 1 - i
	}
	if p := h.folders[i]; i != h.stopped && p.folder != nil {
		p.begin(trouble)
		h.ended(i, p.fold(adopt))
	}
}

// ownerOr is the owner, or i when nobody knows who that is.
func (h *line) ownerOr(i int) int {
	if h.owner >= 0 {
		return h.owner
	}
	return i
}

// ended judges the end of a fold and lets a folder go that is used up.
func (h *line) ended(i int, err error) {
	p := h.folders[i]
	hit, dead := p.hurt()
	switch {
	case hit:
		if dead {
			h.met["folder died"]++
		}
	case h.owner < 0:
	case h.owner == i && p.lost && !p.begun && err != nil: // a plan that was not written down: the same folder plans again
		require.ErrorIs(h.t, err, objstore.ErrUnknownOutcome)
		return
	case h.owner == i:
		require.NoError(h.t, err)
		h.settled(i)
	default:
		require.ErrorIs(h.t, err, ErrFenced, "folder %d goes on after folder %d has claimed", i, h.owner)
		h.met["stale folder fenced"]++
	}
	if err != nil || dead {
		p.folder = nil
	}
}

// settled counts a claim or fold that has met a lost answer and goes on all the same (X3).
func (h *line) settled(i int) {
	if h.folders[i].lost {
		h.met["lost answer settled"]++
	}
}

// takeOver lets a folder claim, mostly the one that does not own the graph, and complete what the other one has begun.
func (h *line) takeOver(t *rapid.T) {
	again := rapid.IntRange(0, 3).Draw(t, "again") == 0
	h.w.opts.MaxRows = rapid.IntRange(1, 20).Draw(t, "max rows")
	h.w.opts.MaxBytes = rapid.SampledFrom([]int64{1, 1000, 1 << 20}).Draw(t, "max bytes")
	trouble := h.drawTrouble(t, claimSteps)
	i := 1 - h.ownerOr(0)
	if again {
		i = 1 - i
	}
	if i != h.stopped {
		h.claim(i, trouble)
	}
}

func (h *line) claim(i int, t trouble) {
	err := h.folders[i].claim(t)
	if hit, _ := h.folders[i].hurt(); !hit {
		require.NoError(h.t, err)
		h.settled(i)
	}
	h.owner = i
	if err != nil {
		h.owner = -1
		return
	}
	if p := h.folders[i].folder; p != nil && p.publisher.(*publisher.Publisher).Recovered() != nil {
		h.met["fold completed by a successor"]++
	}
}

// stop stops the owner at a step of a fold, as SIGSTOP does. It stays stopped while the history goes on, mostly under a successor.
func (h *line) stop(t *rapid.T) {
	step := rapid.SampledFrom(folderSteps).Draw(t, "stopped at")
	within := trouble{foreign: map[string]foreignAct{rapid.SampledFrom(folderSteps).Draw(t, "at step"): h.drawForeign(t)}}
	successor, itsTrouble := rapid.IntRange(0, 3).Draw(t, "no successor yet") > 0, h.drawTrouble(t, claimSteps)
	h.write(t)
	if h.stopped >= 0 {
		return
	}
	i := h.ownerOr(0)
	if h.folders[i].folder == nil {
		h.claim(i, trouble{})
	}
	stopped, err := h.folders[i].stopAt(step, within)
	if !stopped {
		h.ended(i, err)
		return
	}
	h.stopped, h.stoppedAt = i, step
	if successor {
		h.claim(1-i, itsTrouble)
	}
}

// goOn lets the stopped folder go on: under its successor's epoch it changes nothing more (X2).
func (h *line) goOn(*rapid.T) {
	if h.stopped < 0 {
		return
	}
	i := h.stopped
	err := h.folders[i].resume()
	h.stopped = -1
	if slices.Index(folderSteps, h.stoppedAt) < slices.Index(folderSteps, "publish.after") {
		if h.owner == i {
			h.met["stopped folder went on"]++
		} else if h.owner >= 0 {
			h.met["stopped folder fenced"]++
		}
		h.ended(i, err)
		return
	}
	require.NoError(h.t, err, "stopped at %s, when the fold was published", h.stoppedAt)
}
