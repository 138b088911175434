package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/envelope"
	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/publisher"
	"github.com/foldline/foldline/wal"
)

// LaneAnswerLimit is how long a lane may take to answer a status request.
const LaneAnswerLimit = 2 * time.Second

// LaneChange is what a change of the lane count needs.
type LaneChange struct {
	Conn     *nats.Conn
	Subjects envelope.Subjects
	Store    objstore.Store
	Count    uint32
	// Timeout is how long the change is waited for.
	Timeout time.Duration
	// Step is called at "lanes.before", "lanes.asked" and "lanes.after". Nil means nobody is told.
	Step func(string)
}

// Run changes the lane count of a running line and returns the heads that show it; a change that is under way to the same count is waited for. Before it begins one
// it refuses a line in which an open log has no ingester that serves it (wal.ErrUnavailable). publisher.ErrLanesChanging when the change was not made in time,
// with what it waits for: it goes on by itself. publisher.ErrConflict when somebody else changes the count to another one.
func (c LaneChange) Run(ctx context.Context) (*heads.Snapshot, error) {
	published, err := Published(c.Conn, c.Subjects)
	if err != nil {
		return nil, err
	}
	s, err := heads.Resolve(ctx, c.Store, graphRoot)
	if err != nil || s.LaneTarget == 0 && s.LaneCount == c.Count {
		return s, err
	}
	if s.LaneTarget == 0 {
		if err := c.allServe(ctx, s); err != nil {
			return nil, err
		}
	}
	c.step("lanes.before")
	if s.LaneTarget != c.Count {
		if err := c.begin(ctx); err != nil {
			return nil, err
		}
	}
	c.step("lanes.asked")
	s, err = c.await(ctx, published)
	c.step("lanes.after")
	return s, err
}

// askAgain is how long a folder may take to answer before it is asked again: it may have died with the request.
const askAgain = 3 * time.Second

// begin asks the active folder until it has begun the change, which may be asked twice.
func (c LaneChange) begin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	for {
		asking, stop := context.WithTimeout(ctx, askAgain)
		_, err := Admin(asking, c.Conn, c.Subjects, envelope.AdminLanes, envelope.AdminRequest{Lanes: c.Count})
		stop()
		if !errors.Is(err, envelope.ErrUnknown) || ctx.Err() != nil {
			return err
		}
	}
}

func (c LaneChange) step(name string) {
	if c.Step != nil {
		c.Step(name)
	}
}

// allServe refuses a change that could not be made now, before anything is sealed: every lane's owner has to seal its own log.
func (c LaneChange) allServe(ctx context.Context, s *heads.Snapshot) error {
	for _, cut := range s.Cuts {
		if !cut.Open {
			continue
		}
		status, err := LaneStatus(ctx, c.Conn, c.Subjects, cut.Lane)
		if err == nil && status.Incarnation != cut.Incarnation {
			err = fmt.Errorf("incarnation %s answers", status.Incarnation)
		}
		if err != nil {
			return fmt.Errorf("%w: lane %d has an open log and no ingester that serves it; start it, or one with --accept-loss when its disk is gone (%w)",
				wal.ErrUnavailable, cut.Lane, err)
		}
	}
	return nil
}

// LaneStatus asks the owner of a lane for the state of its log; wal.ErrUnavailable when none answers in LaneAnswerLimit.
func LaneStatus(ctx context.Context, nc *nats.Conn, subjects envelope.Subjects, lane uint32) (wal.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, LaneAnswerLimit)
	defer cancel()
	return wal.NewRemote(nc, wal.ReadSubjects{Read: subjects.LaneRead(lane), Status: subjects.LaneStatus(lane)}, wal.RemoteOptions{}).Status(ctx)
}

// await waits until the heads show the new count.
func (c LaneChange) await(ctx context.Context, published <-chan struct{}) (*heads.Snapshot, error) {
	limit := time.NewTimer(c.Timeout)
	defer limit.Stop()
	poll := time.NewTicker(changePoll)
	defer poll.Stop()
	for {
		s, err := heads.Resolve(ctx, c.Store, graphRoot)
		switch {
		case err != nil:
			return nil, err
		case s.LaneTarget == 0 && s.LaneCount == c.Count:
			return s, nil
		case s.LaneTarget != c.Count:
			return nil, fmt.Errorf("%w: somebody else changes the lanes to %d", publisher.ErrConflict, cmp.Or(s.LaneTarget, s.LaneCount))
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), errGoesOn)
		case <-limit.C:
			return nil, fmt.Errorf("%w: %s; %w", publisher.ErrLanesChanging, strings.Join(LanesWaitedFor(s), "; "), errGoesOn)
		case <-published:
		case <-poll.C:
		}
	}
}

// errGoesOn stands with the end of a wait.
var errGoesOn = errors.New("the change goes on by itself; the same command waits for it again, one with another count, also the present one, replaces it")

// LanesWaitedFor says of each lane that a change of the lane count waits for why it does.
func LanesWaitedFor(s *heads.Snapshot) (out []string) {
	for _, c := range s.Cuts {
		switch {
		case s.LaneTarget == 0 || !c.Open || c.Drained():
		case !c.Sealed:
			out = append(out, fmt.Sprintf("lane %d is not sealed: its ingester has to run, or one with --accept-loss when its disk is gone", c.Lane))
		default:
			out = append(out, fmt.Sprintf("lane %d is folded through %d of %d", c.Lane, c.Through, c.End))
		}
	}
	return out
}
