package ingest_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/internal/envelope"
	"github.com/foldline/foldline/lance"
)

// names are the names of the airports at their head, by id; an id that is there twice is an error.
func (l *line) names() map[string]string {
	l.t.Helper()
	s, err := l.pub.Refresh(l.t.Context())
	require.NoError(l.t, err)
	table, err := s.OpenTable(l.t.Context(), l.store, "node:Airport")
	require.NoError(l.t, err)
	out := map[string]string{}
	for rec, err := range table.Scan(l.t.Context(), lance.ScanOptions{Columns: []string{"id", "name"}}) {
		require.NoError(l.t, err)
		for i := range int(rec.NumRows()) {
			id := strings.Clone(rec.Column(0).(*array.String).Value(i))
			require.NotContains(l.t, out, id)
			out[id] = strings.Clone(rec.Column(1).(*array.String).Value(i))
		}
		rec.Release()
	}
	return out
}

// Race R1 from the producers' side: 16 of them insert one new key strictly. All are acknowledged, one row is there, and 15 dead letters say why.
func TestRaceR1SixteenProducersInsertOneKey(t *testing.T) {
	l := newLine(t, settings{})
	var g sync.WaitGroup
	for i := range 16 {
		g.Go(func() {
			l.ack(message("node:Airport", fmt.Sprintf(`{"id":"ARN","name":"%d"}`, i), envelope.HeaderOp, "insert"))
		})
	}
	g.Wait()
	report := l.fold()
	require.Equal(t, 15, report.Rejected)
	require.Len(t, l.names(), 1)
}

// Race R7: the answer to X is lost, Y is acknowledged, X is sent again. X is recognised and does not overwrite Y, in one fold and over two.
func TestRaceR7RetryDoesNotOvertake(t *testing.T) {
	for _, foldBetween := range []bool{false, true} {
		t.Run(fmt.Sprintf("fold between %t", foldBetween), func(t *testing.T) {
			l := newLine(t, settings{})
			x := message("node:Airport", `{"id":"ARN","name":"X"}`, envelope.HeaderMsgID, "x")
			require.NoError(t, l.nc.PublishMsg(x)) // nobody hears the answer
			l.entries(1)
			y := l.ack(message("node:Airport", `{"id":"ARN","name":"Y"}`, envelope.HeaderMsgID, "y"))
			if foldBetween {
				l.fold()
			}
			again := l.ack(x)
			require.True(t, again.Duplicate)
			require.Less(t, again.Seq, y.Seq)
			l.fold()
			require.Equal(t, map[string]string{"ARN": "Y"}, l.names())
		})
	}
}

// Report C20: two updates of one key under ids of their own are two writes; an id that is used again for another body is refused, not dropped.
func TestTwoUpdatesOfOneKey(t *testing.T) {
	l := newLine(t, settings{})
	l.ack(message("node:Airport", `{"id":"9","name":"10"}`, envelope.HeaderMsgID, "p-1"))
	require.False(t, l.ack(message("node:Airport", `{"id":"9","name":"12"}`, envelope.HeaderMsgID, "p-2")).Duplicate)
	e := l.refusal(message("node:Airport", `{"id":"9","name":"14"}`, envelope.HeaderMsgID, "p-2"))
	require.Equal(t, envelope.CodeMsgIDReused, e.Code)
	l.fold()
	require.Equal(t, map[string]string{"9": "12"}, l.names())
}
