package fold

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/testkit"
)

// stuck is a publisher whose Refresh hangs while it is told to.
type stuck struct {
	Publisher
	hang chan chan struct{}
}

func (s *stuck) Refresh(ctx context.Context) (*heads.Snapshot, error) {
	select {
	case until := <-s.hang:
		<-until
	default:
	}
	return s.Publisher.Refresh(ctx)
}

func ready(f *Folder) func() bool { return func() bool { return f.Ready() == nil } }

// TestReportC160ReadyWhileItGetsRound: a loop that stands still is not ready after two intervals and ten seconds at least, and ready again when it goes on; nor is
// one that has never got round, or whose last fold failed.
func TestReportC160ReadyWhileItGetsRound(t *testing.T) {
	var ahead atomic.Int64
	start := time.Now() // the clock stands still but for ahead
	clock := func() time.Time { return start.Add(time.Duration(ahead.Load())) }
	f, p := failingFolder(t, Options{Clock: clock}, errors.New("the store is away"))
	hang := &stuck{Publisher: p, hang: make(chan chan struct{})}
	f.publisher = hang
	require.ErrorIs(t, f.Ready(), errNoTurn)

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	testkit.WaitFor(t, "the first good fold", ready(f))

	until := make(chan struct{})
	hang.hang <- until // the loop hangs from here on
	require.NoError(t, f.Ready())
	ahead.Store(int64(leastStall - time.Second))
	require.NoError(t, f.Ready(), "a fold may take a while")
	ahead.Store(int64(leastStall + 5*time.Second))
	require.ErrorContains(t, f.Ready(), "standing still")
	close(until)
	testkit.WaitFor(t, "the loop to go on", ready(f))
	cancel()
	require.NoError(t, testkit.Receive(t, "the end of Run", ended))
}

// TestReportC160NotReadyAfterAFailure: the reason is that of the failure.
func TestReportC160NotReadyAfterAFailure(t *testing.T) {
	away := errors.New("the store is away")
	f, p := failingFolder(t, Options{Interval: time.Hour}, away)
	f.turnEnded(nil)
	require.NoError(t, f.Ready())
	_, err := f.FoldOnce(t.Context())
	f.turnEnded(err)
	require.ErrorIs(t, f.Ready(), away)
	p.errs = nil
	_, err = f.FoldOnce(t.Context())
	f.turnEnded(err)
	require.NoError(t, f.Ready())
}
