package ingest_test

import (
	"fmt"
	"log/slog"
	"runtime"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/internal/envelope"
	"github.com/foldline/foldline/internal/ingest"
)

// allocsOfAnAck bounds the allocations of one acknowledged one-row message with many in flight, those of the NATS server and
// of the producer's and the ingester's connections included, which take 12 of them. An Arrow record, a goroutine hand-over
// with a closure or a reply with a header for each message would pass it.
const allocsOfAnAck = 15

// TestAllocationsOfAnAck: what an ack costs cannot grow unseen.
func TestAllocationsOfAnAck(t *testing.T) {
	l := newLine(t, settings{options: func(o *ingest.Options) {
		o.Logger = slog.New(slog.DiscardHandler)
		o.Allocator = nil // the checked allocator allocates itself
	}})
	const inFlight, warm, acks = 256, 2048, 16384
	replies := make(chan *nats.Msg, inFlight)
	inbox := l.nc.NewInbox()
	sub, err := l.nc.ChanSubscribe(inbox, replies)
	require.NoError(t, err)
	defer func() { _ = sub.Unsubscribe() }()
	body := make([]byte, 0, 256)
	send := func(i int) {
		body = fmt.Appendf(body[:0], `{"id":"key-%012d","name":"a name of some length, as names are","n":%d}`, i, i)
		require.NoError(t, l.nc.PublishRequest("foldline.demo.write.node:Airport", inbox, body))
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
	t.Logf("%.2f allocations an ack", float64(after.Mallocs-before.Mallocs)/acks)
	require.Less(t, float64(after.Mallocs-before.Mallocs)/acks, float64(allocsOfAnAck))
}
