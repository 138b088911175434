package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/foldline/foldline/internal/envelope"
	"github.com/foldline/foldline/internal/ingest"
	"github.com/foldline/foldline/internal/testkit"
	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/publisher"
	"github.com/foldline/foldline/wal"
)

// wait asks for a visible ack in the background.
func (l *line) wait(body string, headers ...string) <-chan envelope.Receipt {
	out := make(chan envelope.Receipt, 1)
	msg := message("node:Airport", body, append([]string{envelope.HeaderAck, envelope.AckVisible}, headers...)...)
	go func() { out <- l.ack(msg) }()
	return out
}

// entries waits until the log has synced n entries in all.
func (l *line) entries(n uint64) {
	l.t.Helper()
	testkit.WaitFor(l.t, fmt.Sprintf("%d entries", n), func() bool {
		s, err := l.log.Status(l.t.Context())
		return err == nil && s.SyncedThrough.Counter() >= n
	})
}

func TestVisibleAfterThePublish(t *testing.T) {
	l := newLine(t, settings{})
	reply := l.wait(`{"id":"ARN","name":"A"}`)
	l.entries(1)
	require.Empty(t, reply, "not visible yet")
	l.fold()
	r := testkit.Receive(t, "the receipt", reply)
	require.Equal(t, envelope.StateVisible, r.State)
	require.Empty(t, r.Rejected)
}

func TestVisibleListsDeadLetters(t *testing.T) {
	l := newLine(t, settings{})
	l.ack(message("node:Airport", `{"id":"ARN","name":"A"}`))
	l.fold()
	for round := range 2 {
		reply := l.wait(`{"id":"new","name":"B"}`+"\n"+`{"id":"ARN","name":"C"}`, envelope.HeaderOp, "insert", envelope.HeaderMsgID, "strict")
		if round == 0 {
			l.entries(2)
			l.fold()
		}
		// The second round is a retry of what was published: it hears the same, without another fold.
		r := testkit.Receive(t, "the receipt", reply)
		require.Equal(t, envelope.StateVisible, r.State)
		require.Equal(t, round == 1, r.Duplicate)
		require.Len(t, r.Rejected, 1)
		require.Equal(t, "node:Airport", r.Rejected[0].Table)
		require.Equal(t, 1, r.Rejected[0].Row)
		require.NotEmpty(t, r.Rejected[0].Reason)
	}
}

// A receipt names rejected rows by the producer's own lines, whatever tables stand between them and whatever other entries
// share the sync.
func TestRejectedRowsAreTheProducersLines(t *testing.T) {
	l := newLine(t, settings{})
	l.ack(message("node:Airport", `{"id":"ARN","name":"A"}`))
	l.ack(message("edge:Flight", `{"src":"ARN","num":1}`))
	l.fold()
	mixed := `{"table":"edge:Flight","op":"insert","row":{"src":"ARN","num":2}}` + "\n" +
		`{"table":"node:Airport","op":"insert","row":{"id":"ARN","name":"B"}}` + "\n" +
		`{"table":"node:Airport","op":"insert","row":{"id":"GOT","name":"C"}}` + "\n" +
		`{"table":"edge:Flight","op":"insert","row":{"src":"ARN","num":1}}`
	for round := range 2 {
		reply := make(chan envelope.Receipt, 1)
		msg := message("", mixed, envelope.HeaderAck, envelope.AckVisible, envelope.HeaderMsgID, "mixed")
		go func() { reply <- l.ack(msg) }()
		if round == 0 {
			l.entries(3)
			l.fold()
		}
		r := testkit.Receive(t, "the receipt", reply)
		require.Equal(t, round == 1, r.Duplicate)
		require.Len(t, r.Rejected, 2)
		require.Equal(t, []string{"node:Airport", "edge:Flight"}, []string{r.Rejected[0].Table, r.Rejected[1].Table})
		require.Equal(t, []int{1, 3}, []int{r.Rejected[0].Row, r.Rejected[1].Row})
	}
}

func TestVisibleStaysDurableAtTheDeadline(t *testing.T) {
	l := newLine(t, settings{})
	r := testkit.Receive(t, "the receipt", l.wait(`{"id":"ARN","name":"A"}`, envelope.HeaderAckTimeout, "20"))
	require.Equal(t, envelope.StateDurable, r.State)
}

