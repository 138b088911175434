package lease

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// options are those of a lease that lapses soon.
func options(owner string) Options {
	return Options{Bucket: "foldline_g", Key: "lease.folder", Owner: owner, TTL: 200 * time.Millisecond}
}

// kept are the options of a lease whose holder has to keep it, on a machine that is far too busy.
func kept(owner string) Options {
	o := options(owner)
	o.TTL = 8 * time.Second
	return o
}

// acquire starts to wait for the lease and returns where it comes, and where the current owner is told.
func acquire(t *testing.T, nc *nats.Conn, o Options) (held chan *Lease, waits chan string) {
	t.Helper()
	held, waits = make(chan *Lease, 1), make(chan string, 1)
	go func() {
		l, err := Acquire(t.Context(), nc, o, func(holder string) { waits <- holder })
		if err == nil {
			held <- l
		}
	}()
	return held, waits
}

func TestOneHolds(t *testing.T) {
	t.Parallel()
	nc := testkit.ConnectNATS(t, testkit.StartNATS(t))
	a, err := Acquire(t.Context(), nc, kept("a"), nil)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Hold(ctx) }()

	held, waits := acquire(t, nc, kept("b"))
	require.Equal(t, "a", testkit.Receive(t, "the waiter to see the owner", waits))
	// After renewals the holder is still the holder.
	first := a.kv
	start := revision(t, first)
	testkit.WaitFor(t, "renewals", func() bool { return revision(t, first) > start+1 })
	require.Empty(t, held)

	cancel()
	require.NoError(t, testkit.Receive(t, "the holder to stop", ended))
	require.NoError(t, a.Release(t.Context()))
	b := testkit.Receive(t, "the waiter to take over", held)
	require.NoError(t, b.Release(t.Context()))
}

func revision(t *testing.T, kv jetstream.KeyValue) uint64 {
	t.Helper()
	e, err := kv.Get(t.Context(), "lease.folder")
	require.NoError(t, err)
	return e.Revision()
}

func TestSilentHolderLoses(t *testing.T) {
	nc := testkit.ConnectNATS(t, testkit.StartNATS(t))
	a, err := Acquire(t.Context(), nc, options("a"), nil)
	require.NoError(t, err)
	held, _ := acquire(t, nc, options("b"))
	b := testkit.Receive(t, "the waiter to take over", held)
	require.ErrorIs(t, a.Hold(t.Context()), ErrLost, "it wakes up and finds another owner")
	require.NoError(t, a.Release(t.Context()), "giving up what was lost does nothing")
	require.NoError(t, b.Release(t.Context()))
}

func TestHolderWithoutServerLoses(t *testing.T) {
	s := testkit.StartNATS(t)
	nc := testkit.ConnectNATS(t, s)
	a, err := Acquire(t.Context(), nc, options("a"), nil)
	require.NoError(t, err)
	testkit.StopNATS(s)
	require.ErrorIs(t, a.Hold(t.Context()), ErrLost)
}

// A renewal whose answer was lost is not taken for another owner.
func TestLostAnswerIsSettledByReadingBack(t *testing.T) {
	t.Parallel()
	nc := testkit.ConnectNATS(t, testkit.StartNATS(t))
	a, err := Acquire(t.Context(), nc, kept("a"), nil)
	require.NoError(t, err)
	_, err = a.kv.Update(t.Context(), a.o.Key, []byte("a"), a.revision)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Hold(ctx) }()
	start := revision(t, a.kv)
	kv := a.kv
	testkit.WaitFor(t, "a renewal", func() bool { return revision(t, kv) > start })
	cancel()
	require.NoError(t, testkit.Receive(t, "the holder to stop", ended))
}

func TestWaiterEndsWithItsContext(t *testing.T) {
	nc := testkit.ConnectNATS(t, testkit.StartNATS(t))
	a, err := Acquire(t.Context(), nc, options("a"), nil)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	_, err = Acquire(ctx, nc, options("b"), func(string) { cancel() })
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, a.Release(t.Context()))
}

// A holder that asks Held is not ended by a server that is away; its own clock tells it that others may have the lease by now (X2).
func TestKeptThroughAnOutage(t *testing.T) {
	s := testkit.StartNATS(t)
	nc := testkit.ConnectNATS(t, s)
	a, err := Acquire(t.Context(), nc, options("a"), nil)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Keep(ctx) }()
	testkit.StopNATS(s)
	testkit.WaitFor(t, "the lease to run out", func() bool { return !a.Held() })
	require.Empty(t, ended)
	cancel()
	require.NoError(t, testkit.Receive(t, "the holder to stop", ended))
}

// A waiter that cannot look at the key, because the server is away, looks again. A bucket that is gone stands for that, since it is an error at once.
func TestWaiterOutlivesAnOutage(t *testing.T) {
	nc := testkit.ConnectNATS(t, testkit.StartNATS(t))
	a, err := Acquire(t.Context(), nc, options("a"), nil)
	require.NoError(t, err)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	seen, err := a.kv.Get(t.Context(), a.o.Key)
	require.NoError(t, err)
	require.NoError(t, js.DeleteKeyValue(t.Context(), a.o.Bucket))
	require.NoError(t, a.waitForSilence(t.Context(), seen))
}

// A stop does not fail because nobody could be told of it in time: the lease lapses.
func TestReleaseThatIsNotAnswered(t *testing.T) {
	nc := testkit.ConnectNATS(t, testkit.StartNATS(t))
	a, err := Acquire(t.Context(), nc, options("a"), nil)
	require.NoError(t, err)
	late, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	require.NoError(t, a.Release(late))
}

// A holder of which it is known that it is gone is not waited for, and finds out when it is not.
func TestGoneHolderIsNotWaitedFor(t *testing.T) {
	nc := testkit.ConnectNATS(t, testkit.StartNATS(t))
	a, err := Acquire(t.Context(), nc, options("a"), nil)
	require.NoError(t, err)
	o := options("b")
	o.TTL, o.Gone = time.Hour, func(owner string) bool { return owner == "a" }
	b, err := Acquire(t.Context(), nc, o, nil)
	require.NoError(t, err)
	require.ErrorIs(t, a.Keep(t.Context()), ErrLost)
	require.NoError(t, b.Release(t.Context()))
}
