package wal

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/internal/testkit"
)

// startNATS runs a real server in this process and gives a connection to it.
func startNATS(t testing.TB) *nats.Conn {
	t.Helper()
	return testkit.ConnectNATS(t, testkit.StartNATS(t))
}

func laneSubjects(lane int) ReadSubjects {
	base := fmt.Sprintf("foldline.demo.lane.%d.", lane)
	return ReadSubjects{Read: base + "read", Status: base + "status"}
}

// serve runs Serve for a log until the test ends and waits until it listens.
func serve(t testing.TB, nc *nats.Conn, l *Log) ReadSubjects {
	t.Helper()
	subjects := laneSubjects(0)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, nc, subjects, l) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-done) })
	testkit.WaitFor(t, "the log to be served", func() bool {
		_, err := NewRemote(nc, subjects, RemoteOptions{}).Status(t.Context())
		return err == nil
	})
	return subjects
}

func TestRemoteReadsWhatLocalReads(t *testing.T) {
	nc := startNATS(t)
	r := openLog(t, testOptions(vfs.NewMem()))
	subjects := serve(t, nc, r.Log)
	for i := range 40 {
		r.put(entryOf(fmt.Sprint("m", i), i*1000, 1+i*50))
	}
	// One entry far above a frame, and above a value.
	big := r.put(entryOf("big", 0, 250_000))
	remote := NewRemote(nc, subjects, RemoteOptions{})
	for _, req := range []ReadRequest{
		r.requestAll(0),
		r.requestAll(NewSeq(1, 7)),
		{Incarnation: r.Incarnation(), Epoch: 1, Through: NewSeq(1, 9)},
		{Incarnation: r.Incarnation(), Epoch: 1, MaxBytes: 1},
		{Incarnation: r.Incarnation(), Epoch: 1, MaxBytes: 100_000},
		r.requestAll(big.Seq),
	} {
		local, far := readAll(t, r, req), readAll(t, remote, req)
		require.Len(t, far, len(local), "%+v", req)
		for i := range local {
			requireSameBatch(t, local[i], far[i])
		}
	}
	status, err := remote.Status(t.Context())
	require.NoError(t, err)
	want, err := r.Status(t.Context())
	require.NoError(t, err)
	require.True(t, want.SyncedAt.Equal(status.SyncedAt))
	status.SyncedAt = want.SyncedAt
	require.Equal(t, want, status)
}

func TestRemoteErrorsAreTyped(t *testing.T) {
	nc := startNATS(t)
	r := openLog(t, testOptions(vfs.NewMem()))
	subjects := serve(t, nc, r.Log)
	var seqs []Seq
	for i := range 5 {
		seqs = append(seqs, r.put(entryOf("", i, 1)).Seq)
	}
	require.NoError(t, r.Release(t.Context(), seqs[2]))
	remote := NewRemote(nc, subjects, RemoteOptions{Timeout: 500 * time.Millisecond})
	for _, s := range []Source{r, remote} {
		req := r.requestAll(seqs[0])
		err := readError(t, s, req)
		require.ErrorIs(t, err, ErrReleased)
		var rng *RangeError
		require.ErrorAs(t, err, &rng)
		require.Equal(t, [2]Seq{seqs[0], seqs[2]}, [2]Seq{rng.From, rng.To})

		err = readError(t, s, r.requestAll(seqs[4]+10))
		require.ErrorIs(t, err, ErrGap)
		require.ErrorAs(t, err, &rng)
		require.Equal(t, [2]Seq{seqs[4], seqs[4] + 10}, [2]Seq{rng.From, rng.To})

		req = r.requestAll(0)
		req.Incarnation = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
		require.ErrorIs(t, readError(t, s, req), ErrFenced)
	}
	req := r.requestAll(seqs[2])
	req.Epoch = 7
	require.ErrorIs(t, readError(t, r, req), ErrFenced)
	require.ErrorIs(t, readError(t, remote, req), ErrUnavailable, "a stale owner stays silent")
	nobody := NewRemote(nc, laneSubjects(9), RemoteOptions{})
	require.ErrorIs(t, readError(t, nobody, req), ErrUnavailable)
	_, err := nobody.Status(t.Context())
	require.ErrorIs(t, err, ErrUnavailable)
}

