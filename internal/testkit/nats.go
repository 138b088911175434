package testkit

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
)

// natsStart bounds the start of a server, and each connection to it, on a machine that is far too busy.
const natsStart = time.Minute

// NATSOption changes the server's options before it starts.
type NATSOption func(*server.Options)

// OnPort is the option of a server that is stopped and started again, or started late; see [FreePort].
func OnPort(port int) NATSOption { return func(o *server.Options) { o.Port = port } }

// StartNATS runs a real NATS server with JetStream inside the test's process, on a random port of the
// loopback interface, with its files in the test's temporary directory. It stops with the test.
func StartNATS(t testing.TB, options ...NATSOption) *server.Server {
	t.Helper()
	o := &server.Options{
		Host:      "127.0.0.1",
		Port:      server.RANDOM_PORT,
		JetStream: true,
		StoreDir:  t.TempDir(),
		NoLog:     true,
		NoSigs:    true,
	}
	for _, option := range options {
		option(o)
	}
	s, err := server.NewServer(o)
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() { StopNATS(s) })
	require.True(t, s.ReadyForConnections(natsStart), "the NATS server did not start")
	return s
}

// StopNATS stops a server before its test ends, as a crash of the server's machine would, and waits for
// it to be gone. Stopping twice does nothing.
func StopNATS(s *server.Server) {
	s.Shutdown()
	s.WaitForShutdown()
}

// ConnectNATS connects to a server; the connection closes with the test.
func ConnectNATS(t testing.TB, s *server.Server, options ...nats.Option) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(s.ClientURL(), append([]nats.Option{nats.Timeout(natsStart)}, options...)...)
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	return nc
}
