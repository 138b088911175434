//go:build interop

// The line on versitygw, an S3 server that is a process of its own and dies too. `make s3` builds it and runs this.
package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/testkit"
)

const (
	s3Bucket = "foldline-crash"
	// gatewayKills are deaths of the S3 server under a line that lives, beside all those of the line.
	gatewayKills = 6
)

// startOnS3 starts a gateway, and the producers of a line whose graph is in its bucket.
func startOnS3(t *testing.T) (*mortal, *testkit.Gateway) {
	t.Helper()
	for name, value := range testkit.GatewayEnv() {
		t.Setenv(name, value)
	}
	g := testkit.StartGateway(t, s3Bucket)
	return startMortal(t, fmt.Sprintf("s3://%s/graphs/crash?endpoint=%s", s3Bucket, g.URL)), g
}

// On S3 as on a disk: the line is killed at every named point and at random, and exactly what was acknowledged is there.
// Then the gateway is killed under a line that lives. Acks go on without it, since no object store is on their
// path (W1), folds go on as soon as it is back, and what its death left open is settled by reading back (X3).
func TestExactlyOnceOnS3(t *testing.T) {
	l, g := startOnS3(t)
	for _, k := range namedKills() {
		l.die(k)
	}
	for range gatewayKills {
		l.outage(g)
		l.die(kill{})
	}
	l.finish()
}

// outage kills the gateway at a random moment of a line that lives, sees that acks go on, starts it again, and has the
// line die later.
func (l *mortal) outage(g *testkit.Gateway) {
	t := l.t
	t.Helper()
	c := l.start(kill{})
	l.untilPublished(c)
	target := l.acks.Load() + l.random.Int64N(60)
	testkit.WaitFor(t, "acks", func() bool { return l.acks.Load() >= target || c.ended() })
	g.Kill()
	target = l.acks.Load() + 20
	testkit.WaitFor(t, "acks while the store is down", func() bool { return l.acks.Load() >= target || c.ended() })
	require.False(t, c.ended(), "the line ended when its store was away\n%s", c.log)
	g.Start()
	l.untilPublished(c)
	require.NoError(t, c.cmd.Process.Kill())
	c.killed(t, reachLimit, "its kill")
	l.deaths++
	l.healthy(t)
	checkAtomic(t, l.store, workerCount)
}

// untilPublished waits for a publish of something acknowledged after the call.
func (l *mortal) untilPublished(c *child) {
	t := l.t
	t.Helper()
	fold := func() uint64 {
		s, err := heads.Current(l.ctx, l.store, "")
		if err != nil {
			return 0
		}
		return s.Fold
	}
	before := fold()
	testkit.WaitFor(t, "a publish", func() bool { return fold() > before+1 || c.ended() })
	require.False(t, c.ended(), "%s", c.log)
}