// Only heads that the ingester read make a write visible and release the log (W4): an event alone does not.
func TestEventsAreHintsOnly(t *testing.T) {
	l := newLine(t, settings{})
	reply := l.wait(`{"id":"ARN","name":"A"}`, envelope.HeaderAckTimeout, "300")
	l.entries(1)
	lie := envelope.Event{Graph: graph, Cuts: []envelope.EventCut{{Incarnation: l.log.Incarnation(), Through: 1 << 60}}}
	require.NoError(t, l.nc.Publish("foldline.demo.published", lie.Encode()))
	require.Equal(t, envelope.StateDurable, testkit.Receive(t, "the receipt", reply).State)
	status, err := l.log.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(1), status.Entries)
	require.Zero(t, status.ReleasedThrough)
}

func TestReleaseUpToThePublishedCut(t *testing.T) {
	l := newLine(t, settings{})
	r := l.ack(message("node:Airport", `{"id":"ARN","name":"A"}`))
	l.fold()
	testkit.WaitFor(t, "the release", func() bool {
		s, err := l.log.Status(t.Context())
		return err == nil && uint64(s.ReleasedThrough) == r.Seq
	})
	later := l.ack(message("node:Airport", `{"id":"GOT","name":"A"}`))
	s, err := l.log.Status(t.Context())
	require.NoError(t, err)
	require.Less(t, uint64(s.ReleasedThrough), later.Seq)
}

// Without any event the heads are read all the same.
func TestReleaseWithoutEvents(t *testing.T) {
	l := newLine(t, settings{options: func(o *ingest.Options) { o.RefreshInterval = 5 * time.Millisecond }})
	r := l.ack(message("node:Airport", `{"id":"ARN","name":"A"}`))
	testkit.StopNATS(testkit.StartNATS(t)) // an unrelated server changes nothing
	report, err := l.folder.FoldOnce(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, report.Inserted)
	testkit.WaitFor(t, "the release", func() bool {
		s, err := l.log.Status(t.Context())
		return err == nil && uint64(s.ReleasedThrough) == r.Seq
	})
}

// X2: an owner whose lane was claimed by another stops, and acknowledges nothing more.
func TestFencedIngesterStops(t *testing.T) {
	l := newLine(t, settings{})
	l.ack(message("node:Airport", `{"id":"ARN","name":"A"}`))
	_, err := publisher.ClaimLane(t.Context(), l.publisherOptions(), publisher.LaneClaim{Incarnation: "01JZZZZZZZZZZZZZZZZZZZZZZZ", AcceptLoss: true})
	require.NoError(t, err)
	require.NoError(t, l.nc.Publish("foldline.demo.published", nil))
	err = testkit.Receive(t, "the end", l.stopped)
	l.stopped <- err
	require.ErrorIs(t, err, ingest.ErrFenced)
	_, err = l.nc.Request("foldline.demo.write.node:Airport", []byte(`{"id":"x","name":"x"}`), replyLimit)
	require.ErrorIs(t, err, nats.ErrNoResponders)
}

// A log that ends below the published cut was restored from an older copy; a release beyond the cut means that the graph
// was. Both stop the ingester and name the range.
// report C43.
func TestCrashC19RestoredLogOrGraphIsNoticed(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*wal.Status)
		want   error
	}{
		"log":   {func(s *wal.Status) { s.SyncedThrough = 1 }, ingest.ErrLogBehind},
		"graph": {func(s *wal.Status) { s.ReleasedThrough = s.SyncedThrough + 5; s.SyncedThrough += 5 }, ingest.ErrGraphBehind},
	} {
		t.Run(name, func(t *testing.T) {
			altered := &alteredLog{}
			l := newLine(t, settings{options: func(o *ingest.Options) { altered.Log = o.Log; o.Log = altered }})
			r := l.ack(message("node:Airport", `{"id":"ARN","name":"A"}`))
			altered.change.Store(&c.change)
			l.fold()
			err := testkit.Receive(t, "the end", l.stopped)
			l.stopped <- err
			require.ErrorIs(t, err, c.want)
			require.ErrorContains(t, err, fmt.Sprint(r.Seq))
		})
	}
}

