package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/client"
	"github.com/foldline/foldline/internal/envelope"
	"github.com/foldline/foldline/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// owner answers write requests of a graph over a real server, as its script says; it stands for the faults that a real
// owner shows rarely.
type owner struct {
	mu     sync.Mutex
	script []func(*nats.Msg)
	seen   []*nats.Msg
	next   uint64
}

func (o *owner) on(msg *nats.Msg) {
	o.mu.Lock()
	o.seen = append(o.seen, msg)
	answer := o.receipt
	if len(o.script) > 0 {
		answer, o.script = o.script[0], o.script[1:]
	}
	o.mu.Unlock()
	answer(msg)
}

func (o *owner) receipt(msg *nats.Msg) {
	o.mu.Lock()
	o.next++
	r := envelope.Receipt{Graph: "g", Incarnation: "01J", Epoch: 1, Seq: 1<<40 | o.next, Rows: 1, State: envelope.StateDurable}
	o.mu.Unlock()
	_ = msg.Respond(r.Encode())
}

func refuse(e envelope.Error) func(*nats.Msg) {
	return func(msg *nats.Msg) {
		_ = msg.RespondMsg(&nats.Msg{Data: e.Encode(), Header: nats.Header{
			envelope.HeaderServiceError: []string{string(e.Code)}, envelope.HeaderServiceErrorCode: []string{e.Status()}}})
	}
}

func silent(*nats.Msg) {}

var (
	unknown  = envelope.Error{Class: envelope.ClassUnknown, Code: envelope.CodeUnknownOutcome, Row: envelope.NoRow}
	changing = envelope.Error{Class: envelope.ClassBusy, Code: envelope.CodeLanesChanging, Row: envelope.NoRow}
)

func (o *owner) messages() []*nats.Msg {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]*nats.Msg(nil), o.seen...)
}

// start runs a server, an owner with a script and a client.
func start(t *testing.T, script []func(*nats.Msg), options ...client.Option) (*client.Client, *owner, *nats.Conn) {
	t.Helper()
	nc := testkit.ConnectNATS(t, testkit.StartNATS(t))
	o := &owner{script: script}
	for _, subject := range []string{"foldline.g.write", "foldline.g.write.*", "foldline.g.lane.*.write", "foldline.g.lane.*.write.*"} {
		_, err := nc.Subscribe(subject, o.on)
		require.NoError(t, err)
	}
	require.NoError(t, nc.Flush())
	c, err := client.New(nc, "g", options...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close(context.WithoutCancel(t.Context()))) })
	return c, o, nc
}

type airport struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
	N    int64  `json:"n,omitempty"`
}

func TestUpsertSendsLinesAndAnID(t *testing.T) {
	c, o, _ := start(t, nil)
	r, err := c.Upsert(t.Context(), "node:Airport", airport{ID: "ARN", N: 9007199254740993}, json.RawMessage(`{ "id" : "GOT<" }`))
	require.NoError(t, err)
	require.Equal(t, uint64(1<<40|1), r.Seq)
	_, err = c.Delete(t.Context(), "node:Airport", airport{ID: "ARN"})
	require.NoError(t, err)
	seen := o.messages()
	require.Equal(t, "foldline.g.write.node:Airport", seen[0].Subject)
	require.Equal(t, "{\"id\":\"ARN\",\"n\":9007199254740993}\n{\"id\":\"GOT<\"}", string(seen[0].Data))
	require.Empty(t, seen[0].Header.Get(envelope.HeaderOp))
	require.Equal(t, "delete", seen[1].Header.Get(envelope.HeaderOp))
	require.NotEqual(t, seen[0].Header.Get(envelope.HeaderMsgID), seen[1].Header.Get(envelope.HeaderMsgID))
}

