package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/oklog/ulid/v2"
	"golang.org/x/sync/errgroup"

	"github.com/foldline/foldline/cmd/internal/lease"
	"github.com/foldline/foldline/internal/ingest"
	"github.com/foldline/foldline/publisher"
	"github.com/foldline/foldline/wal"
)

// Ingester serves one lane until the context ends: it opens the log, claims the lane's epoch, takes writes and serves
// the log to folders. When the lane count has been changed it goes on with a new log, or ends when its lane is no more. It needs root, nats.url and wal.dir.
func Ingester(ctx context.Context, cfg Config, deps Deps) error {
	if err := cfg.Require("root", "nats.url", "wal.dir"); err != nil {
		return err
	}
	web, err := listen(ctx, cfg.HTTP.Listen, deps.Telemetry.Logger)
	if err != nil {
		return err
	}
	defer web.close()
	lanes := &lanes{open: func(ctx context.Context, changed bool) (laneSet, error) { return openLane(ctx, cfg, deps, changed) }}
	if err := lanes.start(ctx); err != nil {
		return err
	}
	s := newStage(ctx)
	s.run("http endpoint", func(ctx context.Context) error {
		return web.serve(ctx, deps.Telemetry.Handler(), lanes.ready)
	})
	s.run("ingester", lanes.run)
	return errors.Join(s.wait(), lanes.close())
}

// ingester is a lane's log and what serves it.
type ingester struct {
	*parts
	wal      *wal.Log
	lease    *lease.Lease
	ingester *ingest.Ingester
}

// newIngester opens the log and claims the lane, so that every sequence it gives is new. ingest.ErrLanesChanged when a change of the lane count came between.
func newIngester(ctx context.Context, p *parts) (*ingester, error) {
	i := &ingester{parts: p}
	options := wal.Options{
		Dir: p.cfg.WAL.Dir, Graph: p.cfg.Graph, Lane: p.cfg.Lane, MaxBytes: int64(p.cfg.WAL.MaxBytes),
		MinFreeBytes: cmp.Or(int64(p.cfg.WAL.MinFreeBytes), -1),
		DedupeWindow: p.cfg.Dedupe.Window, DedupeMax: p.cfg.Dedupe.Max, AcceptLoss: p.cfg.AcceptLoss,
		Logger: p.log, Meter: p.deps.Telemetry.Meter("wal"), Clock: p.deps.Clock, Owns: i.owns("serve"),
	}
	log, err := wal.Open(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("wal %s: %w", p.cfg.WAL.Dir, err)
	}
	i.wal = log
	if err := i.checkLoss(ctx, options); err != nil {
		return nil, errors.Join(fmt.Errorf("lane %d: %w", p.cfg.Lane, err), i.close())
	}
	if err := i.begin(ctx); err != nil {
		return nil, errors.Join(i.orChanged(ctx, err), i.close())
	}
	return i, nil
}

// owns is asked before whatever only the lane's owner may do.
func (i *ingester) owns(before string) func() bool {
	return func() bool {
		i.step(before + ".before")
		return i.lease.Held()
	}
}

// takeLease waits until no other log of the lane can be served any more. An earlier owner of this log is not waited for: its directory's
// lock is ours. A lane that cannot be claimed is not waited for either; the error says what is in the way.
func (i *ingester) takeLease(ctx context.Context, claim publisher.LaneClaim) error {
	mine := i.wal.Incarnation() + " "
	err := i.awaitChange(ctx, claim)
	if err != nil {
		return err
	}
	i.lease, err = lease.Acquire(ctx, i.nc, lease.Options{
		Bucket: "foldline_" + i.cfg.Graph, Key: fmt.Sprintf("lease.lane.%d", i.cfg.Lane), Owner: mine + owner() + " " + ulid.Make().String(), TTL: leaseTTL,
		Gone: func(holder string) bool { return strings.HasPrefix(holder, mine) },
	}, func(holder string) { i.log.Info("standing by", "lane", i.cfg.Lane, "lease_owner", holder) })
	return err
}

