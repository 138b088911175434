package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/testkit"
)

// laneLine is a cluster whose lane count changes, with an ingester for each lane that is started again when it ends.
type laneLine struct {
	*cluster
	folder    *child
	ingesters []*child
}

// startLaneLine starts a line of one lane, and producers that never stop.
func startLaneLine(t *testing.T) *laneLine {
	t.Helper()
	l := &laneLine{cluster: startCluster(t)}
	l.folder = l.start(folderChild, kill{})
	testkit.WaitFor(t, "the tables", func() bool { return hasTables(t, l.store) })
	workers := newWorkers(t, workerCount)
	for _, w := range workers {
		w.idempotent = true
	}
	l.ingesters = []*child{l.ingester(0, kill{})}
	l.producers = startProducers(t.Context(), l.client, workers, false)
	l.acked("the first acks")
	return l
}

func (l *laneLine) ingester(lane int, k kill) *child {
	return startChild(l.t, childPlan{Process: ingesterChild, Data: l.data, URL: l.url, Lane: uint32(lane), Kill: k,
		WAL: filepath.Join(l.data, fmt.Sprintf("log-%d", lane))})
}

// command starts foldline lanes n.
func (l *laneLine) command(n uint32, k kill) *child {
	return startChild(l.t, childPlan{Process: lanesChild, Data: l.data, URL: l.url, Lanes: n, Kill: k})
}

// done waits for a command's good end.
func (c *child) done(t *testing.T) {
	t.Helper()
	testkit.Receive(t, "the command to end", closed(c.exited))
	require.True(t, c.cmd.ProcessState.Success(), "%s\n%s", c.cmd.ProcessState, c.log)
}

// settle brings one ingester for each of n lanes up, ends those of lanes that are no more, and waits for acks and a publish.
func (l *laneLine) settle(n uint32) {
	l.t.Helper()
	s := l.snapshot()
	require.Equal(l.t, n, s.LaneCount)
	require.Zero(l.t, s.LaneTarget)
	for len(l.ingesters) > int(n) {
		last := l.ingesters[len(l.ingesters)-1]
		last.done(l.t) // by itself: its lane is no more
		l.ingesters = l.ingesters[:len(l.ingesters)-1]
	}
	for lane := range int(n) {
		if lane == len(l.ingesters) {
			l.ingesters = append(l.ingesters, l.ingester(lane, kill{}))
		}
	}
	l.acked("acks under the new lanes")
	testkit.WaitFor(l.t, "an open log of every lane", func() bool {
		l.healthy()
		open := map[uint32]bool{}
		for _, c := range l.snapshot().Cuts {
			open[c.Lane] = open[c.Lane] || c.Open
		}
		for lane := range n {
			if !open[lane] {
				return false
			}
		}
		return true
	})
}

// acked waits for several acks of every worker's kind, and a publish.
func (l *laneLine) acked(what string) {
	l.t.Helper()
	acks, fold := l.producers.acks.Load(), l.fold()
	testkit.WaitFor(l.t, what, func() bool { l.healthy(); return l.producers.acks.Load() > acks+3*workerCount && l.fold() > fold })
}

func (l *laneLine) healthy() {
	l.t.Helper()
	l.producers.healthy(l.t)
	for _, c := range append(l.ingesters, l.folder) {
		require.False(l.t, c.ended(), "%s", c.log)
	}
}

func (l *laneLine) snapshot() *heads.Snapshot {
	l.t.Helper()
	s, err := heads.Resolve(l.t.Context(), l.store, "")
	require.NoError(l.t, err)
	return s
}

// finish ends the producers and checks that exactly what they were acknowledged is there.
func (l *laneLine) finish() {
	l.t.Helper()
	l.producers.finish(l.t)
	testkit.WaitFor(l.t, "everything acknowledged to be visible", func() bool { return visible(l.t.Context(), l.store, l.producers.workers) })
	require.NoError(l.t, l.client.Close(context.WithoutCancel(l.t.Context())))
	checkExact(l.t, l.store, l.producers.workers)
	l.t.Logf("%d acks, %d of retries, %d outcomes unknown", l.producers.acks.Load(), l.producers.duplicates.Load(), l.producers.unknown.Load())
	for _, c := range append(l.ingesters, l.folder) {
		c.stop(l.t)
	}
}

// The lane count of a running line changes by one command under continuous load of producers in separate processes, up and down: nobody has to be restarted,
// ingesters of lanes that are no more end by themselves, every acknowledged row is there once with the value acknowledged last (W2, W5, F2, F3), and no
// outcome is unknown.
func TestLaneCountChangesUnderLoad(t *testing.T) {
	t.Parallel()
	l := startLaneLine(t)
	for i, n := range []uint32{4, 2, 3, 1} {
		l.command(n, kill{}).done(t)
		l.settle(n)
		require.Equal(t, uint32(i+1), l.snapshot().LaneGeneration)
	}
	require.Zero(t, l.producers.unknown.Load())
	l.finish()
}
