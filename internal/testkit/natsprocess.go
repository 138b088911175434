package testkit

import (
	"net"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
)

// natsServerModule is the server's main package; the version is go.mod's.
const natsServerModule = "github.com/nats-io/nats-server/v2"

// NATSProcess is a NATS server with JetStream in a process of its own, which can be killed as a machine's is and started again on
// its port and files. It belongs to one goroutine.
type NATSProcess struct {
	t           testing.TB
	binary, dir string
	address     string
	cmd         *exec.Cmd
}

// StartNATSProcess builds the server from its module and starts it; it is killed with the test.
func StartNATSProcess(t testing.TB) *NATSProcess {
	t.Helper()
	p := &NATSProcess{t: t, binary: filepath.Join(t.TempDir(), "nats-server"), dir: t.TempDir()}
	args := []string{"build", "-o", p.binary}
	if underRace() {
		args = append(args, "-race") // of the same packages as the test, so that they are compiled once
	}
	out, err := exec.CommandContext(t.Context(), "go", append(args, natsServerModule)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	p.address = Loopback(FreePort(t))
	p.start()
	t.Cleanup(p.stop)
	return p
}

func underRace() bool {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return false
	}
	for _, s := range info.Settings {
		if s.Key == "-race" {
			return s.Value == "true"
		}
	}
	return false
}

// URL is where it listens, before and after a restart.
func (p *NATSProcess) URL() string { return "nats://" + p.address }

// KillAndRestart ends the process with SIGKILL and starts another one on the same files; it returns when that takes connections.
func (p *NATSProcess) KillAndRestart() {
	p.t.Helper()
	p.stop()
	p.start()
}

func (p *NATSProcess) start() {
	p.t.Helper()
	host, port, err := net.SplitHostPort(p.address)
	require.NoError(p.t, err)
	p.cmd = exec.Command(p.binary, "-a", host, "-p", port, "-js", "-sd", p.dir)
	require.NoError(p.t, p.cmd.Start())
	WaitFor(p.t, "the NATS process to take connections", func() bool {
		nc, err := nats.Connect(p.URL(), nats.Timeout(natsStart))
		if err != nil {
			return false
		}
		nc.Close()
		return true
	})
}

func (p *NATSProcess) stop() {
	_ = p.cmd.Process.Kill() // it may have ended
	_ = p.cmd.Wait()
}
