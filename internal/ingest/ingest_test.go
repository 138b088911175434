package ingest_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/internal/envelope"
	"github.com/foldline/foldline/internal/ingest"
	"github.com/foldline/foldline/internal/testkit"
	"github.com/foldline/foldline/publisher"
	"github.com/foldline/foldline/wal"
)

func TestReceiptAfterTheSync(t *testing.T) {
	l := newLine(t, settings{})
	reply := l.ask(message("node:Airport", `{"id":"ARN","name":"Arlanda"}`))
	require.JSONEq(t, fmt.Sprintf(`{"v":1,"graph":"demo","lane":0,"inc":"%s","epoch":1,"seq":"%d","rows":1,"duplicate":false,"state":"durable"}`,
		l.log.Incarnation(), wal.NewSeq(1, 1)), string(reply.Data))
	status, err := l.log.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, wal.NewSeq(1, 1), status.SyncedThrough)
}

func TestRowsReachTheTables(t *testing.T) {
	l := newLine(t, settings{})
	l.ack(message("", `{"table":"node:Airport","row":{"id":"ARN","name":"Arlanda","n":9007199254740993}}`+"\n"+
		`{"table":"edge:Flight","op":"insert","row":{"num":7,"src":"ARN","at":"2026-03-29T02:30:00Z","extra":1}}`))
	l.ack(message("node:Airport", `{"id":"GOT","name":"Landvetter"}`+"\n"+`{"id":"X","name":"x"}`))
	l.ack(message("node:Airport", `{"id":"X"}`, envelope.HeaderOp, "delete"))
	report := l.fold()
	require.Equal(t, 3, report.Inserted)
	r := l.ack(message("edge:Flight", `{"src":"ARN","num":8,"x":1,"y":2}`))
	require.Equal(t, 2, r.Dropped)
}

func TestRefusalsNameRowFieldAndReason(t *testing.T) {
	l := newLine(t, settings{})
	reply := l.ask(message("node:Airport", `{"id":"ARN","name":"A"}`+"\n"+`{"id":"GOT","name":"B","n":1.5}`))
	require.Equal(t, "400", reply.Header.Get(envelope.HeaderServiceErrorCode))
	require.Equal(t, "bad_value", reply.Header.Get(envelope.HeaderServiceError))
	require.JSONEq(t, `{"v":1,"error":{"class":"invalid","code":"bad_value","table":"node:Airport","row":1,"field":"n",
		"reason":"1.5: not an integer, and nothing is rounded"}}`, string(reply.Data))
	status, err := l.log.Status(t.Context())
	require.NoError(t, err)
	require.Zero(t, status.Entries, "nothing of a refused message is durable")
}

// reports C69, C70.
func TestHeadersAndTablesAreChecked(t *testing.T) {
	l := newLine(t, settings{})
	good := `{"id":"ARN","name":"A"}`
	for name, c := range map[string]struct {
		msg  *nats.Msg
		code envelope.Code
	}{
		"unknown table":                {message("node:Nothing", good), envelope.CodeUnknownTable},
		"no table key":                 {message("a:b:c", good), envelope.CodeBadSubject},
		"system table":                 {message("_rejects", good), envelope.CodeNotEnrolled},
		"unknown operation":            {message("node:Airport", good, envelope.HeaderOp, "merge"), envelope.CodeUnknownOp},
		"op beside lines":              {message("", good, envelope.HeaderOp, "delete"), envelope.CodeBadHeader},
		"op in lower case":             {message("node:Airport", good, "foldline-op", "delete"), envelope.CodeBadHeader},
		"id in lower case":             {message("node:Airport", good, "nats-msg-id", "a"), envelope.CodeBadHeader},
		"unknown of ours":              {message("node:Airport", good, "Foldline-Foo", "x"), envelope.CodeBadHeader},
		"ack mode":                     {message("node:Airport", good, envelope.HeaderAck, "maybe"), envelope.CodeBadHeader},
		"ack timeout":                  {message("node:Airport", good, envelope.HeaderAck, "visible", envelope.HeaderAckTimeout, "1s"), envelope.CodeBadHeader},
		"ack timeout zero":             {message("node:Airport", good, envelope.HeaderAck, "visible", envelope.HeaderAckTimeout, "0"), envelope.CodeBadHeader},
		"ack timeout of a durable ack": {message("node:Airport", good, envelope.HeaderAckTimeout, "soon"), envelope.CodeBadHeader},
		"empty op":                     {message("node:Airport", good, envelope.HeaderOp, ""), envelope.CodeBadHeader},
		"empty id":                     {message("node:Airport", good, envelope.HeaderMsgID, ""), envelope.CodeBadHeader},
		"empty type":                   {message("node:Airport", good, envelope.HeaderContentType, ""), envelope.CodeBadHeader},
		"empty ack":                    {message("node:Airport", good, envelope.HeaderAck, ""), envelope.CodeBadHeader},
		"empty timeout":                {message("node:Airport", good, envelope.HeaderAck, "visible", envelope.HeaderAckTimeout, ""), envelope.CodeBadHeader},
		"two ops":                      {twice(message("node:Airport", good, envelope.HeaderOp, "upsert"), envelope.HeaderOp, "delete"), envelope.CodeBadHeader},
		"long id":                      {message("node:Airport", good, envelope.HeaderMsgID, string(make([]byte, envelope.MaxMsgIDBytes+1))), envelope.CodeBadHeader},
		"content type":                 {message("node:Airport", good, envelope.HeaderContentType, "text/csv"), envelope.CodeUnsupportedContent},
		"empty":                        {message("node:Airport", ""), envelope.CodeEmptyBody},
		"null":                         {message("node:Airport", "null"), envelope.CodeNullBody},
	} {
		e := l.refusal(c.msg)
		require.Equal(t, c.code, e.Code, "%s: %v", name, e)
		require.ErrorIs(t, e, envelope.ErrInvalid)
	}
}

