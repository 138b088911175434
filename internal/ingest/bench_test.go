package ingest_test

import (
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/foldline/foldline/internal/envelope"
	"github.com/foldline/foldline/internal/ingest"
)

// BenchmarkAcks is the whole ack path on a real server and disk, by messages in flight and rows of a message.
func BenchmarkAcks(b *testing.B) {
	for _, flight := range []int{1, 16, 256} {
		for _, rows := range []int{1, 100} {
			b.Run(fmt.Sprintf("flight=%d/rows=%d", flight, rows), func(b *testing.B) { benchmarkAcks(b, flight, rows) })
		}
	}
}

func benchmarkAcks(b *testing.B, flight, rows int) {
	l := newLine(b, settings{options: func(o *ingest.Options) {
		o.Logger = slog.New(slog.DiscardHandler)
		o.Allocator = nil // the checked allocator is no measure
	}})
	// One connection sends and hears, as a pipelining producer does, so that it costs as little as it can.
	replies := make(chan *nats.Msg, flight)
	inbox := l.nc.NewInbox()
	sub, err := l.nc.ChanSubscribe(inbox, replies)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	var sent int
	send := func() {
		var body []byte
		for row := range rows {
			body = append(body, fmt.Sprintf(`{"id":"key-%012d","name":"a name of some length, as names are, %d","n":%d}`+"\n", sent*rows+row, sent, row)...)
		}
		sent++
		if err := l.nc.PublishMsg(&nats.Msg{Subject: "foldline.demo.write.node:Airport", Reply: inbox, Data: body}); err != nil {
			b.Error(err)
		}
	}
	var once sync.Once
	b.ReportAllocs()
	b.ResetTimer()
	for range min(flight, b.N) {
		send()
	}
	for range b.N {
		reply := <-replies
		if reply.Header.Get(envelope.HeaderServiceErrorCode) != "" {
			once.Do(func() { b.Error(string(reply.Data)) })
		}
		if sent < b.N {
			send()
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "acks/s")
	b.ReportMetric(float64(b.N*rows)/b.Elapsed().Seconds(), "rows/s")
}
