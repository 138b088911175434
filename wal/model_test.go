package wal

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// modelEntry is an entry of the plain-slice model.
type modelEntry struct {
	seq   Seq
	id    string
	first int // of its rows
	rows  int
	time  time.Time
	inc   string // of the log that acknowledged it
}

// model is the log as a slice.
type model struct {
	t        *rapid.T
	mem      *vfs.MemFS
	clock    *testClock
	dir      string // of the log; a successor has another
	log      *Log
	cancel   func() error
	entries  []modelEntry
	past     []modelEntry // of logs that went before
	released Seq
	epoch    Epoch
	next     int
}

const modelWindow = time.Minute

func (m *model) options(fs vfs.FS) Options {
	opts := testOptions(fs)
	opts.Dir, opts.Clock, opts.DedupeWindow, opts.memTableBytes = m.dir, m.clock.Now, modelWindow, 64<<10
	return opts
}

func (m *model) open() {
	l, err := Open(context.Background(), m.options(m.mem))
	require.NoError(m.t, err)
	m.run(l)
}

func (m *model) run(l *Log) {
	m.epoch++
	require.NoError(m.t, l.Begin(m.epoch))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	m.log = l
	m.cancel = func() error {
		cancel()
		if err := <-done; err != nil {
			return err
		}
		return l.Close()
	}
}

// append sends a burst of entries at once and checks receipts.
func (m *model) append(t *rapid.T) {
	type sent struct {
		entry  modelEntry
		answer chan answer
	}
	var burst []sent
	for range rapid.IntRange(1, 6).Draw(t, "burst") {
		e := modelEntry{first: m.next, rows: rapid.IntRange(1, 40).Draw(t, "rows"), time: m.clock.Now()}
		if rapid.Bool().Draw(t, "with id") {
			e.id = fmt.Sprint("m", m.next)
		}
		m.next += e.rows
		ch := make(chan answer, 1)
		require.NoError(t, m.log.Append(context.Background(), entryOf(e.id, e.first, e.rows),
			func(r Receipt, err error) { ch <- answer{r, err} }))
		burst = append(burst, sent{e, ch})
	}
	for _, s := range burst {
		a := <-s.answer
		require.NoError(t, a.err)
		want := NewSeq(m.epoch, 1)
		if n := len(m.entries); n > 0 && m.entries[n-1].seq.Epoch() == m.epoch {
			want = m.entries[n-1].seq + 1
		}
		require.Equal(t, want, a.receipt.Seq)
		require.False(t, a.receipt.Duplicate)
		s.entry.seq, s.entry.inc = a.receipt.Seq, m.log.Incarnation()
		m.entries = append(m.entries, s.entry)
	}
}

// retry sends an old message id again.
func (m *model) retry(t *rapid.T) {
	all := slices.Concat(m.past, m.entries)
	if len(all) == 0 {
		return
	}
	e := rapid.SampledFrom(all).Draw(t, "retried")
	if e.id == "" || m.clock.Now().Sub(e.time) >= modelWindow {
		return
	}
	ch := make(chan answer, 1)
	reuse := rapid.Bool().Draw(t, "other body")
	again := entryOf(e.id, e.first, e.rows)
	if reuse {
		again.Digest[5]++
	}
	require.NoError(t, m.log.Append(context.Background(), again, func(r Receipt, err error) { ch <- answer{r, err} }))
	a := <-ch
	if reuse {
		require.ErrorIs(t, a.err, ErrMsgIDReused)
		return
	}
	require.NoError(t, a.err)
	require.Equal(t, Receipt{
		Incarnation: e.inc, Seq: e.seq, Epoch: e.seq.Epoch(), Rows: e.rows, Duplicate: true,
	}, a.receipt)
}

// read compares everything after the released part, or after a later boundary.
func (m *model) read(t *rapid.T) {
	after := m.released
	if bounds := m.boundaries(t); len(bounds) > 0 && rapid.Bool().Draw(t, "later") {
		after = rapid.SampledFrom(bounds).Draw(t, "after")
	}
	var want []string
	for _, e := range m.entries {
		for i := range e.rows {
			if e.seq > after {
				want = append(want, fmt.Sprint("id-", e.first+i))
			}
		}
	}
	var got []string
	prev := after
	for b, err := range m.log.Read(context.Background(), ReadRequest{Incarnation: m.log.Incarnation(), Epoch: m.epoch, After: after}) {
		require.NoError(t, err)
		require.Equal(t, prev, b.Prev)
		prev = b.Last
		got = append(got, rowIDs([]*Batch{b}, 1)...)
		b.Release()
	}
	require.Equal(t, want, got)
}