func TestWriteNamesTableAndOperationPerLine(t *testing.T) {
	c, o, _ := start(t, nil)
	_, err := c.Write(t.Context(), client.Row{Table: "node:Airport", Value: airport{ID: "ARN"}},
		client.Row{Table: "edge:Flight", Op: client.OpDelete, Value: airport{ID: "F"}})
	require.NoError(t, err)
	require.Equal(t, "foldline.g.write", o.messages()[0].Subject)
	require.Equal(t, `{"table":"node:Airport","op":"upsert","row":{"id":"ARN"}}`+"\n"+`{"table":"edge:Flight","op":"delete","row":{"id":"F"}}`, string(o.messages()[0].Data))
}

// A lost reply, a busy owner and a fenced one are met by the same message with the same id. (C09)
func TestRetriesCarryTheSameID(t *testing.T) {
	busy := envelope.Error{Class: envelope.ClassBusy, Code: envelope.CodeOverloaded, Row: envelope.NoRow, RetryAfter: time.Millisecond}
	fenced := envelope.Error{Class: envelope.ClassFenced, Code: envelope.CodeFenced, Row: envelope.NoRow}
	c, o, _ := start(t, []func(*nats.Msg){silent, refuse(busy), refuse(fenced), refuse(unknown)}, client.WithAttemptTimeout(20*time.Millisecond))
	_, err := c.Upsert(t.Context(), "node:Airport", airport{ID: "ARN"})
	require.NoError(t, err)
	seen := o.messages()
	require.GreaterOrEqual(t, len(seen), 5)
	for _, msg := range seen {
		require.Equal(t, seen[0].Header.Get(envelope.HeaderMsgID), msg.Header.Get(envelope.HeaderMsgID))
		require.Equal(t, seen[0].Data, msg.Data)
	}
}

func TestRetryAfterIsHonoured(t *testing.T) {
	pause := 80 * time.Millisecond
	c, _, _ := start(t, []func(*nats.Msg){refuse(envelope.Error{
		Class: envelope.ClassBusy, Code: envelope.CodeOverloaded, Row: envelope.NoRow, RetryAfter: pause})})
	began := time.Now()
	_, err := c.Upsert(t.Context(), "node:Airport", airport{ID: "ARN"})
	require.NoError(t, err)
	require.GreaterOrEqual(t, time.Since(began), pause)
}

func TestRefusalsAreTyped(t *testing.T) {
	for class, sentinel := range map[envelope.Class]error{
		envelope.ClassInvalid: client.ErrInvalid, envelope.ClassConflict: client.ErrConflict, envelope.ClassCorrupt: client.ErrCorrupt,
	} {
		c, o, _ := start(t, []func(*nats.Msg){refuse(envelope.Error{
			Class: class, Code: envelope.CodeBadValue, Table: "node:Airport", Row: 3, Field: "n", Reason: "no"})})
		_, err := c.Upsert(t.Context(), "node:Airport", airport{ID: "ARN"})
		require.ErrorIs(t, err, sentinel)
		var e *client.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, 3, e.Row)
		require.Equal(t, "n", e.Field)
		require.Len(t, o.messages(), 1)
	}
}

// Nothing is reported as written without a receipt.
func TestNoReceiptNoSuccess(t *testing.T) {
	c, _, nc := start(t, []func(*nats.Msg){silent, silent, silent, silent, silent}, client.WithAttemptTimeout(10*time.Millisecond), client.WithRetryFor(15*time.Millisecond))
	_, err := c.Upsert(t.Context(), "node:Airport", airport{ID: "ARN"})
	require.ErrorIs(t, err, client.ErrUnknown)
	require.ErrorIs(t, err, nats.ErrTimeout)

	other, err := client.New(nc, "nobody", client.WithRetryFor(20*time.Millisecond))
	require.NoError(t, err)
	_, err = other.Upsert(t.Context(), "node:Airport", airport{ID: "ARN"})
	require.ErrorIs(t, err, client.ErrNoOwner)
	require.NotErrorIs(t, err, client.ErrUnknown)
	require.NoError(t, other.Close(t.Context()))
}

