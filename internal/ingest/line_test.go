package ingest_test

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/fold"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/envelope"
	"github.com/foldline/foldline/internal/ingest"
	"github.com/foldline/foldline/internal/testkit"
	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/countstore"
	"github.com/foldline/foldline/publisher"
	"github.com/foldline/foldline/wal"
)

const graph = "demo"

// replyLimit ends a test that hangs.
const replyLimit = 4 * time.Minute

// childEnv marks the process of a test that leaves goroutines behind by its nature: a log that failed keeps its storage
// engine's until the process ends.
const childEnv = "FOLDLINE_INGEST_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		os.Exit(m.Run())
	}
	testkit.Main(m)
}

// inChild runs the calling test in a process of its own; it is true in that process.
func inChild(t *testing.T) bool {
	t.Helper()
	if os.Getenv(childEnv) != "" {
		return true
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), childEnv+"=1")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "--- PASS: "+t.Name())
	return false
}

// line is the real line up to the heads: a NATS server, a log on disk, a graph in memory, and a folder that is
// told when to fold.
type line struct {
	t        testing.TB
	server   *server.Server
	restarts testkit.NATSOption // of a server that comes back
	nc       *nats.Conn         // of the producer
	own      *nats.Conn         // of the ingester
	store    *countstore.Store
	log      *wal.Log
	pub      *publisher.Publisher
	folder   *fold.Folder
	alloc    *memory.CheckedAllocator
	in       *ingest.Ingester

	logMayFail bool

	stop    context.CancelFunc
	stopped chan error
	stopLog context.CancelFunc
	logDone chan error
}

type settings struct {
	lanes   uint32
	tables  []publisher.TableSpec
	options func(*ingest.Options)
	log     func(*wal.Options)
	inner   func(objstore.Store) objstore.Store
	// reconnect lets connections find a server that comes back, without delay.
	reconnect bool
}

var airport = publisher.TableSpec{Key: "node:Airport", Columns: []heads.Column{
	{Name: "id", Type: "string"}, {Name: "name", Type: "string"}, {Name: "n", Type: "int64", Nullable: true},
}}

var flight = publisher.TableSpec{Key: "edge:Flight", UnknownFields: heads.DropUnknown, PrimaryKey: []string{"src", "num"}, LaneColumns: []string{"src"}, Columns: []heads.Column{
	{Name: "src", Type: "string"}, {Name: "num", Type: "int64"}, {Name: "at", Type: "timestamp:us:UTC", Nullable: true},
}}

// newLine starts a line and stops it with the test; everything it took is answered by then and no record leaks.
func newLine(t testing.TB, s settings) *line {
	t.Helper()
	l := &line{t: t, alloc: memory.NewCheckedAllocator(memory.NewGoAllocator())}
	var connect []nats.Option
	if s.reconnect {
		l.restarts = testkit.OnPort(testkit.FreePort(t))
		l.server = testkit.StartNATS(t, l.restarts)
		connect = []nats.Option{nats.MaxReconnects(-1), nats.ReconnectWait(5 * time.Millisecond), nats.ReconnectJitter(0, 0)}
	}
	if l.server == nil {
		l.server = testkit.StartNATS(t)
	}
	l.nc, l.own = testkit.ConnectNATS(t, l.server, connect...), testkit.ConnectNATS(t, l.server, connect...)
	var inner objstore.Store = objstore.NewMemory()
	if s.inner != nil {
		inner = s.inner(inner)
	}
	l.store = countstore.New(inner)
	l.graph(s)
	l.openLog(s)
	l.run(s)
	t.Cleanup(l.close)
	return l
}

func (l *line) publisherOptions() publisher.Options { return publisher.Options{Store: l.store} }

func (l *line) graph(s settings) {
	_, err := publisher.Init(l.t.Context(), l.publisherOptions(), publisher.InitSpec{Graph: graph, Lanes: s.lanes})
	require.NoError(l.t, err)
	l.pub, err = publisher.Claim(l.t.Context(), l.publisherOptions(), "test")
	require.NoError(l.t, err)
	if s.tables == nil {
		s.tables = []publisher.TableSpec{airport, flight}
	}
	for _, spec := range s.tables {
		_, err := l.pub.CreateTable(l.t.Context(), spec)
		require.NoError(l.t, err)
	}
}