// alteredLog is the real log with another word about its state.
type alteredLog struct {
	ingest.Log
	change atomic.Pointer[func(*wal.Status)]
}

func (l *alteredLog) Status(ctx context.Context) (wal.Status, error) {
	s, err := l.Log.Status(ctx)
	if change := l.change.Load(); change != nil {
		(*change)(&s)
	}
	return s, err
}

func TestWrongGraphIsRefusedAtTheStart(t *testing.T) {
	l := newLine(t, settings{})
	for _, change := range []func(*ingest.Options){
		func(o *ingest.Options) { o.Graph = "other" },
		func(o *ingest.Options) { o.Lane = 7 },
	} {
		o := ingest.Options{Conn: l.own, Log: l.log, Store: l.store, Graph: graph}
		change(&o)
		in, err := ingest.New(o)
		require.NoError(t, err)
		require.ErrorIs(t, in.Run(t.Context()), ingest.ErrWrongGraph)
	}
}

// A store that is away stops neither acks nor the process; when it is back the log is released.
func TestStoreOutageDelaysOnlyTheRelease(t *testing.T) {
	var down atomic.Bool
	l := newLine(t, settings{
		inner:   func(s objstore.Store) objstore.Store { return &outage{Store: s, down: &down} },
		options: func(o *ingest.Options) { o.RefreshInterval = 5 * time.Millisecond },
	})
	down.Store(true)
	r := l.ack(message("node:Airport", `{"id":"ARN","name":"A"}`))
	require.Equal(t, envelope.StateDurable, r.State)
	require.ErrorIs(t, l.refusal(message("node:Nothing", `{}`)), envelope.ErrBusy)
	require.NoError(t, l.in.Ready())
	down.Store(false)
	l.fold()
	testkit.WaitFor(t, "the release", func() bool {
		s, err := l.log.Status(t.Context())
		return err == nil && uint64(s.ReleasedThrough) == r.Seq
	})
}

// outage fails every list while it is down; every resolve begins with one.
type outage struct {
	objstore.Store
	down *atomic.Bool
}

func (o *outage) List(ctx context.Context, prefix, after string, limit int) ([]objstore.Info, error) {
	if o.down.Load() {
		return nil, errors.New("the store is away")
	}
	return o.Store.List(ctx, prefix, after, limit)
}

// A producer's sampled trace goes on in the log; others leave nothing.
func TestTraceContextIsKept(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	l := newLine(t, settings{options: func(o *ingest.Options) { o.Tracer = provider.Tracer("ingest") }})
	const trace = "0af7651916cd43dd8448eb211c80319c"
	l.ack(message("node:Airport", `{"id":"1","name":"x"}`, "traceparent", "00-"+trace+"-b7ad6b7169203331-01"))
	l.ack(message("node:Airport", `{"id":"2","name":"x"}`, "traceparent", "00-"+trace+"-b7ad6b7169203331-00"))
	l.ack(message("node:Airport", `{"id":"3","name":"x"}`, "traceparent", "nonsense"))
	l.ack(message("node:Airport", `{"id":"4","name":"x"}`))
	var traces []string
	status, err := l.log.Status(t.Context())
	require.NoError(t, err)
	for batch, err := range l.log.Read(t.Context(), wal.ReadRequest{Incarnation: l.log.Incarnation(), Epoch: status.Epoch}) {
		require.NoError(t, err)
		for _, e := range batch.Entries {
			traces = append(traces, e.Trace)
		}
		batch.Release()
	}
	testkit.WaitFor(t, "the span", func() bool { return len(spans.Ended()) == 1 })
	span := spans.Ended()[0]
	require.Equal(t, trace, span.SpanContext().TraceID().String())
	require.Equal(t, []string{"00-" + trace + "-" + span.SpanContext().SpanID().String() + "-01", "", "", ""}, traces)
}

// Plain publishes have nobody to answer; they are taken all the same, and a bad one harms nothing.
func TestMessagesWithoutReply(t *testing.T) {
	l := newLine(t, settings{})
	bad, good := message("node:Airport", `{`), message("node:Airport", `{"id":"1","name":"x"}`)
	require.NoError(t, l.nc.PublishMsg(bad))
	require.NoError(t, l.nc.PublishMsg(good))
	l.entries(1)
	require.Equal(t, 1, l.fold().Inserted)
}
