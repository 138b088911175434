package ingest_test

import (
	"fmt"
	"log/slog"
	"runtime"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/internal/envelope"
	"github.com/foldline/foldline/internal/ingest"
	"github.com/foldline/foldline/internal/testkit"
)

// TestAllocationsOfAnAck: what an ack costs cannot grow unseen. The bounds are of one acknowledged message with many in flight, the allocations of the NATS
// server and of the producer's and the ingester's connections included, which take 11 of them, 20 when the message has a header. A goroutine hand-over with a
// closure, a reply with a header or, for rows of JSON, an Arrow record for each message would pass them; for a stream, a second array or a copy of a column.
func TestAllocationsOfAnAck(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2)) // pools and batches are smaller with more, and the counts a little higher
	row := func(dst []byte, i int) []byte {
		return fmt.Appendf(dst, `{"id":"key-%012d","name":"a name of some length, as names are","n":%d}`+"\n", i, i)
	}
	var rows []byte
	for i := range 100 {
		rows = row(rows, i)
	}
	stream := airportStream(t, 100)
	for name, c := range map[string]struct {
		inFlight, acks int
		most           float64
		message        func(i int, buf []byte) (body []byte, contentType string)
	}{
		"one row":        {256, 16384, 15, func(i int, buf []byte) ([]byte, string) { return row(buf[:0], i), "" }},
		"100 rows":       {64, 2048, 20, func(int, []byte) ([]byte, string) { return rows, "" }},
		"100 Arrow rows": {64, 2048, 45, func(int, []byte) ([]byte, string) { return stream, envelope.ContentArrow }},
	} {
		t.Run(name, func(t *testing.T) {
			var buf []byte
			m := &nats.Msg{Subject: "foldline.demo.write.node:Airport"} // the connection copies it
			got := allocationsOfAnAck(t, c.inFlight, c.acks, func(i int) *nats.Msg {
				contentType := ""
				if m.Data, contentType = c.message(i, buf); contentType == "" {
					buf = m.Data
				} else if m.Header == nil {
					m.Header = nats.Header{envelope.HeaderContentType: []string{contentType}}
				}
				return m
			})
			t.Logf("%.2f allocations an ack", got)
			require.Less(t, got, c.most)
		})
	}
}

// airportStream is an Arrow stream of rows for node:Airport.
func airportStream(t *testing.T, n int) []byte {
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.BinaryTypes.String}, {Name: "name", Type: arrow.BinaryTypes.String, Nullable: true}, {Name: "n", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	}, nil))
	for i := range n {
		b.Field(0).(*array.StringBuilder).Append(fmt.Sprintf("key-%012d", i))
		b.Field(1).(*array.StringBuilder).Append("a name of some length, as names are")
		b.Field(2).(*array.Int64Builder).Append(int64(i))
	}
	return testkit.ArrowStream(t, []arrow.Record{b.NewRecord()})
}

func allocationsOfAnAck(t *testing.T, inFlight, acks int, message func(i int) *nats.Msg) float64 {
	l := newLine(t, settings{options: func(o *ingest.Options) {
		o.Logger = slog.New(slog.DiscardHandler)
		o.Allocator = nil // the checked allocator allocates itself
	}})
	warm := acks / 8
	replies := make(chan *nats.Msg, inFlight)
	inbox := l.nc.NewInbox()
	sub, err := l.nc.ChanSubscribe(inbox, replies)
	require.NoError(t, err)
	defer func() { _ = sub.Unsubscribe() }()
	send := func(i int) {
		m := message(i)
		m.Reply = inbox
		require.NoError(t, l.nc.PublishMsg(m))
	}
	for i := range inFlight {
		send(i)
	}
	var before, after runtime.MemStats
	for i := range warm + acks {
		if i == warm {
			runtime.ReadMemStats(&before)
		}
		reply := <-replies
		require.Empty(t, reply.Header.Get(envelope.HeaderServiceErrorCode))
		send(inFlight + i)
	}
	runtime.ReadMemStats(&after)
	for range inFlight {
		<-replies
	}
	return float64(after.Mallocs-before.Mallocs) / float64(acks)
}
