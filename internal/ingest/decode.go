package ingest

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/foldline/foldline/internal/envelope"
	"github.com/foldline/foldline/internal/envelope/rows"
	"github.com/foldline/foldline/wal"
)

// notReadyRetryAfter is what a producer is told while the log takes nothing: about a restart.
const notReadyRetryAfter = time.Second

// decodeChunk turns the messages of a chunk into entries, or notes why they are refused.
func (in *Ingester) decodeChunk(ctx context.Context, d *rows.Decoder, c *chunk) {
	start := time.Now()
	view, arrived := in.catalog.view(), time.Time{}
	lookup := func(table string) (*rows.Table, error) { return in.catalog.lookup(ctx, &view, table, arrived) }
	for i := range c.requests {
		r := &c.requests[i]
		arrived = r.arrived
		if err := in.decode(d, r, lookup); err != nil {
			r.refuse(err)
		}
	}
	d.Take(&c.batch)
	c.collect(in.o.Lane, view, in.sealed.Load())
	in.metrics.decoded(time.Since(start))
}

// refuse notes why a request is refused.
func (r *request) refuse(err error) {
	if !errors.As(err, &r.refusal) {
		r.refusal = &envelope.Error{Class: envelope.ClassCorrupt, Code: envelope.CodeUnusableTable, Row: envelope.NoRow, Reason: err.Error()}
	}
}

// decode adds a message's rows to the decoder's batch.
func (in *Ingester) decode(d *rows.Decoder, r *request, lookup rows.Lookup) error {
	m, err := in.headers(r)
	if err != nil {
		return err
	}
	in.startSpan(r)
	if r.entry.MsgID != "" {
		r.entry.Digest = digest(m)
	}
	r.added, err = d.Add(m, lookup)
	return err
}

// atHand tells whether a chunk can be decoded without a look at the heads.
func (in *Ingester) atHand(c *chunk) bool {
	tables := in.catalog.view().tables
	for i := range c.requests {
		table, ok := in.subjects.TableOf(c.requests[i].msg.Subject)
		if !ok {
			continue // refused without one
		}
		if _, known := tables[table]; !known {
			return false
		}
	}
	return true
}

// headers reads what subject and headers say of a message.
func (in *Ingester) headers(r *request) (rows.Message, error) {
	table, ok := in.subjects.TableOf(r.msg.Subject)
	if !ok {
		return rows.Message{}, refusal(envelope.CodeBadSubject, "", "the last part of the subject is no table key")
	}
	r.table = table
	h := r.msg.Header
	if fault := misnamed(h); fault != "" {
		return rows.Message{}, refusal(envelope.CodeBadHeader, table, fault)
	}
	m := rows.Message{Table: table, Body: r.msg.Data, ContentType: h.Get(envelope.HeaderContentType)}
	if m.Op, ok = envelope.ParseOp(h.Get(envelope.HeaderOp)); !ok {
		return m, refusal(envelope.CodeUnknownOp, table, "the operations are upsert, insert and delete")
	}
	if table == "" && h.Get(envelope.HeaderOp) != "" {
		return m, refusal(envelope.CodeBadHeader, table, envelope.HeaderOp+" is for the subject of one table; here the lines name their operations")
	}
	r.entry.MsgID = h.Get(envelope.HeaderMsgID)
	if len(r.entry.MsgID) > envelope.MaxMsgIDBytes {
		return m, refusal(envelope.CodeBadHeader, table, fmt.Sprintf("%s has more than %d bytes", envelope.HeaderMsgID, envelope.MaxMsgIDBytes))
	}
	return m, in.ackMode(r)
}

// misnamed finds a header that would be taken for absent: one of ours in another case (NATS headers are case sensitive, and a delete
// must not become an upsert), without a value or with several, or one with our prefix that we do not know. Empty when there is none.
func misnamed(h nats.Header) string {
	for name, values := range h {
		if slices.Contains(requestHeaders, name) {
			// A trace context that cannot be used is left out, as W3C says; it costs no write.
			if trace := name == envelope.HeaderTraceParent || name == envelope.HeaderTraceState; !trace && (len(values) != 1 || values[0] == "") {
				return fmt.Sprintf("header %q has to have one value, or to be left out", name)
			}
			continue
		}
		for _, known := range requestHeaders {
			if strings.EqualFold(name, known) {
				return fmt.Sprintf("header %q is written %q", name, known)
			}
		}
		if len(name) >= len(headerPrefix) && strings.EqualFold(name[:len(headerPrefix)], headerPrefix) {
			return fmt.Sprintf("unknown header %q", name)
		}
	}
	return ""
}

