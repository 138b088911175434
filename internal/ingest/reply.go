package ingest

import (
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/codes"

	"github.com/foldline/foldline/internal/envelope"
)

// replier answers requests on a goroutine of its own, so that the log's callback never waits for the network. Its queue
// is bounded by the flight: every request in it is still counted there.
type replier struct {
	in *Ingester

	mu     sync.Mutex
	queue  []*request
	closed bool
	wake   chan struct{} // one token: there may be something in the queue
}

func newReplier(in *Ingester) *replier { return &replier{in: in, wake: make(chan struct{}, 1)} }

// add queues settled requests; it never blocks.
func (p *replier) add(settled ...*request) {
	p.mu.Lock()
	p.queue = append(p.queue, settled...)
	p.mu.Unlock()
	p.signal()
}

func (p *replier) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// close ends run when the queue is empty.
func (p *replier) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.signal()
}

func (p *replier) run() {
	var batch []*request
	var buf []byte
	for range p.wake {
		p.mu.Lock()
		batch, p.queue = p.queue, batch[:0]
		closed := p.closed
		p.mu.Unlock()
		for _, r := range batch {
			buf = p.in.answer(r, buf)
		}
		clear(batch)
		if closed {
			return
		}
	}
}

// answer replies to a settled request, or lets a visible one wait. The reply is made in buf, which comes back for the next.
func (in *Ingester) answer(r *request, buf []byte) []byte {
	switch {
	case r.refusal != nil:
		in.refuse(r)
	case r.visible > 0 && in.visible.add(r):
	default:
		return in.acknowledge(r, buf)
	}
	return buf
}

func (in *Ingester) refuse(r *request) {
	in.respond(r.msg, r.refusal)
	in.metrics.refused(r.refusal.Class, r.refusal.Code)
	if r.span != nil {
		r.span.SetStatus(codes.Error, string(r.refusal.Code))
	}
	in.finish(r)
}

// acknowledge sends a receipt, unless the lane may be another's by now (X2): whether that one took the entry over is not ours to say.
// The reply is made in buf, which comes back for the next.
func (in *Ingester) acknowledge(r *request, buf []byte) []byte {
	if in.catalog.fenced() || !in.o.Owns() {
		r.refusal = &envelope.Error{Class: envelope.ClassUnknown, Code: envelope.CodeFenced, Row: envelope.NoRow,
			Reason: "the lane has another owner since the write was taken, or may have one"}
		in.refuse(r)
		return buf
	}
	buf = r.receipt.AppendTo(buf[:0])
	if r.msg.Reply != "" {
		// The connection copies the bytes.
		in.sent(in.o.Conn.Publish(r.msg.Reply, buf))
	}
	in.metrics.acknowledged(r, time.Since(r.arrived))
	in.finish(r)
	return buf
}

func (in *Ingester) finish(r *request) {
	if r.span != nil {
		r.span.End()
	}
	in.flight.done(r.size)
	in.leave(r.chunk) // r may be another request's from here on
}

// respond sends an error, marked as the NATS services convention marks errors.
func (in *Ingester) respond(msg *nats.Msg, e *envelope.Error) {
	if msg.Reply == "" {
		return
	}
	in.sent(in.o.Conn.PublishMsg(&nats.Msg{Subject: msg.Reply, Data: e.Encode(), Header: nats.Header{
		envelope.HeaderServiceError:     []string{string(e.Code)},
		envelope.HeaderServiceErrorCode: []string{e.Status()},
	}}))
}

// sent notes whether the connection took a reply. One that is lost is the producer's retry: it has a message id or it does
// not know.
func (in *Ingester) sent(err error) {
	if err != nil {
		in.metrics.replyLost()
		in.o.Logger.Debug("reply was not sent", "error", err)
	}
}
