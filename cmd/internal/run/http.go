package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"
)

// ErrAddressInUse says that another process listens where this one should; stop it or choose another address.
var ErrAddressInUse = errors.New("run: address in use")

// endpoint is the listener of /metrics, /healthz (the process answers) and /readyz (it can do its work).
type endpoint struct {
	listener net.Listener // nil when nothing is to be served
	log      *slog.Logger
}

// listen takes the address before anything is opened or claimed: a process that cannot be watched should not start to work.
// An empty address serves nothing.
func listen(ctx context.Context, address string, log *slog.Logger) (endpoint, error) {
	if address == "" {
		return endpoint{log: log}, nil
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return endpoint{}, fmt.Errorf("%w: http.listen: %w", ErrAddressInUse, err)
	case err != nil:
		return endpoint{}, fmt.Errorf("%w: http.listen: %w", ErrSettings, err)
	}
	log.Info("http endpoint", "address", l.Addr().String())
	return endpoint{listener: l, log: log}, nil
}

// close gives the address back when serve was never called; after serve it does nothing.
func (e endpoint) close() {
	if e.listener != nil {
		_ = e.listener.Close()
	}
}

// serve answers until the context ends.
func (e endpoint) serve(ctx context.Context, metrics http.Handler, ready func(context.Context) error) error {
	if e.listener == nil {
		<-ctx.Done()
		return nil
	}
	server := &http.Server{Handler: routes(metrics, ready), ReadHeaderTimeout: 5 * time.Second}
	stopped := make(chan error, 1)
	go func() { stopped <- server.Serve(e.listener) }()
	select {
	case err := <-stopped:
		return fmt.Errorf("http endpoint: %w", err)
	case <-ctx.Done():
	}
	down, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := server.Shutdown(down); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("http endpoint: %w", err)
	}
	return errors.Join(server.Close())
}

func routes(metrics http.Handler, ready func(context.Context) error) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
		defer cancel()
		if err := ready(ctx); err != nil {
			http.Error(w, "not ready: "+err.Error(), http.StatusServiceUnavailable)
			return
		}
		answer(w, "ready")
	})
	return mux
}

// answer leaves errors alone: the client has gone.
func answer(w http.ResponseWriter, text string) { _, _ = fmt.Fprintln(w, text) }
