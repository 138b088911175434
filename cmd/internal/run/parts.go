package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/envelope"
	"github.com/foldline/foldline/internal/telemetry"
	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/publisher"
)

const (
	// graphRoot is the graph's place in the store, which is opened at the root itself.
	graphRoot = ""
	// probePrefix is where the store's conditional put is tried out.
	probePrefix = "_foldline/probe/"
	// stopLimit bounds an orderly stop; what is not done by then is abandoned, as a crash would.
	stopLimit = 15 * time.Second
)

// ErrStopLimit says that an orderly stop took too long and was cut short. Nothing acknowledged is lost.
var ErrStopLimit = errors.New("run: stopped without waiting any longer")

// Deps are the components that a process is given.
type Deps struct {
	// Telemetry is required.
	Telemetry *telemetry.Telemetry
	// Clock defaults to time.Now.
	Clock func() time.Time
	// Step is called at the named points of the protocol (publisher.Step, "fold.cut", "fold.prepared", "release.before", …),
	// from several goroutines. A test kills the process in it. Nil means none.
	Step func(step string)
	// Unleased lets a folder claim without the lease, as one does that holds it by mistake: the epochs alone are left to fence it. For tests.
	Unleased bool
	// FolderLease replaces the time to live of the folder's lease, for tests on machines that stand still for seconds. 0 is leaseTTL.
	FolderLease time.Duration
	// Prepared is told the rows of each fold that is ready to be committed, Published that it is. Nil means nobody is told.
	Prepared  func(rows int)
	Published func()
}

// parts are what every process of the line opens.
type parts struct {
	cfg      Config
	deps     Deps
	log      *slog.Logger
	store    objstore.Store
	nc       *nats.Conn
	subjects envelope.Subjects
	graph    *heads.Snapshot // as it was found
}

// open opens the store, checks that its conditional put can be trusted, connects to NATS, and finds or makes the graph.
func open(ctx context.Context, cfg Config, deps Deps, name string) (*parts, error) {
	if deps.Clock == nil {
		deps.Clock = time.Now
	}
	p := &parts{cfg: cfg, deps: deps, log: deps.Telemetry.Logger}
	var err error
	if p.subjects, err = envelope.NewSubjects(cfg.Prefix, cfg.Graph); err != nil {
		return nil, err
	}
	if p.store, err = OpenStore(ctx, cfg.Root); err != nil {
		return nil, err
	}
	if err := objstore.Probe(ctx, p.store, probePrefix); err != nil {
		return nil, fmt.Errorf("root %s: %w", redactURL(cfg.Root), err)
	}
	if p.graph, err = publisher.Init(ctx, p.publisherOptions(), publisher.InitSpec{Graph: cfg.Graph, Lanes: cfg.Lanes}); err != nil {
		return nil, fmt.Errorf("root %s: %w", redactURL(cfg.Root), err)
	}
	if p.graph.LaneCount != cfg.Lanes {
		p.log.Info("the lane count of the graph was changed since it was made", "lanes", p.graph.LaneCount, "setting", cfg.Lanes)
	}
	if p.nc, err = Connect(cfg.NATS, name, p.log); err != nil {
		return nil, err
	}
	return p, nil
}

// step tells of a named point of the protocol.
func (p *parts) step(name string) {
	if p.deps.Step != nil {
		p.deps.Step(name)
	}
}

func (p *parts) close() { p.nc.Close() }

func (p *parts) publisherOptions() publisher.Options {
	o := publisher.Options{
		Store: p.store, Root: graphRoot, Logger: p.log, Clock: p.deps.Clock, SuspendAfter: p.cfg.Suspend.After, Retention: p.cfg.Retention.publisher(),
		Meter: p.deps.Telemetry.Meter("publisher"), Tracer: p.deps.Telemetry.Tracer("publisher"),
	}
	if step := p.deps.Step; step != nil {
		o.Step = func(s publisher.Step) { step(string(s)) }
	}
	return o
}

func (p *parts) foldStep() func(string) {
	step := p.deps.Step
	if step == nil {
		return nil
	}
	return func(s string) { step("fold." + s) }
}

// stage is a set of goroutines that end together: the first to return, with or without an error, stops the others.
type stage struct {
	group  *errgroup.Group
	ctx    context.Context
	cancel context.CancelFunc
}

func newStage(ctx context.Context) *stage {
	ctx, cancel := context.WithCancel(ctx)
	group, ctx := errgroup.WithContext(ctx)
	return &stage{group: group, ctx: ctx, cancel: cancel}
}

// run starts one member.
func (s *stage) run(what string, f func(context.Context) error) {
	s.group.Go(func() error {
		defer s.cancel()
		err := f(s.ctx)
		if err == nil || s.ctx.Err() != nil && errors.Is(err, context.Canceled) {
			return nil
		}
		return fmt.Errorf("%s: %w", what, err)
	})
}

// wait returns the first error, when all members have ended or the stop has taken too long.
func (s *stage) wait() error {
	ended := make(chan error, 1)
	go func() { ended <- s.group.Wait() }()
	select {
	case err := <-ended:
		return err
	case <-s.ctx.Done():
	}
	limit := time.NewTimer(stopLimit)
	defer limit.Stop()
	select {
	case err := <-ended:
		return err
	case <-limit.C:
		return fmt.Errorf("%w (%s)", ErrStopLimit, stopLimit)
	}
}