const headerPrefix = "Foldline-"

var requestHeaders = []string{
	envelope.HeaderMsgID, envelope.HeaderContentType, envelope.HeaderAck, envelope.HeaderAckTimeout, envelope.HeaderOp,
	envelope.HeaderTraceParent, envelope.HeaderTraceState,
}

// ackMode reads how long a visible ack may wait; zero is a durable ack.
func (in *Ingester) ackMode(r *request) error {
	wait := envelope.DefaultVisibleTimeout
	if text := r.msg.Header.Get(envelope.HeaderAckTimeout); text != "" {
		// Read whatever the mode: a producer that asks to wait wrongly is told so, also while it does not wait.
		ms, err := strconv.ParseUint(text, 10, 31)
		if err != nil || ms == 0 {
			return refusal(envelope.CodeBadHeader, r.table, envelope.HeaderAckTimeout+" is no whole number of milliseconds")
		}
		wait = time.Duration(ms) * time.Millisecond
	}
	switch r.msg.Header.Get(envelope.HeaderAck) {
	case "", envelope.AckDurable:
		return nil
	case envelope.AckVisible:
		r.visible = min(wait, in.o.MaxVisibleTimeout)
		return nil
	}
	return refusal(envelope.CodeBadHeader, r.table, envelope.HeaderAck+" is neither durable nor visible")
}

// startSpan continues the trace of a producer that samples it, and stores the ingester's part with the entry, so that the
// fold can link to it. The context of other messages is not kept.
func (in *Ingester) startSpan(r *request) {
	parent := r.msg.Header.Get(envelope.HeaderTraceParent)
	if parent == "" {
		return
	}
	carrier := propagation.MapCarrier{
		envelope.HeaderTraceParent: parent, envelope.HeaderTraceState: r.msg.Header.Get(envelope.HeaderTraceState)}
	ctx := propagation.TraceContext{}.Extract(context.Background(), carrier)
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		return
	}
	ctx, r.span = in.o.Tracer.Start(ctx, "foldline.ingest", trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithTimestamp(r.arrived), trace.WithAttributes(attribute.String("foldline.table", r.table)))
	propagation.TraceContext{}.Inject(ctx, carrier)
	r.entry.Trace = carrier[envelope.HeaderTraceParent]
}

// digest tells bodies apart under one message id. Table, operation and content type belong to the body: the same bytes
// mean something else under others.
func digest(m rows.Message) (sum [32]byte) {
	h := sha256.New()
	var head [64]byte
	buf := head[:0]
	for _, part := range [...]string{m.Table, m.Op.String(), m.ContentType} {
		buf = append(binary.BigEndian.AppendUint32(buf, uint32(len(part))), part...)
	}
	h.Write(buf)
	h.Write(m.Body)
	h.Sum(sum[:0])
	return sum
}

// ofAll are the log's operations that stand for all rows of an entry; they are never changed.
var ofAll = [...][]wal.Op{
	envelope.OpUpsert: {wal.OpUpsert}, envelope.OpInsert: {wal.OpInsert}, envelope.OpDelete: {wal.OpDelete},
}

// walOps are the log's operations of a message's rows; one stands for all when they are the same.
func walOps(rows *rows.TableRows) []wal.Op {
	same := true
	for _, op := range rows.Ops {
		same = same && op == rows.Ops[0]
	}
	switch {
	case len(rows.Ops) == 0:
		return ofAll[rows.Op]
	case same:
		return ofAll[rows.Ops[0]]
	}
	out := make([]wal.Op, len(rows.Ops))
	for i, op := range rows.Ops {
		out[i] = ofAll[op][0]
	}
	return out
}

func refusal(code envelope.Code, table, reason string) *envelope.Error {
	return &envelope.Error{Class: envelope.ClassInvalid, Code: code, Table: table, Row: envelope.NoRow, Reason: reason}
}