// twice adds another value of a header.
func twice(m *nats.Msg, name, value string) *nats.Msg {
	m.Header.Add(name, value)
	return m
}

func TestCrashC2C6RepeatedMessageHasOneEffect(t *testing.T) {
	l := newLine(t, settings{})
	body := `{"id":"ARN","name":"A"}`
	first := l.ack(message("node:Airport", body, envelope.HeaderMsgID, "m1"))
	again := l.ack(message("node:Airport", body, envelope.HeaderMsgID, "m1"))
	require.True(t, again.Duplicate)
	require.Equal(t, first.Seq, again.Seq)
	e := l.refusal(message("node:Airport", `{"id":"ARN","name":"B"}`, envelope.HeaderMsgID, "m1"))
	require.Equal(t, envelope.CodeMsgIDReused, e.Code)
	e = l.refusal(message("node:Airport", body, envelope.HeaderMsgID, "m1", envelope.HeaderOp, "insert"))
	require.Equal(t, envelope.CodeMsgIDReused, e.Code, "the operation is a part of what the message says")
}

// A retry gets its first receipt also when its body would be refused by now, as after a change of the table or of a limit; without
// a first copy, or with another body, it is refused.
func TestRetryOfWhatIsRefusedByNow(t *testing.T) {
	l := newLine(t, settings{})
	body := `{"id":"ARN","name":"A"}`
	first := l.ack(message("node:Airport", body, envelope.HeaderMsgID, "m1"))
	require.NoError(t, l.end())
	l.run(settings{options: func(o *ingest.Options) { o.Limits.KeyBytes = 2 }})
	bad := `{"id":"ARN"}`
	require.ErrorIs(t, l.refusal(message("node:Airport", body, envelope.HeaderMsgID, "m2")), envelope.ErrInvalid, "no first copy")
	require.ErrorIs(t, l.refusal(message("node:Airport", body)), envelope.ErrInvalid, "no id")
	again := l.ack(message("node:Airport", body, envelope.HeaderMsgID, "m1"))
	require.True(t, again.Duplicate)
	require.Equal(t, first.Seq, again.Seq)
	require.Equal(t, envelope.CodeMsgIDReused, l.refusal(message("node:Airport", bad, envelope.HeaderMsgID, "m1")).Code)
}

