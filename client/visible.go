package client

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/foldline/foldline/internal/envelope"
)

// askEvery is how often the lane's owner is asked while no event comes: events are not stored and can be lost.
const askEvery = time.Second

// visibility knows how far the lanes are visible. It subscribes with the first wait.
type visibility struct {
	nc       *nats.Conn
	subjects envelope.Subjects

	mu      sync.Mutex
	sub     *nats.Subscription
	through map[place]uint64
	moved   chan struct{} // closed and replaced when through moves on
	closed  bool
}

// place is one incarnation of a lane.
type place struct {
	lane        uint32
	incarnation string
}

func newVisibility(nc *nats.Conn, subjects envelope.Subjects) *visibility {
	return &visibility{nc: nc, subjects: subjects, through: map[place]uint64{}, moved: make(chan struct{})}
}

// subscribe hears events from now on: an entry that is not visible when the owner is asked after it will be announced.
func (v *visibility) subscribe() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return ErrClosed
	}
	if v.sub != nil {
		return nil
	}
	sub, err := v.nc.Subscribe(v.subjects.Published(), func(msg *nats.Msg) {
		if event, err := envelope.DecodeEvent(msg.Data); err == nil {
			for _, c := range event.Cuts {
				v.reached(place{c.Lane, c.Incarnation}, c.Through)
			}
		}
	})
	if err != nil {
		return fmt.Errorf("client: subscribe to publishes: %w", err)
	}
	v.sub = sub
	return nil
}

func (v *visibility) reached(p place, through uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if through <= v.through[p] {
		return
	}
	v.through[p] = through
	close(v.moved)
	v.moved = make(chan struct{})
}

// wait returns when the entry of a receipt is visible.
func (v *visibility) wait(ctx context.Context, r envelope.Receipt) error {
	if r.State == envelope.StateVisible {
		return nil
	}
	if err := v.subscribe(); err != nil {
		return err
	}
	at := place{r.Lane, r.Incarnation}
	ask := time.NewTimer(0)
	defer ask.Stop()
	for {
		v.mu.Lock()
		through, moved := v.through[at], v.moved
		v.mu.Unlock()
		if through >= r.Seq {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-moved:
		case <-ask.C:
			v.ask(ctx, at)
			ask.Reset(askEvery)
		}
	}
}

// ask takes the lane owner's word: it releases its log only up to the published cut. An owner that does not answer is
// asked again.
func (v *visibility) ask(ctx context.Context, at place) {
	ctx, cancel := context.WithTimeout(ctx, askEvery)
	defer cancel()
	msg, err := v.nc.RequestWithContext(ctx, v.subjects.LaneStatus(at.lane), nil)
	if err != nil || len(msg.Data) > envelope.MaxReplyBytes {
		return
	}
	var status struct {
		Incarnation     string `json:"incarnation"`
		ReleasedThrough uint64 `json:"released_through,string"`
	}
	if json.Unmarshal(msg.Data, &status) == nil && status.Incarnation == at.incarnation {
		v.reached(at, status.ReleasedThrough)
	}
}

func (v *visibility) close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.closed = true
	if v.sub != nil {
		// An error means that the connection is gone, and the subscription with it.
		_ = v.sub.Unsubscribe()
	}
}