// lossyRelay passes read requests on to a lane and its frames back, and lets a
// test change each frame; a nil frame is lost.
func lossyRelay(t *testing.T, nc *nats.Conn, to string, change func(n int, msg *nats.Msg) *nats.Msg) ReadSubjects {
	t.Helper()
	subjects := laneSubjects(77)
	frames := 0
	sub, err := nc.Subscribe(subjects.Read, func(req *nats.Msg) {
		inbox := nc.NewInbox()
		replies, err := nc.SubscribeSync(inbox)
		require.NoError(t, err)
		require.NoError(t, nc.PublishRequest(to, inbox, req.Data))
		for {
			msg, err := replies.NextMsg(time.Minute)
			require.NoError(t, err)
			kind := msg.Header.Get(headerFrame)
			frames++
			msg.Subject = req.Reply
			if out := change(frames, msg); out != nil {
				require.NoError(t, nc.PublishMsg(out))
			}
			if kind == frameEnd || kind == frameError {
				require.NoError(t, replies.Unsubscribe())
				return
			}
		}
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = sub.Unsubscribe() })
	require.NoError(t, nc.Flush())
	return subjects
}

// TestLostAndDamagedFrames loses, or damages, each frame of a reply in turn: the
// reader still gives exactly what is stored, each value once.
func TestLostAndDamagedFrames(t *testing.T) {
	nc := startNATS(t)
	r := openLog(t, testOptions(vfs.NewMem()))
	subjects := serve(t, nc, r.Log)
	r.put(entryOf("", 0, 10))
	r.put(entryOf("", 0, 60_000)) // several frames
	r.put(entryOf("", 100, 10))
	want := rowIDs(readAll(t, r, r.requestAll(0)), 1)
	damages := map[string]func(*nats.Msg) *nats.Msg{
		"lost": func(*nats.Msg) *nats.Msg { return nil },
		"payload": func(m *nats.Msg) *nats.Msg {
			if len(m.Data) > 0 {
				m.Data[len(m.Data)/2] ^= 4
			}
			return m
		},
	}
	for name, damage := range damages {
		for k := 1; k <= 7; k++ {
			t.Run(fmt.Sprintf("%s/%d", name, k), func(t *testing.T) {
				relay := lossyRelay(t, nc, subjects.Read, func(n int, msg *nats.Msg) *nats.Msg {
					if n == k {
						return damage(msg)
					}
					return msg
				})
				remote := NewRemote(nc, relay, RemoteOptions{Timeout: 500 * time.Millisecond})
				require.Equal(t, want, rowIDs(readAll(t, remote, r.requestAll(0)), 1))
			})
		}
	}
}

// TestForeignFormatOnTheWire: a peer of another format is refused, both ways.
func TestForeignFormatOnTheWire(t *testing.T) {
	nc := startNATS(t)
	r := openLog(t, testOptions(vfs.NewMem()))
	subjects := serve(t, nc, r.Log)
	r.put(entryOf("", 0, 1))
	relay := lossyRelay(t, nc, subjects.Read, func(_ int, msg *nats.Msg) *nats.Msg {
		msg.Header.Set(headerFormat, "2")
		return msg
	})
	require.ErrorIs(t, readError(t, NewRemote(nc, relay, RemoteOptions{}), r.requestAll(0)), ErrFormat)

	for body, code := range map[string]string{
		`{"v":2,"inc":"x","epoch":1,"after":"0","through":"0"}`:  "format",
		`{"v":1,"inc":"x","epoch":1,"after":"-1","through":"0"}`: "invalid_request",
		`{`: "invalid_request",
		`{"v":1,"inc":"x","epoch":0,"after":"0","through":"0"}`: "fenced",
	} {
		reply, err := nc.Request(subjects.Read, []byte(body), time.Minute)
		require.NoError(t, err)
		require.Equal(t, code, reply.Header.Get(headerError), body)
	}
}

// TestReadFromInsideAValue: who looks may begin anywhere and is given the value around it; who folds must not, for it would fold
// entries twice.
func TestReadFromInsideAValue(t *testing.T) {
	nc := startNATS(t)
	r := openLog(t, testOptions(vfs.NewMem()))
	subjects := serve(t, nc, r.Log)
	answered := make(chan int, 8)
	_, err := r.AppendAll(t.Context(), sharedEntries(8), func(_ int, results []Result) { answered <- len(results) })
	require.NoError(t, err)
	for n := 0; n < 8; n += <-answered {
	}
	r.put(entryOf("last", 9, 1))
	for name, s := range map[string]Source{"near": r.Log, "far": NewRemote(nc, subjects, RemoteOptions{})} {
		t.Run(name, func(t *testing.T) {
			whole := readAll(t, s, r.requestAll(0))
			require.Equal(t, NewSeq(1, 8), whole[0].Last, "one value of eight")
			req := r.requestAll(NewSeq(1, 5))
			for _, err := range s.Read(t.Context(), req) {
				require.Error(t, err)
			}
			req.Inside = true
			got := readAll(t, s, req)
			require.Len(t, got, 2)
			requireSameBatch(t, whole[0], got[0])
			requireSameBatch(t, whole[1], got[1])
			req.After = NewSeq(1, 8)
			require.Len(t, readAll(t, s, req), 1)
		})
	}
}
