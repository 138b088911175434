package e2e

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/client"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/testkit"
	"github.com/foldline/foldline/objstore"
)

// cluster is a line of separate processes on one server: an ingester, and folders of which one is active.
type cluster struct {
	t         *testing.T
	url, data string
	nc        *nats.Conn
	store     objstore.Store
	producers *producers
	client    *client.Client
}

// startCluster starts the server; the processes are started by the test, and then the producers.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	return newCluster(t, testkit.StartNATS(t).ClientURL())
}

// newCluster is a line on a server that the test has started.
func newCluster(t *testing.T, url string) *cluster {
	t.Helper()
	nc, err := nats.Connect(url, nats.Timeout(reachLimit), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond), nats.ReconnectJitter(0, 0))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	c, err := client.New(nc, graph, client.WithAttemptTimeout(200*time.Millisecond), client.WithRetryFor(5*time.Minute))
	require.NoError(t, err)
	l := &cluster{t: t, url: url, nc: nc, data: t.TempDir(), client: c}
	l.store = openGraph(t, childPlan{Data: l.data}.root())
	return l
}

// produce starts the producers as soon as the tables are there: a write to an unknown table is refused for good.
func (l *cluster) produce() {
	l.t.Helper()
	testkit.WaitFor(l.t, "the tables", func() bool { return hasTables(l.t, l.store) })
	l.producers = startProducers(l.t.Context(), l.client, newWorkers(l.t, workerCount), true)
}

// hasTables reports whether the graph has the last of the settings' tables.
func hasTables(t *testing.T, store objstore.Store) bool {
	t.Helper()
	s, err := heads.Resolve(t.Context(), store, "")
	if err != nil {
		return false
	}
	_, last := s.Table(flights)
	return last
}

func (l *cluster) start(process string, k kill) *child {
	return startChild(l.t, childPlan{Process: process, Data: l.data, URL: l.url, Kill: k})
}

// activeIs reports whether the heads name the child as the folder.
func (l *cluster) activeIs(c *child) bool {
	s, err := heads.Current(l.t.Context(), l.store, "")
	return err == nil && strings.HasSuffix(s.FolderOwner, ":"+strconv.Itoa(c.cmd.Process.Pid))
}

// waitActive waits until the child is the folder and has published something that was written after the call.
func (l *cluster) waitActive(c *child) {
	l.t.Helper()
	testkit.WaitFor(l.t, "the standby to be the folder\n"+c.log.String(), func() bool { return c.ended() || l.activeIs(c) })
	require.False(l.t, c.ended(), "%s", c.log)
	fold := l.fold()
	acks := l.producers.acks.Load()
	testkit.WaitFor(l.t, "acks and publishes to go on", func() bool { return l.producers.acks.Load() > acks && l.fold() > fold })
}

func (l *cluster) fold() uint64 {
	s, err := heads.Current(l.t.Context(), l.store, "")
	if err != nil {
		return 0
	}
	return s.Fold
}

// finish ends the producers, waits for what they wrote, and checks it.
func (l *cluster) finish() {
	l.t.Helper()
	l.producers.finish(l.t)
	testkit.WaitFor(l.t, "everything acknowledged to be visible", func() bool {
		return visible(l.t.Context(), l.store, l.producers.workers)
	})
	require.NoError(l.t, l.client.Close(context.WithoutCancel(l.t.Context())))
	checkAtomic(l.t, l.store, workerCount)
	checkExact(l.t, l.store, l.producers.workers)
}

// Ingester and folder are separate processes; each is killed, the standby takes over, and nothing is lost or doubled.
func TestFailoverOfSeparateProcesses(t *testing.T) {
	t.Parallel()
	l := startCluster(t)
	active := l.start(folderChild, kill{At: []string{"commit." + routes + ".after"}, Nth: 5})
	l.produce()
	ingester := l.start(ingesterChild, kill{At: []string{"release.after"}, Nth: 2})
	ingester.killed(t, reachLimit, "its second release")
	ingester = l.start(ingesterChild, kill{})
	standby := l.start(folderChild, kill{})
	active.killed(t, reachLimit, "its fifth commit")
	l.waitActive(standby)

	require.NoError(t, ingester.cmd.Process.Kill())
	<-ingester.exited
	ingester = l.start(ingesterChild, kill{})
	l.waitActive(standby)

	next := l.start(folderChild, kill{})
	testkit.WaitFor(t, "the standby to be warm", func() bool { return strings.Contains(next.log.String(), "standby is warm") })
	standby.stop(t) // an orderly stop hands the lease over at once
	l.waitActive(next)
	l.finish()
	ingester.stop(t)
	next.stop(t)
}

// closed turns the closing of a channel into a value.
func closed(done <-chan struct{}) <-chan bool {
	out := make(chan bool, 1)
	go func() {
		<-done
		out <- true
	}()
	return out
}
