package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/foldline/foldline/cmd/internal/lease"
	"github.com/foldline/foldline/fold"
	"github.com/foldline/foldline/fold/keyindex"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/envelope"
	"github.com/foldline/foldline/publisher"
	"github.com/foldline/foldline/wal"
)

// leaseTTL is how long a silent folder is waited for; a standby takes over after it.
const leaseTTL = 3 * time.Second

// Folder folds the graph's lanes until the context ends: it waits for the folder's lease, claims the folder epoch,
// creates the tables of the settings, and publishes. It needs root, nats.url, and JetStream for the lease.
func Folder(ctx context.Context, cfg Config, deps Deps) error {
	if err := cfg.Require("root", "nats.url"); err != nil {
		return err
	}
	web, err := listen(ctx, cfg.HTTP.Listen, deps.Telemetry.Logger)
	if err != nil {
		return err
	}
	defer web.close()
	p, err := open(ctx, cfg, deps, "foldline-folder")
	if err != nil {
		return err
	}
	defer p.close()
	f := &folder{parts: p}
	s := newStage(ctx)
	s.run("http endpoint", func(ctx context.Context) error {
		return web.serve(ctx, deps.Telemetry.Handler(), f.ready)
	})
	if deps.Unleased {
		s.run("folder", f.runUnleased)
	} else {
		s.run("folder", f.runUnderLease)
	}
	return s.wait()
}

// folder is a fold.Folder with what it needs around it.
type folder struct {
	*parts
	folder atomic.Pointer[fold.Folder] // nil while it stands by
	index  *keyindex.Index             // nil without a directory for it
	// standby keeps the index warm until this process is the folder; nil when it never had to wait, or has no index.
	standby *standby
	// known is the newest graph commit that was announced, publishedAt when the last one was made here; nil before the first.
	known       atomic.Pointer[heads.Snapshot]
	publishedAt atomic.Pointer[time.Time]
}

// runUnderLease is a standby until the lease comes, and then the folder until the lease goes.
func (f *folder) runUnderLease(ctx context.Context) error {
	held, err := lease.Acquire(ctx, f.nc, lease.Options{
		Bucket: "foldline_" + f.cfg.Graph, Key: "lease.folder", Owner: owner() + " " + ulid.Make().String(), TTL: cmp.Or(f.deps.FolderLease, leaseTTL),
	}, func(holder string) {
		f.log.Info("standing by", "lease_owner", holder)
		f.standby = f.standBy(ctx)
	})
	if err != nil {
		return errors.Join(err, f.close())
	}
	f.standby.retire()
	s := newStage(ctx)
	s.run("lease", held.Hold)
	s.run("fold", func(ctx context.Context) error {
		if err := f.start(ctx); err != nil {
			return err
		}
		return f.run(ctx)
	})
	err = errors.Join(s.wait(), f.close())
	release, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaseTTL)
	defer cancel()
	return errors.Join(err, held.Release(release))
}

func (f *folder) runUnleased(ctx context.Context) error {
	err := f.start(ctx)
	if err == nil {
		err = f.run(ctx)
	}
	return errors.Join(err, f.close())
}

// start claims the graph before it returns, so that its tables exist when an ingester looks.
func (f *folder) start(ctx context.Context) error {
	if err := f.openIndex(); err != nil { // before the claim, which may have to find rows
		return fmt.Errorf("folder: %w", err)
	}
	first, err := f.claim(ctx)
	if err != nil {
		return err
	}
	folder, err := fold.New(fold.Options{
		Publisher: first, Reclaim: f.claim, Store: f.store, Root: graphRoot, Lanes: f.lane, Index: f.index, Opened: f.standby.tables(),
		Interval: f.cfg.Fold.Interval, AdoptInterval: f.cfg.Fold.AdoptInterval, SuspendAfter: f.cfg.Suspend.After, MaxRows: int(f.cfg.Fold.MaxRows), MaxBytes: int64(f.cfg.Fold.MaxBytes),
		Compact: f.cfg.Compact.fold(),
		Notify:  f.notify, Decode: decodeLetters, Logger: f.log, Clock: f.deps.Clock, Step: f.foldStep(),
		Meter: f.deps.Telemetry.Meter("fold"), Tracer: f.deps.Telemetry.Tracer("fold"),
	})
	if err != nil {
		return fmt.Errorf("folder: %w", err)
	}
	f.folder.Store(folder)
	return nil
}

