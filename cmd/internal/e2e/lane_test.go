package e2e

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/envelope"
	"github.com/foldline/foldline/internal/keys"
	"github.com/foldline/foldline/internal/testkit"
	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/wal"
)

// ingesterPauses is every step of an ingester; each gets a lane of its own.
var ingesterPauses = []string{"claim.before", "claim.after", "append.before", "ack.before", "serve.before", "release.before", "release.after"}

// pausedLane is a lane whose owner is stopped before a step, and then has a successor on another disk.
type pausedLane struct {
	t         *testing.T
	step      string
	lane      uint32
	lanes     uint32 // of the graph
	nc        *nats.Conn
	subjects  envelope.Subjects
	replies   *nats.Subscription // of what was sent before the successor came
	stopRead  context.CancelFunc // of a read that the first owner was asked for
	served    chan int           // how many values it gave
	row       int
	owner     *child
	successor *child
}

// TestPausedIngesterIsFenced stops the owner of a lane before and after each of its steps, lets a successor with another log take the lane with
// --accept-loss, and wakes the first: it acknowledges nothing more, answers no reader, and ends (X2; report C111).
func TestPausedIngesterIsFenced(t *testing.T) {
	t.Parallel()
	s := testkit.StartNATS(t)
	data, store := t.TempDir(), objstore.Store(nil)
	plan := childPlan{Data: data, URL: s.ClientURL(), Lanes: uint32(len(ingesterPauses))}
	folder := plan
	folder.Process = rivalChild // that no lease of its own can end
	f := startChild(t, folder)
	store = openGraph(t, plan.root())
	testkit.WaitFor(t, "the tables", func() bool { return hasTables(t, store) })

	lanes := make([]*pausedLane, len(ingesterPauses))
	subjects, err := envelope.NewSubjects("foldline", graph)
	require.NoError(t, err)
	for n, step := range ingesterPauses {
		l := &pausedLane{t: t, step: step, lane: uint32(n), lanes: plan.Lanes, nc: testkit.ConnectNATS(t, s), subjects: subjects}
		l.replies, err = l.nc.SubscribeSync(l.nc.NewRespInbox())
		require.NoError(t, err)
		l.owner = l.start(plan, "first", kill{At: []string{step}, Pause: true}, false)
		lanes[n] = l
	}
	for _, l := range lanes {
		testkit.WaitFor(t, "an ingester to stand still at "+l.step, func() bool { l.send(l.replies.Subject); return isStopped(t, l.owner) })
	}
	before, err := heads.Current(t.Context(), store, "")
	require.NoError(t, err)
	for _, l := range lanes {
		l.read(before)
		l.successor = l.start(plan, "second", kill{}, true)
	}
	for _, l := range lanes {
		l.acknowledged()
		l.drain()
		l.owner.wakes(t)
		l.ends()
		require.Zero(t, l.readThrough(), "%s: a stale owner serves the log", l.step)
		require.Zero(t, l.drain(), "%s: a stale owner acknowledges", l.step)
		l.acknowledged()
	}
	for _, l := range lanes {
		l.successor.stop(t)
	}
	f.stop(t)
}

func (l *pausedLane) start(plan childPlan, log string, k kill, acceptLoss bool) *child {
	plan.Process, plan.Kill, plan.Lane, plan.AcceptLoss = ingesterChild, k, l.lane, acceptLoss
	plan.WAL = filepath.Join(plan.Data, fmt.Sprintf("%s-%d", log, l.lane))
	return startChild(l.t, plan)
}

// send writes one row of the lane.
func (l *pausedLane) send(reply string) {
	l.t.Helper()
	for {
		l.row++
		id := "lane" + strconv.Itoa(l.row)
		if keys.Lane([]byte(id), l.lanes) != l.lane {
			continue
		}
		require.NoError(l.t, l.nc.PublishRequest(l.subjects.LaneWriteTable(l.lane, airports), reply, fmt.Appendf(nil, `{"id":%q}`, id)))
		return
	}
}

// acknowledged waits until the successor has taken a row.
func (l *pausedLane) acknowledged() {
	l.t.Helper()
	inbox, err := l.nc.SubscribeSync(l.nc.NewRespInbox())
	require.NoError(l.t, err)
	defer func() { require.NoError(l.t, inbox.Unsubscribe()) }()
	testkit.WaitFor(l.t, "the successor to take a row, lane "+strconv.Itoa(int(l.lane)), func() bool {
		require.False(l.t, l.successor.ended(), "%s", l.successor.log)
		l.send(inbox.Subject)
		return isReceipt(l.t, inbox)
	})
}

// drain counts the receipts among the replies that have come.
func (l *pausedLane) drain() (receipts int) {
	l.t.Helper()
	require.NoError(l.t, l.nc.Flush())
	for {
		if n, _, err := l.replies.Pending(); err != nil || n == 0 {
			require.NoError(l.t, err)
			return receipts
		}
		if isReceipt(l.t, l.replies) {
			receipts++
		}
	}
}

// isReceipt takes the next reply. A request may have gone to the stopped owner, which is still in the queue group: then there is none.
func isReceipt(t *testing.T, replies *nats.Subscription) bool {
	t.Helper()
	msg, err := replies.NextMsg(200 * time.Millisecond)
	if errors.Is(err, nats.ErrNoResponders) || errors.Is(err, nats.ErrTimeout) {
		return false
	}
	require.NoError(t, err)
	_, err = envelope.DecodeReceipt(msg.Data)
	return err == nil
}

// read asks the first owner for its log, as a folder does that has not heard of the successor.
func (l *pausedLane) read(s *heads.Snapshot) {
	request := wal.ReadRequest{Epoch: wal.Epoch(s.LaneEpoch(l.lane))}
	for _, c := range s.Cuts {
		if c.Lane == l.lane {
			request.Incarnation = c.Incarnation
		}
	}
	remote := wal.NewRemote(l.nc, wal.ReadSubjects{Read: l.subjects.LaneRead(l.lane), Status: l.subjects.LaneStatus(l.lane)},
		wal.RemoteOptions{Timeout: reachLimit})
	ctx, cancel := context.WithCancel(l.t.Context())
	l.stopRead, l.served = cancel, make(chan int, 1)
	go func() {
		served := 0
		for batch, err := range remote.Read(ctx, request) {
			if err == nil {
				served++
				batch.Release()
			}
		}
		l.served <- served
	}()
}

// readThrough ends the read and returns how many values came.
func (l *pausedLane) readThrough() int {
	l.t.Helper()
	l.stopRead()
	return testkit.Receive(l.t, "the read to end", l.served)
}

// ends waits for the end of the first owner.
func (l *pausedLane) ends() {
	l.t.Helper()
	testkit.Receive(l.t, "the stale owner to end, stopped at "+l.step, closed(l.owner.exited))
	require.False(l.t, l.owner.cmd.ProcessState.Success(), "%s: %s", l.step, l.owner.log)
	require.Regexp(l.t, "fenced|lease: lost|incarnation .* is (open|closed)", l.owner.log.String(), l.step)
}
