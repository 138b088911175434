package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/client"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/testkit"
	"github.com/foldline/foldline/objstore"
)

const (
	workerCount = 4
	// randomKills come beside the kills at named points.
	randomKills = 16
	// reachLimit is how long a child may take to come to its point, on a machine that is far too busy.
	reachLimit = 4 * time.Minute
	// seedEnv replays a run.
	seedEnv = "FOLDLINE_E2E_SEED"
)

// namedKills is every point of the protocol: around the record, each table commit, every set of landed table commits,
// the publish and the release, and inside the recovery that follows.
func namedKills() []kill {
	at := func(steps ...string) kill { return kill{At: steps} }
	kills := []kill{
		at("init.before"), at("init.after"), at("claim.before"), at("claim.after"), at("create.before"), at("create.after"),
		{Case: "C1", At: []string{"append.before"}}, {Case: "C2", At: []string{"ack.before"}, Nth: 5}, at("serve.before"),
		{Case: "C5", At: []string{"fold.cut"}}, at("fold.prepared"), {Case: "C8", At: []string{"record.before"}}, {Case: "C9", At: []string{"record.after"}},
	}
	for _, t := range append(slices.Clone(tables), heads.RejectsKey) {
		kills = append(kills, at("commit."+t+".before"), at("commit."+t+".after"), at("barrier."+t+".before"), at("barrier."+t+".after"))
	}
	for i, t := range tables {
		u, v := tables[(i+1)%3], tables[(i+2)%3]
		kills = append(kills,
			kill{Case: "C10", After: ownCut, At: []string{"commit." + t + ".after"}, Hold: []string{"commit." + u + ".before", "commit." + v + ".before"}},
			at("recover.after"),
			kill{After: ownCut, At: []string{"commit." + t + ".after", "commit." + u + ".after"}, Hold: []string{"commit." + v + ".before"}},
			// The recovery of the fold before dies as well, with one table more.
			kill{At: []string{"commit." + v + ".after"}},
		)
	}
	return append(kills,
		kill{Case: "C11", At: []string{"publish.before"}}, kill{Case: "C16", At: []string{"recover.before"}}, kill{Case: "C13", At: []string{"publish.after"}}, at("fold.published"), at("fold.notified"),
		kill{Case: "C14", At: []string{"release.before"}}, at("release.after"), kill{At: []string{"release.after"}, Nth: 3}, kill{At: []string{"publish.after"}, Nth: 7},
	)
}

// TestExactlyOnceAcrossCrashes kills the line at every named point and at random moments while producers write and
// retry (crashes C1, C2, C5, C8 to C11, C13 to C16; report C24). After each death the heads show whole messages only; in the end every acknowledged row is there once, with the
// value acknowledged last, and nothing else is (W1, W2, F1 to F5, P2, P4, X3).
func TestExactlyOnceAcrossCrashes(t *testing.T) {
	t.Parallel()
	l := startMortal(t, "")
	kills := namedKills()
	for range randomKills {
		kills = append(kills, kill{})
	}
	require.GreaterOrEqual(t, len(kills), 50)
	for _, k := range kills {
		t.Run(k.String(), func(t *testing.T) { l.t = t; l.die(k) })
		require.False(t, t.Failed())
	}
	l.t = t
	l.finish()
}

// mortal is a development line that dies again and again while producers write to it.
type mortal struct {
	t       *testing.T
	ctx     context.Context
	random  *rand.Rand
	plan    childPlan // of every child, but for its death
	store   objstore.Store
	client  *client.Client
	workers []*worker
	*producers
	deaths int
}

// startMortal starts the producers of a line on the graph root, a directory of its own when root is empty. The line itself
// is started by the calls that follow.
func startMortal(t *testing.T, root string) *mortal {
	t.Helper()
	seed := crashSeed(t)
	t.Logf("replay with %s=%d", seedEnv, seed)
	l := &mortal{t: t, random: rand.New(rand.NewPCG(seed, 0)), workers: newWorkers(t, workerCount)}
	l.plan = childPlan{Process: devChild, Data: t.TempDir(), Root: root, Port: testkit.FreePort(t)}
	nc, err := nats.Connect(fmt.Sprintf("nats://127.0.0.1:%d", l.plan.Port), nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond), nats.ReconnectJitter(0, 0))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	l.client, err = client.New(nc, graph, client.WithAttemptTimeout(200*time.Millisecond), client.WithRetryFor(5*time.Minute))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	t.Cleanup(cancel)
	l.ctx = ctx
	l.producers = startProducers(ctx, l.client, l.workers, false)
	l.store = openGraph(t, l.plan.root())
	return l
}

// start starts the line, which dies at k.
func (l *mortal) start(k kill) *child {
	l.t.Helper()
	plan := l.plan
	plan.Kill = k
	return startChild(l.t, plan)
}

// die starts the line and has it die at k, or at a random moment when k is empty.
func (l *mortal) die(k kill) {
	l.t.Helper()
	c := l.start(k)
	if len(k.At) == 0 {
		killAtRandom(l.ctx, c, l.producers, l.random)
	}
	c.killed(l.t, reachLimit, k.String())
	l.deaths++
	l.healthy(l.t)
	checkAtomic(l.t, l.store, workerCount)
}

// finish starts the line a last time, lets it fold everything, and checks what is there.
func (l *mortal) finish() {
	t := l.t
	t.Helper()
	last := l.start(kill{})
	l.producers.finish(t)
	testkit.WaitFor(t, "everything acknowledged to be visible", func() bool { return visible(l.ctx, l.store, l.workers) })
	last.stop(t)
	require.NoError(t, l.client.Close(l.ctx))
	t.Logf("%d kills, %d acknowledged messages, %d of them by a retry of a message that was durable", l.deaths, l.acks.Load(), l.duplicates.Load())
	checkAtomic(t, l.store, workerCount)
	checkExact(t, l.store, l.workers)
}

// killAtRandom kills the child at a random moment of its start, or after a random number of acks.
func killAtRandom(ctx context.Context, c *child, p *producers, random *rand.Rand) {
	if random.IntN(3) == 0 {
		time.AfterFunc(time.Duration(random.IntN(400))*time.Millisecond, func() { _ = c.cmd.Process.Kill() })
		return
	}
	target := p.acks.Load() + 1 + random.Int64N(200)
	testkit.Until(ctx, func() bool { return p.acks.Load() >= target || c.ended() })
	_ = c.cmd.Process.Kill()
}

func crashSeed(t *testing.T) uint64 {
	t.Helper()
	text, ok := os.LookupEnv(seedEnv)
	if !ok {
		return rand.Uint64()
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err)
	return seed
}
