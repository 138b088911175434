package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

const (
	// DefaultPort is the port of the embedded NATS server when nothing else listens there.
	DefaultPort = 4222
	serverHost  = "127.0.0.1"
	// serverStartLimit is how long an embedded server may take until it accepts connections.
	serverStartLimit = time.Minute
	serverStartPoll  = 50 * time.Millisecond
	// maxPayloadBytes is what one message may carry; it bounds an entry.
	maxPayloadBytes = 1 << 20
)

// ErrUnreachable says that no NATS server answers at the address; start one, or name another with --nats-url.
var ErrUnreachable = errors.New("run: NATS is unreachable")

// startServer starts a NATS server with JetStream that keeps its files in dir and listens on the loopback interface
// only. Port 0 is DefaultPort, or any free port when that one is taken.
func startServer(ctx context.Context, dir string, port int, log *slog.Logger) (*server.Server, error) {
	if port != 0 {
		return serverOn(ctx, dir, port, log)
	}
	s, err := serverOn(ctx, dir, DefaultPort, log)
	if errors.Is(err, errNoListen) {
		return serverOn(ctx, dir, server.RANDOM_PORT, log)
	}
	return s, err
}

// errNoListen says that a server has given up while it started.
var errNoListen = errors.New("is the port taken? choose another with --port")

func serverOn(ctx context.Context, dir string, port int, log *slog.Logger) (*server.Server, error) {
	s, err := server.NewServer(&server.Options{
		ServerName: "foldline-dev", Host: serverHost, Port: port, DontListen: false,
		JetStream: true, StoreDir: dir, MaxPayload: maxPayloadBytes, NoSigs: true,
	})
	if err != nil {
		return nil, fmt.Errorf("embedded NATS server: %w", err)
	}
	own := &serverLog{log: log, gaveUp: make(chan string, 1)}
	s.SetLoggerV2(own, false, false, false)
	go s.Start()
	if err = awaitServer(ctx, s, own.gaveUp); err == nil {
		own.running.Store(true)
		return s, nil
	}
	s.Shutdown()
	s.WaitForShutdown()
	return nil, fmt.Errorf("embedded NATS server on %s:%d: %w", serverHost, port, err)
}

// awaitServer returns when a server accepts connections, or has said why it never will.
func awaitServer(ctx context.Context, s *server.Server, gaveUp <-chan string) error {
	for began := time.Now(); time.Since(began) < serverStartLimit && ctx.Err() == nil; {
		if s.ReadyForConnections(serverStartPoll) {
			return nil
		}
		select {
		case reason := <-gaveUp:
			return fmt.Errorf("%s (%w)", reason, errNoListen)
		default:
		}
	}
	return errors.Join(ctx.Err(), fmt.Errorf("it does not listen after %s", serverStartLimit))
}

// Connect opens a connection that outlives restarts of the server.
func Connect(c NATS, name string, log *slog.Logger, options ...nats.Option) (*nats.Conn, error) {
	if c.URL == "" {
		return nil, fmt.Errorf("%w: nats.url: is required", ErrSettings)
	}
	options = append([]nats.Option{
		nats.Name(name), nats.MaxReconnects(-1), nats.ReconnectWait(100 * time.Millisecond),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				log.Warn("nats disconnected", "connection", name, "error", err)
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) { log.Info("nats reconnected", "connection", name) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			log.Warn("nats error", "connection", name, "error", err)
		}),
	}, options...)
	if c.Creds != "" {
		options = append(options, nats.UserCredentials(c.Creds))
	}
	nc, err := nats.Connect(c.URL, options...)
	switch {
	case err == nil:
		return nc, nil
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: nats.url, nats.creds: %s: %w", ErrSettings, redactURL(c.URL), err)
	}
	return nil, fmt.Errorf("%w: %s: %w", ErrUnreachable, redactURL(c.URL), err)
}

// serverLog passes the server's own log on; its notices are details to whoever reads ours.
type serverLog struct {
	log *slog.Logger
	// gaveUp is told, once, why the server cannot start.
	gaveUp  chan string
	running atomic.Bool
}

var _ server.Logger = (*serverLog)(nil)

func (l *serverLog) Noticef(format string, v ...any) {
	l.log.Debug("nats server", "message", fmt.Sprintf(format, v...))
}
func (l *serverLog) Warnf(format string, v ...any) {
	l.log.Warn("nats server", "message", fmt.Sprintf(format, v...))
}
func (l *serverLog) Errorf(format string, v ...any) {
	l.log.Error("nats server", "message", fmt.Sprintf(format, v...))
}
func (l *serverLog) Fatalf(format string, v ...any) {
	reason := fmt.Sprintf(format, v...)
	if l.running.Load() {
		l.log.Error("nats server", "message", reason)
		return
	}
	select {
	case l.gaveUp <- reason:
	default:
	}
}
func (l *serverLog) Debugf(format string, v ...any) {}
func (l *serverLog) Tracef(format string, v ...any) {}
