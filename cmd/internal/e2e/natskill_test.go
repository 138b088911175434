package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/cmd/internal/lease"
	"github.com/foldline/foldline/cmd/internal/run"
	"github.com/foldline/foldline/internal/testkit"
)

// serverKills is how often the server dies in the test below.
const serverKills = 50

// report C04, report C09: the NATS server, a process of its own, is killed and started again over and over under load. After each time
// acks and publishes go on without anybody's help (no subscription stays dead, no counter of outstanding messages fills up), and
// in the end every acknowledged row is there exactly once.
func TestServerProcessKilled(t *testing.T) {
	t.Parallel()
	server := testkit.StartNATSProcess(t)
	l := newCluster(t, server.URL())
	s := &supervised{cluster: l, running: map[string]*child{}}
	s.keep(folderChild)
	l.produce()
	s.keep(ingesterChild)
	for round := range serverKills {
		acks, fold := l.producers.acks.Load(), l.fold()
		testkit.WaitFor(t, "acks after the server came back", func() bool {
			s.keep(folderChild)
			s.keep(ingesterChild)
			l.producers.healthy(t)
			// Publishes are waited for now and then only, so that the server also dies before, during and soon after one.
			return l.producers.acks.Load() > acks && (round%5 != 0 || l.fold() > fold)
		})
		server.KillAndRestart()
	}
	t.Logf("%d acks, %d of retries; processes started again: %d", l.producers.acks.Load(), l.producers.duplicates.Load(), s.restarts)
	l.finish()
	for _, program := range []string{ingesterChild, folderChild} {
		s.running[program].stop(t)
	}
}

// supervised starts a process again that has ended because it could not renew its lease in time, as an init system would, or because the server was away
// when it started. Any other end fails the test.
type supervised struct {
	*cluster
	running  map[string]*child
	restarts int
}

func (s *supervised) keep(program string) {
	s.t.Helper()
	c := s.running[program]
	if c != nil && !c.ended() {
		return
	}
	if c != nil {
		require.Regexp(s.t, "lease: lost|"+run.ErrUnreachable.Error()+"|"+lease.ErrUnavailable.Error(), c.log.String(), "%s ended", program)
		s.restarts++
	}
	s.running[program] = s.start(program, kill{})
}