// An ack costs no request to the store (architecture, section 6).
func TestAcksAskTheStoreNothing(t *testing.T) {
	l := newLine(t, settings{})
	l.store.Reset()
	const messages = 1000
	before, err := l.log.Status(t.Context())
	require.NoError(t, err)
	var group sync.WaitGroup
	for worker := range 16 {
		group.Go(func() {
			for i := range messages / 16 {
				reply, err := l.nc.RequestMsgWithContext(t.Context(), message("node:Airport", fmt.Sprintf(`{"id":"%d-%d","name":"x"}`, worker, i)))
				if err != nil || reply.Header != nil {
					t.Errorf("not acknowledged: %v %v", err, reply)
					return
				}
			}
		})
	}
	group.Wait()
	require.Empty(t, l.store.Calls())
	after, err := l.log.Status(t.Context())
	require.NoError(t, err)
	t.Logf("syncs per 1,000 acks at 16 in flight: %d", (after.Syncs-before.Syncs)*1000/uint64(messages/16*16))
}

// Messages of one producer are in the log in the order in which it sent them, whatever subject, size and decoder.
func TestOrderOfArrivalIsTheLogsOrder(t *testing.T) {
	l := newLine(t, settings{options: func(o *ingest.Options) { o.Decoders = 4 }})
	const messages = 400
	replies := make(chan *nats.Msg, messages)
	inbox := l.nc.NewInbox()
	sub, err := l.nc.ChanSubscribe(inbox+".*", replies)
	require.NoError(t, err)
	defer func() { require.NoError(t, sub.Unsubscribe()) }()
	for i := range messages {
		msg := message("node:Airport", "")
		for row := range 1 + i*7%50 {
			msg.Data = append(msg.Data, fmt.Sprintf(`{"id":"%d","name":"%d"}`+"\n", row, i)...)
		}
		switch i % 3 {
		case 1:
			msg = message("", fmt.Sprintf(`{"table":"node:Airport","row":{"id":"0","name":"%d"}}`, i))
		case 2:
			msg.Subject = "foldline.demo.lane.0.write.node:Airport"
		}
		msg.Reply = fmt.Sprintf("%s.%d", inbox, i)
		require.NoError(t, l.nc.PublishMsg(msg))
	}
	seqs := make([]uint64, messages)
	for range messages {
		reply := testkit.Receive(t, "a receipt", replies)
		r, err := envelope.DecodeReceipt(reply.Data)
		require.NoError(t, err, string(reply.Data))
		var i int
		_, err = fmt.Sscanf(reply.Subject, inbox+".%d", &i)
		require.NoError(t, err)
		seqs[i] = r.Seq
	}
	require.IsIncreasing(t, seqs)
}

// Full means push back: a typed answer with a time, and nothing is lost of what was taken.
func TestRaceR18FullMeansBusy(t *testing.T) {
	l := newLine(t, settings{options: func(o *ingest.Options) { o.MaxInFlightMessages = 2 }})
	hold := func(i int) *nats.Msg {
		return message("node:Airport", fmt.Sprintf(`{"id":"%d","name":"x"}`, i), envelope.HeaderAck, "visible")
	}
	held := make(chan *nats.Msg, 2)
	for i := range 2 {
		go func() { held <- l.ask(hold(i)) }()
	}
	testkit.WaitFor(t, "two entries", func() bool {
		s, err := l.log.Status(t.Context())
		return err == nil && s.Entries == 2
	})
	e := l.refusal(hold(3))
	require.ErrorIs(t, e, envelope.ErrBusy)
	require.Equal(t, envelope.CodeOverloaded, e.Code)
	require.Positive(t, e.RetryAfter)
	l.fold()
	for range 2 {
		r, err := envelope.DecodeReceipt(testkit.Receive(t, "a receipt", held).Data)
		require.NoError(t, err)
		require.Equal(t, envelope.StateVisible, r.State)
	}
	l.ack(message("node:Airport", `{"id":"9","name":"x"}`))
}

func TestTheLogsBoundsAreBusyToo(t *testing.T) {
	l := newLine(t, settings{log: func(o *wal.Options) { o.MaxBytes = 64 << 10 }})
	var refused *envelope.Error
	for i := 0; refused == nil; i++ {
		reply := l.ask(message("node:Airport", fmt.Sprintf(`{"id":"%d","name":"%01000d"}`, i, i)))
		if reply.Header.Get(envelope.HeaderServiceErrorCode) != "" {
			refused = envelope.DecodeError(reply.Data)
		}
	}
	require.ErrorIs(t, refused, envelope.ErrBusy)
	l.fold()
	testkit.WaitFor(t, "room", func() bool {
		reply := l.ask(message("node:Airport", `{"id":"again","name":"x"}`))
		return reply.Header.Get(envelope.HeaderServiceErrorCode) == ""
	})
}