func TestGarbageInsteadOfAReceipt(t *testing.T) {
	for _, reply := range []string{``, `{}`, `{"v":2,"seq":"1","inc":"x","state":"durable"}`, `{"v":1,"seq":"0","inc":"x","state":"durable"}`, `{"v":1,"seq":"1","inc":"x","state":"maybe"}`, strings.Repeat("[", 1000)} {
		c, _, _ := start(t, []func(*nats.Msg){func(msg *nats.Msg) { _ = msg.Respond([]byte(reply)) }})
		_, err := c.Upsert(t.Context(), "node:Airport", airport{ID: "ARN"})
		require.ErrorIs(t, err, client.ErrUnknown, reply)
	}
}

func TestCallerEndsTheWait(t *testing.T) {
	c, o, _ := start(t, []func(*nats.Msg){silent})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		testkit.WaitFor(t, "the message", func() bool { return len(o.messages()) == 1 })
		cancel()
	}()
	_, err := c.Upsert(ctx, "node:Airport", airport{ID: "ARN"})
	require.ErrorIs(t, err, client.ErrUnknown)
	require.ErrorIs(t, err, context.Canceled)
}

// C153, C155: what is too large is found before the write, and the connection lives.
func TestOversizeIsRefusedBeforeItIsSent(t *testing.T) {
	c, o, nc := start(t, nil)
	_, err := c.Upsert(t.Context(), "node:Airport", airport{ID: "small"}, airport{ID: "big", Name: strings.Repeat("x", 1<<20)})
	var e *client.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, envelope.CodeTooLarge, e.Code)
	require.Equal(t, 1, e.Row)
	require.Empty(t, o.messages())
	require.True(t, nc.IsConnected())
}

func TestRowsThatAreNoObjects(t *testing.T) {
	c, _, _ := start(t, nil)
	for _, row := range []any{nil, 17, "x", []int{1}, json.RawMessage(`{}{}`), json.RawMessage(`{`), func() {}} {
		_, err := c.Upsert(t.Context(), "node:Airport", row)
		require.ErrorIs(t, err, client.ErrInvalid, "%T", row)
	}
	_, err := c.Upsert(t.Context(), "node:Airport")
	require.ErrorIs(t, err, client.ErrInvalid)
	_, err = c.Upsert(t.Context(), "a.b", airport{ID: "x"})
	require.ErrorIs(t, err, client.ErrInvalid)
}

func TestOutstandingIsBoundedAndOrdered(t *testing.T) {
	const bound = 4
	release := make(chan struct{})
	var script []func(*nats.Msg)
	o := &owner{}
	for range bound {
		script = append(script, func(msg *nats.Msg) { go func() { <-release; o.receipt(msg) }() })
	}
	c, seen, _ := start(t, script, client.WithMaxOutstanding(bound, 1<<20))
	var all []*client.Pending
	for i := range bound {
		p, err := c.SendAsync(t.Context(), "node:Airport", client.OpUpsert, airport{ID: fmt.Sprint(i)})
		require.NoError(t, err)
		all = append(all, p)
	}
	full, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := c.SendAsync(full, "node:Airport", client.OpUpsert, airport{ID: "x"})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	close(release)
	require.NoError(t, c.Flush(t.Context()))
	for i, p := range all {
		_, err := p.Receipt(t.Context())
		require.NoError(t, err)
		require.JSONEq(t, fmt.Sprintf(`{"id":"%d"}`, i), string(seen.messages()[i].Data))
	}
}

// W5 from the producer's side: rows of several lanes go to the owners of each.
func TestMixedLanesAreSplit(t *testing.T) {
	wrong := envelope.Error{Class: envelope.ClassInvalid, Code: envelope.CodeWrongLane, Row: envelope.NoRow, Lanes: []uint32{0, 1, 0}}
	c, o, _ := start(t, []func(*nats.Msg){refuse(wrong)})
	r, err := c.Upsert(t.Context(), "node:Airport", airport{ID: "a"}, airport{ID: "b"}, airport{ID: "c"})
	require.NoError(t, err)
	require.Len(t, r.Parts, 2)
	bodies := map[string]string{}
	for _, msg := range o.messages()[1:] {
		bodies[msg.Subject] = string(msg.Data)
	}
	require.Equal(t, map[string]string{
		"foldline.g.lane.0.write.node:Airport": "{\"id\":\"a\"}\n{\"id\":\"c\"}", "foldline.g.lane.1.write.node:Airport": `{"id":"b"}`}, bodies)
}

