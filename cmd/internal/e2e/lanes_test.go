package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/cmd/internal/run"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/envelope"
	"github.com/foldline/foldline/internal/testkit"
	"github.com/foldline/foldline/objstore"
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
	l.folder = l.start(rivalChild, kill{}) // a successor does not wait for a lease
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
	subjects, err := envelope.NewSubjects("", graph)
	require.NoError(l.t, err)
	for lane := range n {
		testkit.WaitFor(l.t, "every lane to be served", func() bool {
			l.healthy()
			_, err := run.LaneStatus(l.t.Context(), l.nc, subjects, lane)
			return err == nil
		})
	}
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
	return snapshotOf(l.t, l.store)
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

// changeKill is a point at which a process dies in a change of the lane count.
type changeKill struct {
	process string
	kill
}

// changeKills are the steps of a change: of the command, of the folder that begins and ends it, and of the owner of a lane that seals it, puts its log aside
// and opens a new one.
func changeKills() []changeKill {
	at := func(process, step string, nth int) changeKill {
		return changeKill{process, kill{At: []string{step}, Nth: nth}}
	}
	return []changeKill{
		at(lanesChild, "lanes.before", 1), at(lanesChild, "lanes.asked", 1),
		at(rivalChild, "change_lanes.before", 1), at(rivalChild, "change_lanes.after", 1), at(rivalChild, "fold.drained", 1),
		at(rivalChild, "change_lanes.before", 2), at(rivalChild, "change_lanes.after", 2),
		at(ingesterChild, "seal.before", 1), at(ingesterChild, "seal.after", 1), at(ingesterChild, "aside.before", 1), at(ingesterChild, "aside.after", 1),
		at(ingesterChild, "claim.before", 2), at(ingesterChild, "claim.after", 2),
	}
}

// Every process of a change of the lane count is killed at each of its steps, under load: started again, and the command given again, the change is made, and
// every acknowledged row is there once (W2, W5, F2).
func TestLaneChangeSurvivesKills(t *testing.T) {
	t.Parallel()
	l := startLaneLine(t)
	n := uint32(1)
	for _, k := range changeKills() {
		n = 3 - n
		t.Logf("to %d lanes; the %s dies at %s", n, k.process, k.kill)
		l.changeUnder(n, k)
	}
	l.finish()
}

// changeUnder changes the lane count to n while a process dies.
func (l *laneLine) changeUnder(n uint32, k changeKill) {
	l.t.Helper()
	victim, own := l.replace(k), kill{}
	if k.process == lanesChild {
		own = k.kill
	}
	command := l.command(n, own)
	if victim == nil {
		victim = command
	}
	victim.killed(l.t, reachLimit, k.String())
	l.replace(changeKill{process: k.process})
	testkit.WaitFor(l.t, "the change", func() bool {
		if command.ended() && !command.cmd.ProcessState.Success() {
			command = l.command(n, kill{})
		}
		return command.ended() && command.cmd.ProcessState.Success()
	})
	l.settle(n)
}

// replace ends a process, if it has not died, and starts it again with a point at which it dies.
func (l *laneLine) replace(k changeKill) *child {
	l.t.Helper()
	switch k.process {
	case rivalChild:
		if !l.folder.ended() {
			l.folder.stop(l.t)
		}
		l.folder = l.start(rivalChild, k.kill)
		testkit.WaitFor(l.t, "the folder", func() bool { return l.folder.ended() || l.activeIs(l.folder) })
		return l.folder
	case ingesterChild:
		if first := l.ingesters[0]; !first.ended() {
			first.stop(l.t)
		}
		l.ingesters[0] = l.ingester(0, k.kill)
		if len(k.At) > 0 {
			l.acked("acks of the ingester")
		}
		return l.ingesters[0]
	}
	return nil
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

// TestIngesterPausedThroughLaneChange stops the owner of a lane before and after it seals it, makes the change without it, and wakes it under the next generation: it
// acknowledges nothing, serves no entry of its old log, and ends (X2, W5). Stopped before the seal it has to be replaced, with the loss of what only its disk has.
func TestIngesterPausedThroughLaneChange(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"seal.before", "seal.after"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			pausedThroughChange(t, step)
		})
	}
}

// unreachedLane is lane 0 of a graph, without an ingester.
func unreachedLane(t *testing.T, lanes uint32, folderKill kill) (l *pausedLane, plan childPlan, folder *child, store objstore.Store) {
	t.Helper()
	s := testkit.StartNATS(t)
	plan = childPlan{Data: t.TempDir(), URL: s.ClientURL(), Lanes: lanes}
	folding := plan
	folding.Process, folding.Kill = rivalChild, folderKill
	folder = startChild(t, folding)
	store = openGraph(t, plan.root())
	testkit.WaitFor(t, "the tables", func() bool { return hasTables(t, store) })
	subjects, err := envelope.NewSubjects("", graph)
	require.NoError(t, err)
	l = &pausedLane{t: t, lanes: lanes, nc: testkit.ConnectNATS(t, s), subjects: subjects}
	l.replies, err = l.nc.SubscribeSync(l.nc.NewRespInbox())
	require.NoError(t, err)
	return l, plan, folder, store
}

// to starts foldline lanes n.
func (p childPlan) to(t *testing.T, n uint32) *child {
	t.Helper()
	p.Process, p.Lanes = lanesChild, n
	return startChild(t, p)
}