// Orderly stop: what was taken is answered, later requests find nobody, nothing leaks.
func TestStopAnswersWhatWasTaken(t *testing.T) {
	l := newLine(t, settings{})
	const messages = 200
	replies := make(chan *nats.Msg, messages)
	inbox := l.nc.NewInbox()
	sub, err := l.nc.ChanSubscribe(inbox, replies)
	require.NoError(t, err)
	defer func() { require.NoError(t, sub.Unsubscribe()) }()
	waiting := message("node:Airport", `{"id":"v","name":"x"}`, envelope.HeaderAck, "visible")
	waiting.Reply = inbox
	require.NoError(t, l.nc.PublishMsg(waiting))
	for i := range messages - 1 {
		msg := message("node:Airport", fmt.Sprintf(`{"id":"%d","name":"x"}`, i))
		msg.Reply = inbox
		require.NoError(t, l.nc.PublishMsg(msg))
	}
	require.NoError(t, l.nc.Flush())
	require.NoError(t, l.end())
	for range messages {
		r, err := envelope.DecodeReceipt(testkit.Receive(t, "a receipt", replies).Data)
		require.NoError(t, err)
		require.Equal(t, envelope.StateDurable, r.State)
	}
	require.Error(t, l.in.Ready())
	_, err = l.nc.Request("foldline.demo.write.node:Airport", []byte(`{"id":"late","name":"x"}`), replyLimit)
	require.ErrorIs(t, err, nats.ErrNoResponders)
}

// W5: a message with rows of other lanes is refused whole, and told where they belong.
func TestWrongLane(t *testing.T) {
	l := newLine(t, settings{lanes: 4})
	body := ""
	for i := range 40 {
		body += fmt.Sprintf(`{"id":"%d","name":"x"}`+"\n", i)
	}
	e := l.refusal(message("node:Airport", body))
	require.Equal(t, envelope.CodeWrongLane, e.Code)
	require.Len(t, e.Lanes, 40)
	own := ""
	for i, lane := range e.Lanes {
		if lane == 0 {
			own += fmt.Sprintf(`{"id":"%d","name":"x"}`+"\n", i)
		}
	}
	require.NotEmpty(t, own)
	l.ack(message("node:Airport", own))
	// A table of lane columns below its key: rows of one leading part share a lane.
	e1 := l.ask(message("edge:Flight", `{"src":"ARN","num":1}`+"\n"+`{"src":"ARN","num":2}`))
	if e1.Header.Get(envelope.HeaderServiceErrorCode) != "" {
		lanes := envelope.DecodeError(e1.Data).Lanes
		require.Equal(t, lanes[0], lanes[1])
	}
}

func TestNewTablesAreMet(t *testing.T) {
	l := newLine(t, settings{tables: []publisher.TableSpec{airport}, options: func(o *ingest.Options) { o.UnknownTableInterval = 50 * time.Millisecond }})
	require.Equal(t, envelope.CodeUnknownTable, l.refusal(message("edge:Flight", `{}`)).Code)
	_, err := l.pub.CreateTable(t.Context(), flight)
	require.NoError(t, err)
	testkit.WaitFor(t, "the new table", func() bool {
		reply := l.ask(message("edge:Flight", `{"src":"ARN","num":1}`))
		if reply.Header.Get(envelope.HeaderServiceErrorCode) == "" {
			return true
		}
		// Between two looks nobody can tell, so the answer is never that there is no such table.
		require.ErrorIs(t, envelope.DecodeError(reply.Data), envelope.ErrBusy)
		return false
	})
}

// A flood of requests for a table that is not there costs the store a few looks at once and then one per interval. The first
// of them hear that there is no such table, the others to come again.
func TestUnknownTablesDoNotFloodTheStore(t *testing.T) {
	const atOnce, callsOfALook = 8, 4
	l := newLine(t, settings{options: func(o *ingest.Options) { o.UnknownTableInterval = time.Hour }})
	l.store.Reset()
	for i := range 50 {
		want := envelope.CodeUnknownTable
		if i >= atOnce {
			want = envelope.CodeSchemasStale
		}
		require.Equal(t, want, l.refusal(message("node:Nothing", `{}`)).Code, "request %d", i)
	}
	require.LessOrEqual(t, len(l.store.Calls()), atOnce*callsOfALook)
}