func TestOneOtherLaneGetsTheWholeMessage(t *testing.T) {
	wrong := envelope.Error{Class: envelope.ClassInvalid, Code: envelope.CodeWrongLane, Row: envelope.NoRow, Lanes: []uint32{3}}
	c, o, _ := start(t, []func(*nats.Msg){refuse(wrong)})
	r, err := c.Upsert(t.Context(), "node:Airport", airport{ID: "a"})
	require.NoError(t, err)
	require.Nil(t, r.Parts)
	require.Equal(t, "foldline.g.lane.3.write.node:Airport", o.messages()[1].Subject)
	require.Equal(t, o.messages()[0].Header.Get(envelope.HeaderMsgID), o.messages()[1].Header.Get(envelope.HeaderMsgID))
}

func TestSplitInPart(t *testing.T) {
	wrong := envelope.Error{Class: envelope.ClassInvalid, Code: envelope.CodeWrongLane, Row: envelope.NoRow, Lanes: []uint32{0, 1}}
	bad := envelope.Error{Class: envelope.ClassInvalid, Code: envelope.CodeBadValue, Row: 0}
	c, _, _ := start(t, []func(*nats.Msg){refuse(wrong), refuse(bad)})
	r, err := c.Upsert(t.Context(), "node:Airport", airport{ID: "a"}, airport{ID: "b"})
	require.ErrorIs(t, err, client.ErrPartly)
	require.ErrorIs(t, err, client.ErrInvalid)
	require.Len(t, r.Parts, 1)
}

// After an accepted loss an attempt from before it is not recognised, so what may have been taken is not sent blindly.
func TestIDsOfBeforeALossAreNotRetried(t *testing.T) {
	c, o, _ := start(t, []func(*nats.Msg){func(msg *nats.Msg) { _ = msg.Respond(forgetful(time.Now().Add(time.Hour))) }, refuse(unknown)})
	_, err := c.Upsert(t.Context(), "node:Airport", airport{ID: "a"})
	require.NoError(t, err)
	_, err = c.Upsert(t.Context(), "node:Airport", airport{ID: "b"})
	require.ErrorIs(t, err, client.ErrUnknown)
	require.Len(t, o.messages(), 2)
}

// A message from before a loss, or before a change of the lane count whose logs did not all find their predecessors, none of whose attempts of then can have been
// taken, is sent again when one of its later attempts may have been: that one the new log knows.
func TestAttemptsAfterALossAreRetried(t *testing.T) {
	learnt := make(chan struct{})
	waits := func(msg *nats.Msg) { go func() { <-learnt; refuse(changing)(msg) }() }
	forgets := func(msg *nats.Msg) { _ = msg.Respond(forgetful(time.Now())) }
	c, o, _ := start(t, []func(*nats.Msg){waits, forgets, refuse(unknown)}, client.WithAttemptTimeout(time.Minute))
	early, err := c.SendAsync(t.Context(), "node:Airport", client.OpUpsert, airport{ID: "early"})
	require.NoError(t, err)
	_, err = c.Upsert(t.Context(), "node:Airport", airport{ID: "a"})
	require.NoError(t, err)
	close(learnt)
	_, err = early.Receipt(t.Context())
	require.NoError(t, err)
	require.Len(t, o.messages(), 4)
}

// forgetful is the receipt of a lane that does not know ids of before an instant.
func forgetful(since time.Time) []byte {
	r := envelope.Receipt{Graph: "g", Incarnation: "01K", Epoch: 2, Seq: 2<<40 | 1, Rows: 1, State: envelope.StateDurable, DedupeSince: since}
	return r.Encode()
}

