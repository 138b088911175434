package run

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/ingest"
	"github.com/foldline/foldline/publisher"
)

const (
	// readyPoll is how often a start waits for the next look at a component that has no event for it.
	readyPoll = 5 * time.Millisecond
	// changePoll is the time between two looks at the heads for the end of a change of the lane count.
	changePoll = 200 * time.Millisecond
)

// lanes are the ingesters of a process: of its lane, or of all lanes of a development line. They are opened again after each change of the lane count.
type lanes struct {
	// open opens what the graph has of the process's lanes; none when its lane is no more. changed tells that it is not the first time.
	open func(ctx context.Context, changed bool) (laneSet, error)
	set  atomic.Pointer[laneSet] // nil while none is open
}

// start opens the lanes for the first time.
func (l *lanes) start(ctx context.Context) error {
	set, err := l.open(ctx, false)
	if err == nil {
		l.set.Store(&set)
	}
	return err
}

// run serves until the context ends, or none of the lanes is left.
func (l *lanes) run(ctx context.Context) error {
	for {
		if again, err := goesOn(ctx, l.set.Load().run(ctx)); !again {
			return err
		}
		if err := l.close(); err != nil {
			return err
		}
		set, err := l.open(ctx, true)
		if err != nil || len(set) == 0 {
			return err
		}
		l.set.Store(&set)
	}
}

// goesOn tells whether lanes are opened again after they have ended with err; a stop that comes with the end of a change of the lane count is a clean one.
func goesOn(ctx context.Context, err error) (again bool, left error) {
	if !errors.Is(err, ingest.ErrLanesChanged) {
		return false, err
	}
	return ctx.Err() == nil, nil
}

var errReopening = errors.New("run: the lane count has changed; the lanes are opened again")

func (l *lanes) ready(ctx context.Context) error {
	set := l.set.Load()
	if set == nil {
		return errReopening
	}
	return set.ready(ctx)
}

// wait returns when requests are served.
func (l *lanes) wait(ctx context.Context) error {
	poll := time.NewTicker(readyPoll)
	defer poll.Stop()
	for l.ready(ctx) != nil {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-poll.C:
		}
	}
	return nil
}

// close closes what is open; run must have ended.
func (l *lanes) close() error {
	set := l.set.Swap(nil)
	if set == nil {
		return nil
	}
	return set.close()
}

// laneSet is ingesters, each with a connection and a log of its own.
type laneSet []*ingester

// run serves all lanes until the context ends or one of them does.
func (s laneSet) run(ctx context.Context) error {
	stage := newStage(ctx)
	for _, i := range s {
		stage.run(fmt.Sprintf("lane %d", i.cfg.Lane), i.run)
	}
	return stage.wait()
}

func (s laneSet) ready(ctx context.Context) error {
	for _, i := range s {
		if err := i.ready(ctx); err != nil {
			return fmt.Errorf("lane %d: %w", i.cfg.Lane, err)
		}
	}
	return nil
}

// close closes the logs and the connections.
func (s laneSet) close() (err error) {
	for _, i := range s {
		err = errors.Join(err, i.close())
		i.parts.close()
	}
	return err
}

// openLane opens the lane of the settings, again when a change of the lane count ends meanwhile. After a change the lane may be no more: then there is none, and
// no error.
func openLane(ctx context.Context, cfg Config, deps Deps, changed bool) (laneSet, error) {
	for {
		set, err := openLaneOnce(ctx, cfg, deps, changed)
		if !errors.Is(err, ingest.ErrLanesChanged) {
			return set, err
		}
		deps.Telemetry.Logger.Info("the lane is opened once more", "lane", cfg.Lane, "reason", err)
		changed = true
	}
}

func openLaneOnce(ctx context.Context, cfg Config, deps Deps, changed bool) (laneSet, error) {
	if changed {
		cfg.AcceptLoss = false // it was meant for what the lane was then
	}
	p, err := open(ctx, cfg, deps, "foldline-ingester")
	if err != nil {
		return nil, err
	}
	if changed && cfg.Lane >= p.graph.LaneCount && cfg.Lane >= p.graph.LaneTarget {
		p.log.Info("the lane is no more; the process ends", "lane", cfg.Lane, "lanes", p.graph.LaneCount)
		p.close()
		return nil, nil
	}
	i, err := newIngester(ctx, p)
	if err != nil {
		p.close()
		return nil, err
	}
	return laneSet{i}, nil
}

// awaitChange returns when the lane can be claimed: it waits for the end of a change of the lane count, and for nothing else.
func (i *ingester) awaitChange(ctx context.Context, claim publisher.LaneClaim) error {
	poll := time.NewTicker(changePoll)
	defer poll.Stop()
	for waiting := false; ; waiting = true {
		s, err := heads.Resolve(ctx, i.store, graphRoot)
		if err == nil {
			err = publisher.CheckClaim(s, claim)
		}
		if !errors.Is(err, publisher.ErrLanesChanging) {
			return err
		}
		if !waiting {
			i.log.Info("standing by", "lane", claim.Lane, "reason", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-poll.C:
		}
	}
}
