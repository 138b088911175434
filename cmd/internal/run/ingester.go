package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"golang.org/x/sync/errgroup"

	"github.com/foldline/foldline/cmd/internal/lease"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/ingest"
	"github.com/foldline/foldline/publisher"
	"github.com/foldline/foldline/wal"
)

// readyPoll is how often a start waits for the next look at a component that has no event for it.
const readyPoll = 5 * time.Millisecond

// Ingester serves one lane until the context ends: it opens the log, claims the lane's epoch, takes writes and serves
// the log to folders. It needs root, nats.url and wal.dir.
func Ingester(ctx context.Context, cfg Config, deps Deps) error {
	if err := cfg.Require("root", "nats.url", "wal.dir"); err != nil {
		return err
	}
	web, err := listen(ctx, cfg.HTTP.Listen, deps.Telemetry.Logger)
	if err != nil {
		return err
	}
	defer web.close()
	p, err := open(ctx, cfg, deps, "foldline-ingester")
	if err != nil {
		return err
	}
	defer p.close()
	i, err := newIngester(ctx, p)
	if err != nil {
		return err
	}
	s := newStage(ctx)
	s.run("http endpoint", func(ctx context.Context) error {
		return web.serve(ctx, deps.Telemetry.Handler(), i.ready)
	})
	s.run("ingester", i.run)
	return errors.Join(s.wait(), i.close())
}

// ingester is a lane's log and what serves it.
type ingester struct {
	*parts
	wal      *wal.Log
	lease    *lease.Lease
	ingester *ingest.Ingester
}

// newIngester opens the log and claims the lane, so that every sequence it gives is new.
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
		return nil, errors.Join(err, i.close())
	}
	return i, nil
}

// owns is asked before whatever only the lane's owner may do.
func (i *ingester) owns(before string) func() bool {
	return func() bool {
		if i.deps.Step != nil {
			i.deps.Step(before + ".before")
		}
		return i.lease.Held()
	}
}

// takeLease waits until no other log of the lane can be served any more. An earlier owner of this log is not waited for: its directory's
// lock is ours. Without leave to lose entries a lane with another open log is not waited for either; its claim says what is in the way.
func (i *ingester) takeLease(ctx context.Context) error {
	mine := i.wal.Incarnation() + " "
	s, err := heads.Current(ctx, i.store, graphRoot)
	if err != nil {
		return err
	}
	for _, c := range s.Cuts {
		if c.Lane == i.cfg.Lane && c.Open && c.Incarnation != i.wal.Incarnation() && !i.cfg.AcceptLoss {
			return fmt.Errorf("%w: incarnation %q is open, folded through %d", publisher.ErrIncarnation, c.Incarnation, c.Through)
		}
	}
	i.lease, err = lease.Acquire(ctx, i.nc, lease.Options{
		Bucket: "foldline_" + i.cfg.Graph, Key: fmt.Sprintf("lease.lane.%d", i.cfg.Lane), Owner: mine + owner() + " " + ulid.Make().String(), TTL: leaseTTL,
		Gone: func(holder string) bool { return strings.HasPrefix(holder, mine) },
	}, func(holder string) { i.log.Info("standing by", "lane", i.cfg.Lane, "lease_owner", holder) })
	return err
}

func (i *ingester) begin(ctx context.Context) error {
	if err := i.takeLease(ctx); err != nil {
		return fmt.Errorf("lane %d: %w", i.cfg.Lane, err)
	}
	claim := publisher.LaneClaim{Lane: i.cfg.Lane, Incarnation: i.wal.Incarnation(), AcceptLoss: i.cfg.AcceptLoss, Above: i.usedEpoch(ctx)}
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

// wait returns when requests are served.
func (i *ingester) wait(ctx context.Context) error {
	poll := time.NewTicker(readyPoll)
	defer poll.Stop()
	for i.ready(ctx) != nil {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-poll.C:
		}
	}
	return nil
}

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
