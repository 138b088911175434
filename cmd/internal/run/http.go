package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// endpoint serves /metrics, /healthz (the process answers) and /readyz (it can do its work) until the context ends.
// An empty address serves nothing.
func endpoint(ctx context.Context, address string, metrics http.Handler, ready func(context.Context) error, log *slog.Logger) error {
	if address == "" {
		<-ctx.Done()
		return nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("http.listen: %w", err)
	}
	log.Info("http endpoint", "address", listener.Addr().String())
	server := &http.Server{Handler: routes(metrics, ready), ReadHeaderTimeout: 5 * time.Second}
	stopped := make(chan error, 1)
	go func() { stopped <- server.Serve(listener) }()
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
