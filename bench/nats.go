package bench

import (
	"errors"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// startLimit is how long a server may take to listen.
const startLimit = 20 * time.Second

// startNATS starts a server on a free port of the loopback interface. With
// syncAlways its JetStream syncs each message, as an honest ack needs.
func startNATS(dir string, syncAlways bool) (*server.Server, error) {
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: dir, SyncAlways: syncAlways,
		NoLog: true, NoSigs: true,
	})
	if err != nil {
		return nil, err
	}
	s.Start()
	if !s.ReadyForConnections(startLimit) {
		s.Shutdown()
		s.WaitForShutdown()
		return nil, errors.New("bench: the NATS server does not listen")
	}
	return s, nil
}

func stopNATS(s *server.Server) {
	s.Shutdown()
	s.WaitForShutdown()
}

func connect(s *server.Server) (*nats.Conn, error) {
	return nats.Connect(s.ClientURL(), nats.Timeout(startLimit))
}