func TestWaitVisible(t *testing.T) {
	c, _, nc := start(t, nil)
	r, err := c.Upsert(t.Context(), "node:Airport", airport{ID: "a"})
	require.NoError(t, err)
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, c.WaitVisible(short, r), context.DeadlineExceeded)
	event := func(through uint64) []byte {
		return envelope.Event{Graph: "g", Cuts: []envelope.EventCut{{Incarnation: "01J", Through: through}}}.Encode()
	}
	require.NoError(t, nc.Publish("foldline.g.published", event(r.Seq-1)))
	waited := make(chan error, 1)
	go func() { waited <- c.WaitVisible(t.Context(), r) }()
	require.NoError(t, nc.Publish("foldline.g.published", []byte("garbage")))
	require.NoError(t, nc.Publish("foldline.g.published", event(r.Seq)))
	require.NoError(t, testkit.Receive(t, "visibility", waited))
	require.NoError(t, c.WaitVisible(t.Context(), r), "known by now")
}

// A publish that happened before the wait is heard of from the lane's owner, which releases what is published.
func TestWaitVisibleAsksTheOwner(t *testing.T) {
	c, _, nc := start(t, nil)
	r, err := c.Upsert(t.Context(), "node:Airport", airport{ID: "a"})
	require.NoError(t, err)
	_, err = nc.Subscribe("foldline.g.lane.0.status", func(msg *nats.Msg) {
		_ = msg.Respond([]byte(fmt.Sprintf(`{"incarnation":"01J","released_through":"%d"}`, r.Seq)))
	})
	require.NoError(t, err)
	require.NoError(t, c.WaitVisible(t.Context(), r))
}

func TestClosedClientRefuses(t *testing.T) {
	c, _, _ := start(t, []func(*nats.Msg){silent})
	p, err := c.SendAsync(t.Context(), "node:Airport", client.OpUpsert, airport{ID: "a"})
	require.NoError(t, err)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, c.Close(ended), context.Canceled)
	_, err = p.Receipt(t.Context())
	require.ErrorIs(t, err, client.ErrUnknown)
	_, err = c.Upsert(t.Context(), "node:Airport", airport{ID: "a"})
	require.ErrorIs(t, err, client.ErrClosed)
	require.True(t, errors.Is(c.WaitVisible(t.Context(), client.Receipt{}), client.ErrClosed))
}

func TestOptionsAreChecked(t *testing.T) {
	nc := testkit.ConnectNATS(t, testkit.StartNATS(t))
	for _, o := range []client.Option{client.WithMaxOutstanding(0, 1), client.WithRetryFor(0), client.WithPrefix("a b"), client.WithMessageIDPrefix(strings.Repeat("x", 300))} {
		_, err := client.New(nc, "g", o)
		require.Error(t, err)
	}
	_, err := client.New(nc, "a.b")
	require.Error(t, err)
}

// A producer that starts before the server knows no payload limit yet; its messages wait instead of being refused.
func TestWriteBeforeTheFirstConnect(t *testing.T) {
	port := testkit.FreePort(t)
	nc, err := nats.Connect(testkit.Loopback(port), nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(5*time.Millisecond))
	require.NoError(t, err)
	defer nc.Close()
	c, err := client.New(nc, "g", client.WithAttemptTimeout(50*time.Millisecond))
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close(context.WithoutCancel(t.Context()))) }()
	p, err := c.SendAsync(t.Context(), "node:A", client.OpUpsert, json.RawMessage(`{"id":"a"}`))
	require.NoError(t, err)

	s := testkit.StartNATS(t, testkit.OnPort(port))
	o := &owner{}
	_, err = testkit.ConnectNATS(t, s).Subscribe("foldline.g.write.*", o.on)
	require.NoError(t, err)
	_, err = p.Receipt(t.Context())
	require.NoError(t, err)
}
