package run

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"sync/atomic"

	"github.com/nats-io/nats.go"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/envelope"
	"github.com/foldline/foldline/objstore"
)

// DevOptions are the settings that only a development line has.
type DevOptions struct {
	Data DataDir
	// Port of the embedded NATS server; 0 means DefaultPort when it is free, else any.
	Port int
}

// Line is a development line that takes writes.
type Line struct {
	// URL is where its NATS server listens.
	URL string
	// Conn is a connection of the job's own.
	Conn     *nats.Conn
	Subjects envelope.Subjects

	store                  objstore.Store
	rows, folds, publishes atomic.Int64
}

// Counts is what the folder of a line has done since it started.
type Counts struct {
	// Rows have been in folds that were ready to be committed, Folds is their number, Publishes how many were published.
	Rows, Folds, Publishes int64
}

// Resolve reads the current heads.
func (l *Line) Resolve(ctx context.Context) (*heads.Snapshot, error) {
	return heads.Resolve(ctx, l.store, graphRoot)
}

// Counts is what the folder has done so far.
func (l *Line) Counts() Counts {
	return Counts{Rows: l.rows.Load(), Folds: l.folds.Load(), Publishes: l.publishes.Load()}
}

// Published returns a channel that holds a token whenever a publish was announced after the last receive.
func Published(nc *nats.Conn, subjects envelope.Subjects) (<-chan struct{}, error) {
	wake := make(chan struct{}, 1)
	_, err := nc.Subscribe(subjects.Published(), func(*nats.Msg) {
		select {
		case wake <- struct{}{}:
		default:
		}
	})
	return wake, err
}

// Dev runs the whole line in this process on one directory, and in it the job, which begins when writes are taken. The
// line stops when the job returns or the context ends; the job's error is returned.
func Dev(ctx context.Context, cfg Config, o DevOptions, deps Deps, job func(context.Context, *Line) error) (err error) {
	unlock, err := o.Data.lock()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if cfg.Root == "" {
		cfg.Root = o.Data.Graph()
	}
	if cfg.WAL.Dir == "" {
		cfg.WAL.Dir = o.Data.WAL()
	}
	if cfg.Fold.IndexDir == "" {
		cfg.Fold.IndexDir = o.Data.Index()
	}
	web, err := listen(ctx, cfg.HTTP.Listen, deps.Telemetry.Logger)
	if err != nil {
		return err
	}
	defer web.close()
	server, err := startServer(ctx, o.Data.NATS(), o.Port, deps.Telemetry.Logger)
	if err != nil {
		return err
	}
	defer func() {
		server.Shutdown()
		server.WaitForShutdown()
	}()
	cfg.NATS = NATS{URL: server.ClientURL()}
	if err := o.Data.setServerURL(cfg.NATS.URL); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	return runLine(ctx, cfg, deps, web, job)
}

func runLine(ctx context.Context, cfg Config, deps Deps, web endpoint, job func(context.Context, *Line) error) (err error) {
	line := &Line{URL: cfg.NATS.URL}
	deps.Prepared = func(rows int) {
		line.rows.Add(int64(rows))
		line.folds.Add(1)
	}
	deps.Published = func() { line.publishes.Add(1) }
	folding, err := open(ctx, cfg, deps, "foldline-folder")
	if err != nil {
		return err
	}
	defer folding.close()
	f := &folder{parts: folding}
	defer func() { err = errors.Join(err, f.close()) }()
	if err := f.start(ctx); err != nil {
		return err
	}
	lanes := &lanes{open: func(ctx context.Context, _ bool) (laneSet, error) { return openLanes(ctx, cfg, deps) }}
	if line.Conn, err = Connect(cfg.NATS, "foldline-dev", folding.log); err != nil {
		return err
	}
	defer line.Conn.Close()
	line.Subjects, line.store = folding.subjects, folding.store

	s := newStage(ctx)
	s.run("http endpoint", func(ctx context.Context) error {
		return web.serve(ctx, deps.Telemetry.Handler(), lanes.ready)
	})
	s.run("ingesters", func(ctx context.Context) error {
		if err := lanes.start(ctx); err != nil {
			return err
		}
		return lanes.run(ctx)
	})
	s.run("folder", func(ctx context.Context) error {
		// A lane may wait for the end of a change of the lane count, which the folder makes.
		if changing := f.known.Load().LaneTarget > 0; changing {
			return f.run(ctx)
		}
		if err := lanes.wait(ctx); err != nil {
			return err
		}
		return f.run(ctx)
	})
	s.run("job", func(ctx context.Context) error {
		if err := lanes.wait(ctx); err != nil {
			return err
		}
		return job(ctx, line)
	})
	return errors.Join(s.wait(), lanes.close())
}

// openLanes opens one ingester for each lane of the graph, each with a connection and a log of its own, as if they were on machines apart.
func openLanes(ctx context.Context, cfg Config, deps Deps) (set laneSet, err error) {
	root := cfg.WAL.Dir
	for count := uint32(1); cfg.Lane < count; cfg.Lane++ {
		cfg.WAL.Dir = filepath.Join(root, strconv.FormatUint(uint64(cfg.Lane), 10))
		one, err := openLane(ctx, cfg, deps, false)
		if err != nil {
			return nil, errors.Join(err, set.close())
		}
		if len(one) == 0 {
			break // a change of the lane count has ended meanwhile
		}
		set, count = append(set, one...), one[0].graph.LaneCount
	}
	return set, nil
}
