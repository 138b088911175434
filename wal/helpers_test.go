package wal

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

// airports is the schema most tests append.
var airports = arrow.NewSchema([]arrow.Field{
	{Name: "id", Type: arrow.BinaryTypes.String},
	{Name: "n", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "open", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
}, nil)

// airportRows builds rows whose id and n name them; every third n is null.
func airportRows(from, n int) arrow.Record {
	b := array.NewRecordBuilder(memory.DefaultAllocator, airports)
	defer b.Release()
	for i := from; i < from+n; i++ {
		b.Field(0).(*array.StringBuilder).Append(fmt.Sprintf("id-%d", i))
		if i%3 == 0 {
			b.Field(1).AppendNull()
		} else {
			b.Field(1).(*array.Int64Builder).Append(int64(i))
		}
		b.Field(2).(*array.BooleanBuilder).Append(i%2 == 0)
	}
	return b.NewRecord()
}

// entryOf is an entry of n rows for table 1.
func entryOf(msgID string, from, n int) Entry {
	return Entry{
		MsgID: msgID, Digest: [32]byte{byte(from), byte(from >> 8), byte(n)},
		Rows: []Rows{{Table: 1, Record: airportRows(from, n), Ops: []Op{OpUpsert}}},
	}
}

// testClock is a clock that tests move.
type testClock struct {
	mu  sync.Mutex
	now time.Time
}

func newTestClock() *testClock { return &testClock{now: time.UnixMicro(1_700_000_000_000_000)} }

func (c *testClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *testClock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// testOptions are options on a file system of their own.
func testOptions(fs vfs.FS) Options {
	return Options{Dir: "wal", FS: fs, Graph: "demo", Clock: newTestClock().Now}
}

// runLog opens a log, begins the next epoch and runs the committer until the
// returned stop is called, which also closes the log.
type running struct {
	*Log
	t    testing.TB
	stop func() error
}

func openLog(t testing.TB, opts Options) *running {
	t.Helper()
	l, err := Open(t.Context(), opts)
	require.NoError(t, err)
	next := max(Seq(l.synced.Load()).Epoch(), 0) + 1
	require.NoError(t, l.Begin(next))
	return runLog(t, l)
}

func runLog(t testing.TB, l *Log) *running {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	var once sync.Once
	var result error
	r := &running{Log: l, t: t}
	r.stop = func() error {
		once.Do(func() {
			cancel()
			result = <-done
			if err := l.Close(); result == nil {
				result = err
			}
		})
		return result
	}
	t.Cleanup(func() { _ = r.stop() })
	return r
}

type answer struct {
	receipt Receipt
	err     error
}

// send appends an entry and gives the channel of its answer.
func (r *running) send(e Entry) <-chan answer {
	r.t.Helper()
	ch := make(chan answer, 1)
	err := r.Append(context.Background(), e, func(receipt Receipt, err error) { ch <- answer{receipt, err} })
	require.NoError(r.t, err)
	for _, rows := range e.Rows {
		rows.Record.Release()
	}
	return ch
}

// put appends an entry and waits for its receipt.
func (r *running) put(e Entry) Receipt {
	r.t.Helper()
	a := <-r.send(e)
	require.NoError(r.t, a.err)
	return a.receipt
}

// requestAll asks for everything after a boundary.
func (r *running) requestAll(after Seq) ReadRequest {
	return ReadRequest{Incarnation: r.Incarnation(), Epoch: Epoch(r.epoch.Load()), After: after}
}

// readAll collects the batches of a request.
func readAll(t testing.TB, s Source, req ReadRequest) []*Batch {
	t.Helper()
	var out []*Batch
	for b, err := range s.Read(t.Context(), req) {
		require.NoError(t, err)
		out = append(out, b)
	}
	t.Cleanup(func() {
		for _, b := range out {
			b.Release()
		}
	})
	return out
}

// readError gives the error that ends a read.
func readError(t testing.TB, s Source, req ReadRequest) error {
	t.Helper()
	for b, err := range s.Read(t.Context(), req) {
		if err != nil {
			return err
		}
		b.Release()
	}
	return nil
}

// rowIDs gives the id column of all rows of a table in order.
func rowIDs(batches []*Batch, table TableID) []string {
	var ids []string
	for _, b := range batches {
		for _, t := range b.Tables {
			if t.Table != table {
				continue
			}
			col := t.Record.Column(0).(*array.String)
			for i := range col.Len() {
				ids = append(ids, col.Value(i))
			}
		}
	}
	return ids
}

// requireSameBatch compares two batches value by value.
func requireSameBatch(t testing.TB, want, got *Batch) {
	t.Helper()
	require.Equal(t, [3]Seq{want.Prev, want.First, want.Last}, [3]Seq{got.Prev, got.First, got.Last})
	require.Equal(t, want.Entries, got.Entries)
	require.True(t, want.Time.Equal(got.Time))
	require.Equal(t, want.Bytes, got.Bytes)
	require.Len(t, got.Tables, len(want.Tables))
	for i := range want.Tables {
		w, g := want.Tables[i], got.Tables[i]
		require.Equal(t, w.Table, g.Table)
		require.Equal(t, w.Schema, g.Schema)
		require.Equal(t, w.Ops, g.Ops)
		require.Equal(t, w.Entry, g.Entry)
		require.True(t, w.Record.Schema().Equal(g.Record.Schema()))
		require.True(t, array.RecordEqual(w.Record, g.Record))
	}
}