func (i *ingester) begin(ctx context.Context) error {
	claim := publisher.LaneClaim{Lane: i.cfg.Lane, Incarnation: i.wal.Incarnation(), AcceptLoss: i.cfg.AcceptLoss, Above: i.usedEpoch(ctx)}
	if err := i.takeLease(ctx, claim); err != nil {
		return fmt.Errorf("lane %d: %w", claim.Lane, err)
	}
	epoch, err := publisher.ClaimLane(ctx, i.publisherOptions(), claim)
	if err != nil {
		return fmt.Errorf("lane %d: %w", claim.Lane, err)
	}
	i.log.Info("lane epoch claimed", "lane", claim.Lane, "incarnation", claim.Incarnation, "epoch", epoch)
	if err := i.inherit(ctx); err != nil {
		return fmt.Errorf("lane %d: %w", claim.Lane, err)
	}
	if err := i.wal.Begin(wal.Epoch(epoch)); err != nil {
		return fmt.Errorf("lane %d: %w", claim.Lane, err)
	}
	i.ingester, err = ingest.New(ingest.Options{
		Conn: i.nc, Log: steppedLog{i.wal, i.deps.Step}, Store: i.store, Root: graphRoot,
		Graph: i.cfg.Graph, Prefix: i.cfg.Prefix, Lane: i.cfg.Lane,
		MaxInFlightBytes: int64(i.cfg.Ingest.MaxBytes), Limits: i.cfg.Ingest.Limits.rows(), Logger: i.log, Clock: i.deps.Clock,
		Meter: i.deps.Telemetry.Meter("ingest"), Tracer: i.deps.Telemetry.Tracer("ingest"), Owns: i.owns("ack"),
		Seal: func(ctx context.Context, end wal.Seq) error {
			seal := publisher.LaneSeal{Lane: claim.Lane, Incarnation: claim.Incarnation, Epoch: epoch, End: uint64(end)}
			err := publisher.SealLane(ctx, i.publisherOptions(), seal)
			if errors.Is(err, publisher.ErrFenced) {
				return fmt.Errorf("%w: %w", ingest.ErrFenced, err)
			}
			return err
		},
	})
	return err
}

// run serves until the context ends, then stops in the order of the flow: intake first, and the log only when nothing
// waits for it any more.
func (i *ingester) run(ctx context.Context) error {
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	intake, stopIntake := context.WithCancel(ctx)
	defer stopIntake()
	var g errgroup.Group
	below := func(f func() error) {
		g.Go(func() error {
			// Without its log an ingester takes nothing.
			defer stopIntake()
			return f()
		})
	}
	below(func() error { return i.lease.Keep(serving) })
	below(func() error { return i.wal.Run(serving) })
	below(func() error {
		return wal.Serve(serving, i.nc, wal.ReadSubjects{Read: i.subjects.LaneRead(i.cfg.Lane), Status: i.subjects.LaneStatus(i.cfg.Lane)}, i.wal)
	})
	err := i.ingester.Run(intake)
	stop()
	return errors.Join(err, g.Wait())
}

func (i *ingester) ready(context.Context) error { return i.ingester.Ready() } //nolint:contextcheck // it asks no one

// close ends the log and gives the lane up.
func (i *ingester) close() error {
	err := i.wal.Close()
	if i.lease == nil {
		return err
	}
	release, cancel := context.WithTimeout(context.Background(), leaseTTL)
	defer cancel()
	return errors.Join(err, i.lease.Release(release))
}

// steppedLog marks the points before an append and around a release.
type steppedLog struct {
	*wal.Log
	step func(string)
}

func (l steppedLog) AppendAll(ctx context.Context, entries []wal.Entry, done func(first int, results []wal.Result)) (int, error) {
	if l.step != nil {
		l.step("append.before")
	}
	return l.Log.AppendAll(ctx, entries, done)
}

func (l steppedLog) Release(ctx context.Context, through wal.Seq) error {
	if l.step == nil {
		return l.Log.Release(ctx, through)
	}
	l.step("release.before")
	err := l.Log.Release(ctx, through)
	l.step("release.after")
	return err
}