func pausedThroughChange(t *testing.T, step string) {
	l, plan, f, store := unreachedLane(t, 1, kill{})
	l.step = step
	l.owner = l.start(plan, "first", kill{At: []string{step}, Pause: true}, false)
	l.successor = l.owner // whose rows are acknowledged first
	l.acknowledged()
	testkit.WaitFor(t, "a publish", func() bool { return snapshotOf(t, store).Fold > 0 })
	c := plan.to(t, 2)
	l.owner.standsStill(t, "the owner to stand still at "+step)
	before := snapshotOf(t, store)
	if step == "seal.before" {
		l.successor = l.start(plan, "second", kill{}, true)
		c.done(t)
	} else {
		c.done(t)
		l.successor = l.start(plan, "second", kill{}, false)
	}
	l.lanes = 2
	l.send(l.replies.Subject) // to whom of the two is open
	l.acknowledged()
	l.drain()
	l.read(before)
	l.owner.wakes(t)
	l.ends()
	require.Zero(t, l.readThrough(), "a stale owner serves the log")
	require.Zero(t, l.drain(), "a stale owner acknowledges")
	l.acknowledged()
	for _, cut := range snapshotOf(t, store).Cuts {
		require.Equal(t, cut.Open, cut.Generation == 1, "incarnation %s", cut.Incarnation)
	}
	l.successor.stop(t)
	f.stop(t)
}

// TestChangeEndsWhileOwnerOpens stops an owner that has sealed its lane and was started again, before it claims: the change ends, which closes the incarnation it
// was about to claim. It goes on with a new one, without being started again.
func TestChangeEndsWhileOwnerOpens(t *testing.T) {
	t.Parallel()
	l, plan, f, store := unreachedLane(t, 1, kill{At: []string{"change_lanes.before"}, Nth: 2})
	l.successor = l.start(plan, "log", kill{At: []string{"seal.after"}}, false)
	l.acknowledged()
	testkit.WaitFor(t, "the log to be folded", func() bool {
		status, err := run.LaneStatus(t.Context(), l.nc, l.subjects, l.lane)
		cut, _ := snapshotOf(t, store).Cut(l.lane, status.Incarnation)
		return err == nil && cut.Through > 0 && cut.Through == uint64(status.SyncedThrough)
	})
	c := plan.to(t, 2)
	l.successor.killed(t, reachLimit, "the seal")
	f.killed(t, reachLimit, "the end of the change")

	l.successor = l.start(plan, "log", kill{At: []string{"claim.before"}, Pause: true}, false)
	l.successor.standsStill(t, "the owner to stand still")
	folding := plan
	folding.Process = rivalChild
	f = startChild(t, folding)
	c.done(t)
	l.successor.wakes(t)
	l.lanes = 2
	l.acknowledged()
	require.Contains(t, l.successor.log.String(), "is set aside and a new one begins")
	require.Len(t, snapshotOf(t, store).Cuts, 2)
	l.successor.stop(t)
	f.stop(t)
}

// TestChangeBeginsWhileOwnerOpens stops the owner of a new log before it claims lane 0, and lets a change of the lane count begin, which does not end before the
// other lane is sealed. The owner waits for that, and goes on without being started again.
func TestChangeBeginsWhileOwnerOpens(t *testing.T) {
	t.Parallel()
	l, plan, f, store := unreachedLane(t, 2, kill{})
	other := *l
	other.lane = 1
	other.successor = other.start(plan, "log", kill{At: []string{"seal.before"}, Pause: true}, false)
	other.acknowledged()
	l.successor = l.start(plan, "log", kill{At: []string{"claim.before"}, Pause: true}, false)
	l.successor.standsStill(t, "the owner to stand still")
	c := plan.to(t, 1)
	other.successor.standsStill(t, "the other lane to stand still")
	require.EqualValues(t, 1, snapshotOf(t, store).LaneTarget)
	l.successor.wakes(t)
	testkit.WaitFor(t, "the owner to wait", func() bool { return strings.Contains(l.successor.log.String(), "standing by") || l.successor.ended() })
	other.successor.wakes(t)
	c.done(t)
	other.successor.done(t)
	l.lanes = 1
	l.acknowledged()
	l.successor.stop(t)
	f.stop(t)
}

// TestLaneGoesWhileOwnerOpens stops the owner of a new log before it claims lane 1, which is no more when it wakes up: it ends by itself, as owners of such lanes do.
func TestLaneGoesWhileOwnerOpens(t *testing.T) {
	t.Parallel()
	l, plan, f, _ := unreachedLane(t, 2, kill{})
	other := *l
	other.lane = 1
	l.successor = l.start(plan, "log", kill{}, false)
	l.acknowledged()
	other.successor = other.start(plan, "log", kill{At: []string{"claim.before"}, Pause: true}, false)
	other.successor.standsStill(t, "the owner to stand still")
	plan.to(t, 1).done(t)
	other.successor.wakes(t)
	other.successor.done(t)
	l.lanes = 1
	l.acknowledged()
	l.successor.stop(t)
	f.stop(t)
}

func snapshotOf(t *testing.T, store objstore.Store) *heads.Snapshot {
	t.Helper()
	s, err := heads.Resolve(t.Context(), store, "")
	require.NoError(t, err)
	return s
}