func (l *line) openLog(s settings) {
	o := wal.Options{Dir: l.t.TempDir(), Graph: graph, MinFreeBytes: -1}
	if s.log != nil {
		s.log(&o)
	}
	var err error
	l.log, err = wal.Open(l.t.Context(), o)
	require.NoError(l.t, err)
	epoch, err := publisher.ClaimLane(l.t.Context(), l.publisherOptions(), publisher.LaneClaim{Incarnation: l.log.Incarnation()})
	require.NoError(l.t, err)
	require.NoError(l.t, l.log.Begin(wal.Epoch(epoch)))
	ctx, stop := context.WithCancel(context.Background())
	l.stopLog, l.logDone = stop, make(chan error, 1)
	go func() { l.logDone <- l.log.Run(ctx) }()
	l.folder, err = fold.New(fold.Options{
		Publisher: l.pub, Store: l.store, Lanes: func(uint32) wal.Source { return l.log }, Notify: l.notify,
	})
	require.NoError(l.t, err)
}

func (l *line) notify(_ context.Context, p *publisher.Published) {
	e := envelope.Event{Graph: graph, Version: p.Snapshot.Version, Fold: p.Snapshot.Fold}
	for _, c := range p.Snapshot.Cuts {
		e.Cuts = append(e.Cuts, envelope.EventCut{Lane: c.Lane, Incarnation: c.Incarnation, Through: c.Through})
	}
	require.NoError(l.t, l.nc.Publish("foldline.demo.published", e.Encode()))
	require.NoError(l.t, l.nc.Flush())
}

func (l *line) run(s settings) {
	o := ingest.Options{
		Conn: l.own, Log: l.log, Store: l.store, Graph: graph, Allocator: l.alloc, RefreshInterval: time.Hour,
		Logger: slog.New(slog.NewTextHandler(l.t.Output(), nil)),
	}
	if s.options != nil {
		s.options(&o)
	}
	var err error
	l.in, err = ingest.New(o)
	require.NoError(l.t, err)
	ctx, stop := context.WithCancel(context.Background())
	l.stop, l.stopped = stop, make(chan error, 1)
	go func() { l.stopped <- l.in.Run(ctx) }()
	testkit.WaitFor(l.t, "the ingester", func() bool { return l.in.Ready() == nil || len(l.stopped) > 0 })
}

// end stops the ingester and returns why it ended.
func (l *line) end() error {
	l.stop()
	err := testkit.Receive(l.t, "the end of the ingester", l.stopped)
	l.stopped <- err
	return err
}

func (l *line) close() {
	l.stop()
	// Tests that expect an end on its own account have looked at its reason.
	_ = testkit.Receive(l.t, "the end of the ingester", l.stopped)
	l.stopLog()
	ended := testkit.Receive(l.t, "the end of the log", l.logDone)
	closed := l.log.Close()
	if !l.logMayFail {
		require.NoError(l.t, ended)
		require.NoError(l.t, closed)
	}
	l.alloc.AssertSize(l.t, 0)
}

// fold publishes what is in the log.
func (l *line) fold() fold.Report {
	l.t.Helper()
	report, err := l.folder.FoldOnce(l.t.Context())
	require.NoError(l.t, err)
	return report
}

// message is a request to a table's subject, or with an empty table to the one whose lines name theirs.
func message(table, body string, headers ...string) *nats.Msg {
	msg := nats.NewMsg("foldline.demo.write")
	if table != "" {
		msg.Subject += "." + table
	}
	msg.Data = []byte(body)
	for i := 0; i < len(headers); i += 2 {
		msg.Header.Set(headers[i], headers[i+1])
	}
	return msg
}

// ask sends a request and waits for its reply.
func (l *line) ask(msg *nats.Msg) *nats.Msg {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), replyLimit)
	defer cancel()
	reply, err := l.nc.RequestMsgWithContext(ctx, msg)
	require.NoError(l.t, err)
	return reply
}

// ack is ask for a request that has to be acknowledged.
func (l *line) ack(msg *nats.Msg) envelope.Receipt {
	l.t.Helper()
	reply := l.ask(msg)
	r, err := envelope.DecodeReceipt(reply.Data)
	require.NoError(l.t, err, string(reply.Data))
	return r
}

// refusal is ask for a request that has to be refused.
func (l *line) refusal(msg *nats.Msg) *envelope.Error {
	l.t.Helper()
	reply := l.ask(msg)
	require.NotEmpty(l.t, reply.Header.Get(envelope.HeaderServiceErrorCode), string(reply.Data))
	return envelope.DecodeError(reply.Data)
}
