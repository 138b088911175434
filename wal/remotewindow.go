package wal

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/nats-io/nats.go"
)

// Window implements [WindowSource]. What leaves the window while it is read may be left out.
func (r *Remote) Window(ctx context.Context, owner Status) iter.Seq2[*WindowGroup, error] {
	return func(yield func(*WindowGroup, error) bool) {
		for _, k := range windowKinds {
			w := &windowRead{remote: r, owner: owner, kind: k.kind, name: k.name, yield: yield}
			if err := w.run(ctx); err != nil && !w.stopped {
				yield(nil, err)
				return
			}
			if w.stopped {
				return
			}
		}
	}
}

// windowRead is the read of one kind of groups.
type windowRead struct {
	remote  *Remote
	owner   Status
	kind    byte
	name    string
	yield   func(*WindowGroup, error) bool
	from    Seq  // the first key that was not given yet
	stopped bool // the consumer wants no more
}

// run asks until a reply has no more.
func (w *windowRead) run(ctx context.Context) error {
	failures := 0
	for {
		before := w.from
		err := w.exchange(ctx)
		switch {
		case w.stopped || err == nil && w.from == before:
			return nil
		case err != nil && !errors.Is(err, errLost):
			return err
		case w.from != before:
			failures = 0
		default:
			if failures++; failures >= maxAttempts {
				return wrapf(ErrUnavailable, "wal: window from %d: %v", w.from, err)
			}
		}
	}
}

// exchange sends one request and hands out what its reply holds.
func (w *windowRead) exchange(ctx context.Context) error {
	_, err := w.remote.exchange(wireRequest{
		V: wireVersion, Inc: w.owner.Incarnation, Epoch: uint64(w.owner.Epoch), After: w.from, MaxBytes: maxReplyBytes, Window: w.name,
	}, func(sub *nats.Subscription) (bool, error) { return false, w.receive(ctx, sub) })
	return err
}

func (w *windowRead) receive(ctx context.Context, sub *nats.Subscription) error {
	var a assembler
	for {
		msg, err := w.remote.next(ctx, sub)
		if err != nil {
			return err
		}
		switch kind := msg.Header.Get(headerFrame); kind {
		case w.name:
			whole, err := a.add(msg)
			if err == nil && whole {
				err = w.give(msg, &a)
			}
			if err != nil || w.stopped {
				return err
			}
		case frameEnd:
			return w.follows(msg)
		case frameError:
			return remoteError(msg.Data)
		default:
			return wrapf(ErrFormat, "wal: frame %q", kind)
		}
	}
}

// follows checks that no frame between the last group and this one was lost.
func (w *windowRead) follows(msg *nats.Msg) error {
	after, err := ParseSeq(msg.Header.Get(headerAfter))
	if err == nil && after != w.from {
		err = fmt.Errorf("%w: groups from %d to %d", errLost, w.from, after)
	}
	return err
}

func (w *windowRead) give(msg *nats.Msg, a *assembler) error {
	if err := w.follows(msg); err != nil {
		return err
	}
	g, err := newWindowGroup(Origin{w.owner.Lane, w.owner.Incarnation}, storedKey{w.kind, uint64(a.last)}, a.data)
	if err != nil {
		return err
	}
	w.from = a.last + 1
	w.stopped = !w.yield(g, nil)
	return nil
}