// boundaries gives the value boundaries above the released part.
func (m *model) boundaries(t *rapid.T) []Seq {
	var out []Seq
	for b, err := range m.log.Read(context.Background(), ReadRequest{Incarnation: m.log.Incarnation(), Epoch: m.epoch, After: m.released}) {
		require.NoError(t, err)
		out = append(out, b.Last)
		b.Release()
	}
	return out
}

func (m *model) release(t *rapid.T) {
	bounds := m.boundaries(t)
	if len(bounds) == 0 {
		return
	}
	m.released = rapid.SampledFrom(bounds).Draw(t, "through")
	require.NoError(t, m.log.Release(context.Background(), m.released))
}

// reopen stops cleanly, or cuts the power and keeps only what was synced.
func (m *model) reopen(t *rapid.T) {
	crash := rapid.Bool().Draw(t, "crash")
	clone := m.mem.CrashClone(vfs.CrashCloneCfg{})
	require.NoError(t, m.cancel())
	if crash {
		m.mem = clone
	}
	m.open()
}

// succeed closes the log for a successor in another directory, which inherits its message ids; the power may be cut at any write of that, and the import is
// then made again.
func (m *model) succeed(t *rapid.T) {
	require.NoError(t, m.cancel())
	old := m.dir
	m.dir = fmt.Sprint("wal", m.epoch)
	cut := &cutAt{mem: m.mem, left: rapid.IntRange(1, 60).Draw(t, "cut at write")}
	l, err := m.heir(t, old, errorfs.Wrap(m.mem, cut))
	require.NoError(t, err)
	cut.mu.Lock()
	clone := cut.clone
	cut.left = 0 // none from here on
	cut.mu.Unlock()
	if clone != nil {
		require.NoError(t, l.Close())
		m.mem = clone
		l, err = m.heir(t, old, m.mem)
		require.NoError(t, err)
	}
	m.past, m.entries, m.released = append(m.past, m.entries...), nil, 0
	m.run(l)
}

// heir opens the log in m's directory and lets it inherit from the one in old.
func (m *model) heir(t *rapid.T, old string, fs vfs.FS) (*Log, error) {
	from, err := OpenReadOnly(context.Background(), old, m.mem)
	require.NoError(t, err)
	defer func() { require.NoError(t, from.Close()) }()
	s, err := from.Status(context.Background())
	require.NoError(t, err)
	l, err := Open(context.Background(), m.options(fs))
	require.NoError(t, err)
	return l, l.Inherit(context.Background(), []Predecessor{{Incarnation: s.Incarnation, Through: s.SyncedThrough, Source: from}})
}

// cutAt is an injector that takes what a power cut before the n-th write would leave.
type cutAt struct {
	mem   *vfs.MemFS
	mu    sync.Mutex
	left  int
	clone *vfs.MemFS
}

func (c *cutAt) String() string { return "cut" }

// MaybeError implements errorfs.Injector; it never injects an error.
func (c *cutAt) MaybeError(op errorfs.Op) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
		if c.left--; c.left == 0 {
			c.clone = c.mem.CrashClone(vfs.CrashCloneCfg{})
		}
	}
	return nil
}

func (m *model) check(t *rapid.T) {
	s, err := m.log.Status(context.Background())
	require.NoError(t, err)
	var entries, rows int64
	end := m.released
	for _, e := range m.entries {
		if e.seq > m.released {
			entries, rows, end = entries+1, rows+int64(e.rows), e.seq
		}
	}
	require.Equal(t, [2]int64{entries, rows}, [2]int64{s.Entries, s.Rows})
	require.Equal(t, [2]Seq{m.released, end}, [2]Seq{s.ReleasedThrough, s.SyncedThrough})
	require.Equal(t, entries == 0, s.Bytes == 0)
	require.True(t, s.Ready, s.Fault)
	report, err := m.log.Verify(context.Background())
	require.NoError(t, err)
	require.True(t, report.OK(), "%v", report.Problems)
}

// TestModel runs random histories against a plain slice.
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &model{t: rt, mem: vfs.NewCrashableMem(), dir: "wal", clock: newTestClock()}
		m.open()
		defer func() { require.NoError(rt, m.cancel()) }()
		rt.Repeat(map[string]func(*rapid.T){
			"append":  m.append,
			"retry":   m.retry,
			"read":    m.read,
			"release": m.release,
			"reopen":  m.reopen,
			"succeed": m.succeed,
			"wait":    func(t *rapid.T) { m.clock.Add(time.Duration(rapid.IntRange(1, 50).Draw(t, "seconds")) * time.Second) },
			"":        m.check,
		})
	})
}