// run folds, and answers operators and cleans up meanwhile.
func (f *folder) run(ctx context.Context) error {
	cleaner, err := publisher.NewCleaner(f.publisherOptions(), publisher.CleanOptions{OlderThan: f.cfg.Cleanup.OlderThan})
	if err != nil {
		return fmt.Errorf("folder: %w", err)
	}
	s := newStage(ctx)
	s.run("fold", f.folder.Load().Run)
	s.run("administration", f.serveAdmin)
	if every := f.cfg.Cleanup.Interval; every > 0 {
		s.run("cleanup", func(ctx context.Context) error { return cleaner.Run(ctx, every) })
	}
	return s.wait()
}

// close ends the key index, once nothing folds or follows any more.
func (f *folder) close() error {
	f.standby.wait()
	if f.index == nil {
		return nil
	}
	err := f.index.Close()
	f.index = nil
	return err
}

// ready holds for the active folder and for a standby alike, as long as the graph can be read, and for the active one as long as it gets round.
func (f *folder) ready(ctx context.Context) error {
	if _, err := heads.Current(ctx, f.store, graphRoot); err != nil {
		return err
	}
	if folder := f.folder.Load(); folder != nil {
		return folder.Ready()
	}
	return nil
}

// owner names this process to people.
func owner() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s:%d", host, os.Getpid())
}

// claim makes this process the owner and brings the tables of the settings into being.
func (f *folder) claim(ctx context.Context) (fold.Publisher, error) {
	o := f.publisherOptions()
	if f.index != nil {
		o.Keys = f.index
	}
	pub, err := publisher.Claim(ctx, o, owner())
	if err != nil {
		return nil, fmt.Errorf("folder: claim: %w", err)
	}
	f.log.Info("folder epoch claimed", "epoch", pub.Epoch())
	if r := pub.Recovered(); r != nil {
		f.log.Info("recorded fold completed", "fold", r.Snapshot.Fold, "rejects", r.Rejects)
	}
	for _, t := range f.cfg.Tables {
		if err := t.ensure(ctx, pub); err != nil {
			return nil, fmt.Errorf("table %s: %w", t.Table, err)
		}
	}
	if err := setReferences(ctx, pub, f.cfg.Tables); err != nil {
		return nil, fmt.Errorf("folder: %w", err)
	}
	snapshot, err := pub.Refresh(ctx)
	if err != nil {
		return nil, fmt.Errorf("folder: claim: %w", err)
	}
	f.announce(snapshot)
	return countingPublisher{pub, f.deps}, nil
}

// ensure creates the table, or enrols the one of another engine.
func (t Table) ensure(ctx context.Context, pub *publisher.Publisher) error {
	if t.Path == "" {
		_, err := pub.CreateTable(ctx, t.spec())
		return err
	}
	spec := publisher.EnrolSpec{Path: t.Path, TableSpec: t.spec()}
	spec.PrimaryKey = t.Key // none given: whatever the table has
	_, err := pub.EnrolTable(ctx, spec)
	return err
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

func (f *folder) notify(_ context.Context, p *publisher.Published) {
	now := f.deps.Clock()
	f.publishedAt.Store(&now)
	f.announce(p.Snapshot)
}

// announce sends the published event. It is a hint: whoever misses it finds the same in the heads.
func (f *folder) announce(s *heads.Snapshot) {
	f.known.Store(s)
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
