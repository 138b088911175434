package run

import (
	"context"
	"fmt"
	"os"

	"github.com/foldline/foldline/fold"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/envelope"
	"github.com/foldline/foldline/publisher"
	"github.com/foldline/foldline/wal"
)

// Folder folds the graph's lanes until the context ends: it claims the folder epoch, creates the tables of the
// settings, and publishes. It needs root and nats.url.
func Folder(ctx context.Context, cfg Config, deps Deps) error {
	if err := cfg.Require("root", "nats.url"); err != nil {
		return err
	}
	p, err := open(ctx, cfg, deps, "foldline-folder")
	if err != nil {
		return err
	}
	defer p.close()
	f, err := newFolder(ctx, p)
	if err != nil {
		return err
	}
	s := newStage(ctx)
	s.run("http endpoint", func(ctx context.Context) error {
		return endpoint(ctx, cfg.HTTP.Listen, p.deps.Telemetry.Handler(), f.ready, p.log)
	})
	s.run("folder", f.run)
	return s.wait()
}

// folder is a fold.Folder with what it needs around it.
type folder struct {
	*parts
	folder *fold.Folder
}

// newFolder claims the graph before it returns, so that its tables exist when an ingester looks.
func newFolder(ctx context.Context, p *parts) (*folder, error) {
	f := &folder{parts: p}
	first, err := f.claim(ctx)
	if err != nil {
		return nil, err
	}
	f.folder, err = fold.New(fold.Options{
		Publisher: first, Reclaim: f.claim, Store: p.store, Root: graphRoot, Lanes: f.lane,
		Interval: p.cfg.Fold.Interval, MaxRows: int(p.cfg.Fold.MaxRows), MaxBytes: int64(p.cfg.Fold.MaxBytes),
		Notify: f.notify, Logger: p.log, Clock: p.deps.Clock, Step: p.foldStep(),
		Meter: p.deps.Telemetry.Meter("fold"), Tracer: p.deps.Telemetry.Tracer("fold"),
	})
	if err != nil {
		return nil, fmt.Errorf("folder: %w", err)
	}
	return f, nil
}

func (f *folder) run(ctx context.Context) error { return f.folder.Run(ctx) }

// ready holds as long as the graph can be read; Run ends the process when it cannot be folded.
func (f *folder) ready(ctx context.Context) error {
	_, err := heads.Current(ctx, f.store, graphRoot)
	return err
}

// claim makes this process the owner and brings the tables of the settings into being.
func (f *folder) claim(ctx context.Context) (fold.Publisher, error) {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	pub, err := publisher.Claim(ctx, f.publisherOptions(), fmt.Sprintf("%s:%d", host, os.Getpid()))
	if err != nil {
		return nil, fmt.Errorf("folder: claim: %w", err)
	}
	f.log.Info("folder epoch claimed", "epoch", pub.Epoch())
	if r := pub.Recovered(); r != nil {
		f.log.Info("recorded fold completed", "fold", r.Snapshot.Fold, "rejects", r.Rejects)
	}
	for _, t := range f.cfg.Tables {
		if _, err := pub.CreateTable(ctx, t.spec()); err != nil {
			return nil, fmt.Errorf("table %s: %w", t.Table, err)
		}
	}
	snapshot, err := pub.Refresh(ctx)
	if err != nil {
		return nil, fmt.Errorf("folder: claim: %w", err)
	}
	f.announce(snapshot)
	return countingPublisher{pub, f.deps}, nil
}

func (t Table) spec() publisher.TableSpec {
	s := publisher.TableSpec{
		Key: t.Table, PrimaryKey: t.KeyColumns(), LaneColumns: t.LaneColumns, Order: t.Order, UnknownFields: t.UnknownFields,
	}
	for _, c := range t.Columns {
		s.Columns = append(s.Columns, heads.Column{Name: c.Name, Type: c.Type, Nullable: c.Nullable})
	}
	return s
}

func (f *folder) lane(lane uint32) wal.Source {
	return wal.NewRemote(f.nc, wal.ReadSubjects{Read: f.subjects.LaneRead(lane), Status: f.subjects.LaneStatus(lane)}, wal.RemoteOptions{})
}

func (f *folder) notify(_ context.Context, p *publisher.Published) { f.announce(p.Snapshot) }

// announce sends the published event. It is a hint: whoever misses it finds the same in the heads.
func (f *folder) announce(s *heads.Snapshot) {
	event := envelope.Event{Graph: s.Graph, Commit: s.Commit.ID, Version: s.Version, Fold: s.Fold}
	for _, c := range s.Cuts {
		event.Cuts = append(event.Cuts, envelope.EventCut{Lane: c.Lane, Incarnation: c.Incarnation, Through: c.Through})
	}
	if err := f.nc.Publish(f.subjects.Published(), event.Encode()); err != nil {
		f.log.Warn("published event not sent", "version", s.Version, "error", err)
	}
}

// countingPublisher tells of each fold that is ready to be committed, and of its publish.
type countingPublisher struct {
	fold.Publisher
	deps Deps
}

func (c countingPublisher) Publish(ctx context.Context, p *publisher.Prepared) (*publisher.Published, error) {
	if c.deps.Prepared != nil {
		c.deps.Prepared(p.Rows)
	}
	published, err := c.Publisher.Publish(ctx, p)
	if err == nil && c.deps.Published != nil {
		c.deps.Published()
	}
	return published, err
}
