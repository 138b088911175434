package ingest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/client"
	"github.com/foldline/foldline/internal/envelope"
	"github.com/foldline/foldline/internal/testkit"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/wal"
)

// keys are the live keys of the airports at their head.
func (l *line) keys() []string {
	l.t.Helper()
	s, err := l.pub.Refresh(l.t.Context())
	require.NoError(l.t, err)
	table, err := s.OpenTable(l.t.Context(), l.store, "node:Airport")
	require.NoError(l.t, err)
	keys := []string{}
	for rec, err := range table.Scan(l.t.Context(), lance.ScanOptions{Columns: []string{"id"}}) {
		require.NoError(l.t, err)
		for i := range int(rec.NumRows()) {
			keys = append(keys, strings.Clone(rec.Column(0).(*array.String).Value(i)))
		}
		rec.Release()
	}
	slices.Sort(keys)
	return keys
}

// C151: no key is special, and a delete takes exactly its own row.
func TestOddKeys(t *testing.T) {
	l := newLine(t, settings{})
	c, err := client.New(l.nc, graph)
	require.NoError(t, err)
	odd := []string{"", "O'Brien", "x' OR 1=1 --", `back\slash'`, `double"quote`, ";", "%_", "a\x00b", "\x00", "😀", strings.Repeat("k", 4096), "é", "e\u0301", " ", "\n"}
	for _, key := range odd {
		_, err := c.Upsert(t.Context(), "node:Airport", map[string]string{"id": key, "name": "x"})
		require.NoError(t, err, "%q", key)
	}
	l.fold()
	left := slices.Sorted(slices.Values(odd))
	require.Equal(t, left, l.keys())
	for _, key := range odd {
		_, err := c.Delete(t.Context(), "node:Airport", map[string]string{"id": key})
		require.NoError(t, err)
		l.fold()
		left = slices.DeleteFunc(left, func(k string) bool { return k == key })
		require.Equal(t, left, l.keys(), "after %q", key)
	}
	_, err = c.Upsert(t.Context(), "node:Airport", map[string]string{"id": strings.Repeat("k", 4097), "name": "x"})
	require.ErrorIs(t, err, client.ErrInvalid)
	require.NoError(t, c.Close(t.Context()))
}

func TestArrowAndJSONMeetInOneTable(t *testing.T) {
	l := newLine(t, settings{})
	s := arrow.NewSchema([]arrow.Field{{Name: "name", Type: arrow.BinaryTypes.LargeString}, {Name: "id", Type: arrow.BinaryTypes.String}}, nil)
	b := array.NewRecordBuilder(memory.NewGoAllocator(), s)
	b.Field(0).(*array.LargeStringBuilder).AppendValues([]string{"A", "B"}, nil)
	b.Field(1).(*array.StringBuilder).AppendValues([]string{"a", "b"}, nil)
	var body bytes.Buffer
	w := ipc.NewWriter(&body, ipc.WithSchema(s), ipc.WithZstd())
	require.NoError(t, w.Write(b.NewRecord()))
	require.NoError(t, w.Close())
	r := l.ack(message("node:Airport", body.String(), envelope.HeaderContentType, envelope.ContentArrow))
	require.Equal(t, 2, r.Rows)
	l.ack(message("node:Airport", `{"id":"b","name":"later"}`+"\n"+`{"id":"c","name":"C"}`))
	require.Equal(t, 3, l.fold().Inserted)
	require.Equal(t, []string{"a", "b", "c"}, l.keys())
	broken := bytes.Clone(body.Bytes())
	broken[len(broken)/2] ^= 0xff
	e := l.refusal(message("node:Airport", string(broken[:len(broken)-8]), envelope.HeaderContentType, envelope.ContentArrow))
	require.Equal(t, envelope.CodeBadArrow, e.Code)
}

// A schema that changes while messages are on their way mis-types none of them.
func TestProducersOfTwoSchemasDoNotDisturbEachOther(t *testing.T) {
	l := newLine(t, settings{})
	for range 20 {
		l.ack(message("node:Airport", `{"id":"a","name":"x"}`))
		e := l.refusal(message("node:Airport", `{"id":7,"name":"x"}`))
		require.Equal(t, envelope.CodeBadValue, e.Code)
		l.ack(message("edge:Flight", `{"src":"a","num":7,"at":"2026-03-29T02:30:00Z"}`))
	}
	l.fold()
	require.Equal(t, []string{"a"}, l.keys())
}

// W1: after a sync that failed there is no receipt, not for that message and not for later ones, and the process says that
// it is not ready.
func TestNoReceiptAfterAFailedSync(t *testing.T) {
	if !inChild(t) {
		return
	}
	var broken atomic.Bool
	fault := errors.New("the disk is gone")
	l := newLine(t, settings{log: func(o *wal.Options) {
		o.FS = errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if broken.Load() && (op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo) {
				return fault
			}
			return nil
		}))
	}})
	l.logMayFail = true
	l.ack(message("node:Airport", `{"id":"a","name":"x"}`))
	broken.Store(true)
	e := l.refusal(message("node:Airport", `{"id":"b","name":"x"}`, envelope.HeaderMsgID, "m"))
	require.ErrorIs(t, e, envelope.ErrUnknown)
	testkit.WaitFor(t, "the end of readiness", func() bool { return l.in.Ready() != nil })
	e = l.refusal(message("node:Airport", `{"id":"c","name":"x"}`))
	require.ErrorIs(t, e, envelope.ErrBusy)
	require.Equal(t, envelope.CodeNotReady, e.Code)

	broken.Store(false) // what the disk says now is of no account: only a restart reads back what it holds
	require.Equal(t, envelope.CodeNotReady, l.refusal(message("node:Airport", `{"id":"d","name":"x"}`)).Code)
	s, err := l.log.Status(t.Context())
	require.NoError(t, err)
	require.False(t, s.Ready)
	require.Contains(t, s.Fault, fault.Error())
	require.Error(t, l.in.Ready())
}

// C04, C09: the server goes away and comes back again and again while a producer writes. Everything with a receipt is
// there once, and the ingester needs no help.
func TestServerRestarts(t *testing.T) {
	l := newLine(t, settings{reconnect: true})
	c, err := client.New(l.nc, graph, client.WithAttemptTimeout(200*time.Millisecond), client.WithMaxOutstanding(32, 1<<20))
	require.NoError(t, err)
	var want []string
	for round := range 5 {
		var open []*client.Pending
		for i := range 50 {
			key := fmt.Sprintf("%02d-%02d", round, i)
			p, err := c.SendAsync(t.Context(), "node:Airport", client.OpInsert, json.RawMessage(`{"id":"`+key+`","name":"x"}`))
			require.NoError(t, err)
			open, want = append(open, p), append(want, key)
			if i == 20+round {
				testkit.StopNATS(l.server)
				l.server = testkit.StartNATS(t, l.restarts)
			}
		}
		for _, p := range open {
			_, err := p.Receipt(t.Context())
			require.NoError(t, err)
		}
	}
	report := l.fold()
	require.Equal(t, len(want), report.Inserted)
	require.Zero(t, report.Rejected, "a strict insert that was taken twice would be a dead letter")
	require.Equal(t, want, l.keys())
	require.NoError(t, c.Close(context.WithoutCancel(t.Context())))
}
