package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/foldline/foldline/cmd/internal/run"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/envelope"
	"github.com/foldline/foldline/internal/telemetry"
	"github.com/foldline/foldline/objstore"
)

// root is --root, or the graph of the data directory.
func (e *env) root() string { return cmp.Or(e.cfg.Root, e.data.Graph()) }

// store opens the graph's store. That no graph is there is told by whoever reads it.
func (e *env) store(ctx context.Context) (objstore.Store, error) {
	return run.OpenStore(ctx, e.root())
}

// graph opens the store and reads the heads.
func (e *env) graph(ctx context.Context) (objstore.Store, *heads.Snapshot, error) {
	store, err := e.store(ctx)
	if err != nil {
		return nil, nil, err
	}
	s, err := heads.Resolve(ctx, store, "")
	if err != nil {
		return nil, nil, fmt.Errorf("root %s: %w", e.root(), err)
	}
	return store, s, nil
}

// connect reaches the NATS server of --nats-url, or the one of the line that runs on the data directory.
func (e *env) connect(ctx context.Context) (*nats.Conn, error) {
	t, shutdown, err := e.telemetry(ctx)
	if err != nil {
		return nil, err
	}
	c := e.cfg.NATS
	c.URL = cmp.Or(c.URL, e.data.ServerURL(), nats.DefaultURL)
	nc, err := run.Connect(c, "foldline", t.Logger)
	return nc, errors.Join(err, shutdown(ctx))
}

// dial is connect with the subjects of a graph.
func (e *env) dial(ctx context.Context, graph string) (*nats.Conn, envelope.Subjects, error) {
	subjects, err := envelope.NewSubjects(e.cfg.Prefix, graph)
	if err != nil {
		return nil, subjects, err
	}
	nc, err := e.connect(ctx)
	return nc, subjects, err
}

// telemetry of the tool: warnings only, unless the settings ask for more.
func (e *env) telemetry(ctx context.Context) (*telemetry.Telemetry, func(context.Context) error, error) {
	return telemetry.Setup(ctx, telemetry.Options{
		Service: "foldline", Version: version(), LogLevel: cmp.Or(e.cfg.Log.Level, "warn"), LogFormat: e.cfg.Log.Format,
		LogOutput: e.stderr, OTLPEndpoint: e.cfg.OTLP.Endpoint,
	})
}
