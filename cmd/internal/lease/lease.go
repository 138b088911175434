package lease

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ErrLost says that another process holds the lease by now, or may hold it; stop working.
var ErrLost = errors.New("lease: lost")

// ErrNoJetStream says that the server, or the account, has no JetStream, where leases are kept.
var ErrNoJetStream = errors.New("lease: the NATS server has no JetStream for this account; start it with -js, or with jetstream {} in its configuration")

// ErrUnavailable says that JetStream did not answer; try again later.
var ErrUnavailable = errors.New("lease: JetStream is unavailable")

// renewals is how many renewals fit into a time to live, so that a lost answer or two do not end a lease.
const renewals = 4

// Options name a lease.
type Options struct {
	// Bucket and Key are where it is; the bucket is made when missing.
	Bucket, Key string
	// Owner is told to those who look; it decides nothing.
	Owner string
	// TTL is how long a silent holder is waited for.
	TTL time.Duration
	// Gone tells of a holder, by what it called itself, that it surely does not work any more: it is not waited for. nil = of none.
	Gone func(owner string) bool
}

// Lease is a held lease.
type Lease struct {
	o        Options
	nc       *nats.Conn
	kv       jetstream.KeyValue
	revision uint64
	renewed  atomic.Pointer[time.Time] // when the last renewal that succeeded was begun
}

// Acquire waits until the lease is this process's. waiting is told, once, that another one holds it.
func Acquire(ctx context.Context, nc *nats.Conn, o Options, waiting func(owner string)) (*Lease, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("lease: %w", err)
	}
	kv, err := js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: o.Bucket})
	if err != nil {
		return nil, bucketError(ctx, o.Bucket, err)
	}
	l := &Lease{o: o, nc: nc, kv: kv}
	for {
		seen, err := l.take(ctx)
		if err == nil {
			return l, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if seen != nil && o.Gone != nil && o.Gone(string(seen.Value())) {
			if l.renew(ctx, seen.Revision()) == nil {
				return l, nil
			}
			continue
		}
		if seen != nil && waiting != nil {
			waiting(string(seen.Value()))
			waiting = nil
		}
		if err := l.waitForSilence(ctx, seen); err != nil {
			return nil, err
		}
	}
}

// bucketError says what to do about a bucket that cannot be had.
func bucketError(ctx context.Context, bucket string, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount), errors.Is(err, nats.ErrNoResponders):
		return fmt.Errorf("%w (bucket %s: %w)", ErrNoJetStream, bucket, err)
	case unanswered(err):
		return fmt.Errorf("%w (bucket %s: %w)", ErrUnavailable, bucket, err)
	}
	return fmt.Errorf("lease: bucket %s: %w", bucket, err)
}

func unanswered(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout)
}

// take creates the key, or finds out who has it.
func (l *Lease) take(ctx context.Context) (seen jetstream.KeyValueEntry, err error) {
	at := time.Now()
	l.revision, err = l.kv.Create(ctx, l.o.Key, []byte(l.o.Owner))
	if err == nil {
		l.renewed.Store(&at)
		return nil, nil
	}
	seen, getErr := l.kv.Get(ctx, l.o.Key)
	if getErr != nil {
		return nil, errors.Join(err, getErr)
	}
	return seen, err
}

// waitForSilence returns when the key is gone, or when its revision has stood still for a time to live and was removed; after a while when nothing can be
// seen, because the server is away. Its error is the context's.
func (l *Lease) waitForSilence(ctx context.Context, seen jetstream.KeyValueEntry) error {
	var watch jetstream.KeyWatcher
	var err error
	if seen != nil {
		watch, err = l.kv.Watch(ctx, l.o.Key)
	}
	if seen == nil || err != nil {
		slept(ctx, l.o.TTL/renewals)
		return ctx.Err()
	}
	defer func() { _ = watch.Stop() }()
	revision := seen.Revision()
	silence := time.NewTimer(l.o.TTL)
	defer silence.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e := <-watch.Updates():
			switch {
			case e == nil:
			case e.Operation() != jetstream.KeyValuePut:
				return nil
			case e.Revision() != revision:
				revision = e.Revision()
				silence.Reset(l.o.TTL)
			}
		case <-silence.C:
			// Losing this race means that the holder renewed or that another waiter was first: look again.
			_ = l.kv.Delete(ctx, l.o.Key, jetstream.LastRevision(revision))
			return ctx.Err()
		}
	}
}

// Hold renews the lease until the context ends (nil) or the lease is lost (ErrLost): taken by another, or not renewed for its time to live.
func (l *Lease) Hold(ctx context.Context) error {
	return l.hold(ctx, func(cause error) error {
		if l.Held() {
			return nil
		}
		return fmt.Errorf("%w: %s could not be renewed for %s: %w", ErrLost, l.o.Key, l.o.TTL, cause)
	})
}

// Keep is Hold for a holder that asks [Lease.Held] before whatever needs the lease: a server that is away does not end it, for nobody
// else can take the lease meanwhile either. ErrLost when another process has taken it or has removed it to do so.
func (l *Lease) Keep(ctx context.Context) error {
	return l.hold(ctx, func(error) error { return nil })
}

// Held tells whether the lease is this process's by its own clock alone: nobody else can have it before its time to live has passed
// since the last renewal. A process that was stopped for longer finds out here. It may be called concurrently.
func (l *Lease) Held() bool {
	return time.Since(*l.renewed.Load()) < l.o.TTL
}

// hold renews until the context ends, the lease is another's, or failed says what a failed renewal means.
func (l *Lease) hold(ctx context.Context, failed func(error) error) error {
	for {
		if !slept(ctx, l.o.TTL/renewals) {
			return nil
		}
		attempt, cancel := context.WithTimeout(ctx, l.o.TTL/renewals)
		err := l.renew(attempt, l.revision)
		cancel()
		switch stopped := ctx.Err() != nil; {
		case err == nil:
		case stopped:
			continue // the next wait ends at once
		case errors.Is(err, jetstream.ErrKeyExists):
			if err := l.settle(ctx); err != nil {
				return err
			}
		default:
			if err := failed(err); err != nil {
				return err
			}
		}
	}
}

// renew writes the key again, if it stands at revision.
func (l *Lease) renew(ctx context.Context, revision uint64) error {
	at := time.Now()
	revision, err := l.kv.Update(ctx, l.o.Key, []byte(l.o.Owner), revision)
	if err == nil {
		l.revision = revision
		l.renewed.Store(&at)
	}
	return err
}

// settle reads the key back after a refused renewal: an earlier renewal whose answer was lost may be what is in the way. The next
// renewal then builds on it. A key that cannot be read says nothing.
func (l *Lease) settle(ctx context.Context) error {
	e, err := l.kv.Get(ctx, l.o.Key)
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound), err == nil && string(e.Value()) != l.o.Owner:
		return fmt.Errorf("%w: another process took %s", ErrLost, l.o.Key)
	case err == nil:
		l.revision = e.Revision()
	}
	return nil
}

// Release gives the lease up at once, for a clean stop. It does nothing when the lease was lost, or when no server can be told
// in the context's time: it lapses then.
func (l *Lease) Release(ctx context.Context) error {
	if !l.nc.IsConnected() {
		return nil
	}
	err := l.kv.Delete(ctx, l.o.Key, jetstream.LastRevision(l.revision))
	if errors.Is(err, jetstream.ErrKeyExists) || unanswered(err) || !l.nc.IsConnected() {
		return nil
	}
	return err
}

// slept waits, and says whether the context lives on.
func slept(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
