package wal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/cespare/xxhash/v2"
	"github.com/nats-io/nats.go"

	"github.com/foldline/foldline/internal/options"
)

const (
	defaultReadTimeout = 5 * time.Second
	// maxAttempts bounds the requests in a row that bring nothing.
	maxAttempts = 4
	// maxRemoteSchemas bounds a reader's schema cache.
	maxRemoteSchemas = 4096
	// pendingBytes bounds the frames that wait for the reader: a whole reply,
	// or one entry of the largest size.
	pendingBytes = 2*MaxEntryBytes + maxReplyBytes
)

// RemoteOptions tune a [Remote]; the zero value means defaults.
type RemoteOptions struct {
	// Timeout is how long a reader waits for the next frame before it asks
	// again. Default 5 seconds.
	Timeout time.Duration
}

// Remote reads a lane's log over NATS. It is safe for concurrent use.
type Remote struct {
	nc       *nats.Conn
	subjects ReadSubjects
	opts     RemoteOptions

	mu      sync.Mutex
	schemas map[SchemaID]*arrow.Schema
}

var (
	_ Source = (*Log)(nil)
	_ Source = (*Remote)(nil)
)

// NewRemote makes a reader of the lane at subjects.
func NewRemote(nc *nats.Conn, subjects ReadSubjects, opts RemoteOptions) *Remote {
	options.Default(&opts.Timeout, defaultReadTimeout)
	return &Remote{nc: nc, subjects: subjects, opts: opts, schemas: map[SchemaID]*arrow.Schema{}}
}

// Status implements [Source].
func (r *Remote) Status(ctx context.Context) (Status, error) {
	var s Status
	ctx, cancel := context.WithTimeout(ctx, r.opts.Timeout)
	defer cancel()
	msg, err := r.nc.RequestMsgWithContext(ctx, nats.NewMsg(r.subjects.Status))
	if err != nil {
		return s, unavailable(err)
	}
	if err := checkFrame(msg); err != nil {
		return s, err
	}
	if len(msg.Data) > maxFrameBytes {
		return s, wrapf(ErrFormat, "wal: status of %d bytes", len(msg.Data))
	}
	if err := json.Unmarshal(msg.Data, &s); err != nil {
		return s, fmt.Errorf("wal: status: %w: %w", ErrFormat, err)
	}
	return s, nil
}

// Read implements [Source]. The bound of the read is the owner's
// synced-through mark at its first answer.
func (r *Remote) Read(ctx context.Context, req ReadRequest) iter.Seq2[*Batch, error] {
	return func(yield func(*Batch, error) bool) {
		rd := &remoteRead{remote: r, req: req, after: req.After, yield: yield}
		if err := rd.run(ctx); err != nil && !rd.stopped {
			yield(nil, err)
		}
	}
}

// remoteRead is one Read under way.
type remoteRead struct {
	remote  *Remote
	req     ReadRequest
	yield   func(*Batch, error) bool
	after   Seq   // last value given
	bytes   int64 // given
	through Seq   // bound; known after the first end frame
	stopped bool  // the consumer wants no more
}

func (rd *remoteRead) run(ctx context.Context) error {
	failures := 0
	for {
		before := rd.after
		done, err := rd.exchange(ctx)
		if rd.stopped || done {
			return nil
		}
		if rd.after != before {
			failures = 0
		}
		if err == nil {
			if rd.through != 0 && rd.after == before {
				return nil // the next value ends above the bound
			}
			continue
		}
		if !errors.Is(err, errLost) {
			return err
		}
		if failures++; failures >= maxAttempts {
			return wrapf(ErrUnavailable, "wal: read after %d: %v", rd.after, err)
		}
	}
}

// exchange sends one request and hands out what its reply holds. Done tells
// that the read is complete.
func (rd *remoteRead) exchange(ctx context.Context) (done bool, err error) {
	w := wireRequest{
		V: wireVersion, Inc: rd.req.Incarnation, Epoch: uint64(rd.req.Epoch),
		After: rd.after, Through: rd.req.Through, MaxBytes: maxReplyBytes, Inside: rd.inside(),
	}
	if rd.req.MaxBytes > 0 {
		w.MaxBytes = min(maxReplyBytes, max(1, rd.req.MaxBytes-rd.bytes))
	}
	return rd.remote.exchange(w, func(sub *nats.Subscription) (bool, error) { return rd.receive(ctx, sub) })
}

// exchange sends a request and lets receive read its reply.
func (r *Remote) exchange(w wireRequest, receive func(*nats.Subscription) (done bool, err error)) (done bool, err error) {
	inbox := r.nc.NewInbox()
	sub, err := r.nc.SubscribeSync(inbox)
	if err != nil {
		return false, unavailable(err)
	}
	defer func() { err = errors.Join(err, unsubscribe(sub)) }()
	if err := sub.SetPendingLimits(-1, pendingBytes); err != nil {
		return false, unavailable(err)
	}
	data, err := json.Marshal(w)
	if err != nil {
		return false, err
	}
	if err := r.nc.PublishRequest(r.subjects.Read, inbox, data); err != nil {
		return false, unavailable(err)
	}
	return receive(sub)
}

func (rd *remoteRead) receive(ctx context.Context, sub *nats.Subscription) (done bool, err error) {
	var a assembler
	for {
		msg, err := rd.remote.next(ctx, sub)
		if err != nil {
			return false, err
		}
		switch kind := msg.Header.Get(headerFrame); kind {
		case frameSchema:
			err = rd.remote.addSchema(msg)
		case frameValue:
			whole, addErr := a.add(msg)
			if err = addErr; whole && err == nil {
				done, err = rd.give(a.last, a.data)
			}
		case frameEnd:
			return rd.end(msg)
		case frameError:
			return false, remoteError(msg.Data)
		default:
			err = wrapf(ErrFormat, "wal: frame %q", kind)
		}
		if done || rd.stopped || err != nil {
			return done, err
		}
	}
}

// next waits for a frame; silence counts as lost frames.
func (r *Remote) next(ctx context.Context, sub *nats.Subscription) (*nats.Msg, error) {
	wait, cancel := context.WithTimeout(ctx, r.opts.Timeout)
	defer cancel()
	msg, err := sub.NextMsgWithContext(wait)
	switch {
	case err == nil:
		return msg, checkFrame(msg)
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrSlowConsumer):
		return nil, fmt.Errorf("%w: %w", errLost, err)
	default:
		return nil, unavailable(err)
	}
}

// give decodes a value and hands it to the consumer.
func (rd *remoteRead) give(last Seq, data []byte) (done bool, err error) {
	if rd.req.MaxBytes > 0 && rd.after != rd.req.After && rd.bytes+int64(len(data)) > rd.req.MaxBytes {
		return true, nil
	}
	b, err := decodeValue(last, data, rd.remote.schema)
	if err != nil {
		return false, err
	}
	if rd.inside() && b.Prev < rd.after && rd.after < b.Last {
		rd.after = b.Prev
	}
	if b.Prev != rd.after {
		b.Release()
		if b.Prev < rd.after {
			return false, wrapf(ErrFormat, "wal: value %d joins %d, asked after %d", b.Last, b.Prev, rd.after)
		}
		return false, fmt.Errorf("%w: values above %d up to %d", errLost, rd.after, b.Prev)
	}
	rd.after = b.Last
	rd.bytes += b.Bytes
	rd.stopped = !rd.yield(b, nil)
	return rd.through != 0 && rd.after >= rd.through, nil
}

// inside tells whether the next value may begin at or before the one that is read after: only the first one.
func (rd *remoteRead) inside() bool { return rd.req.Inside && rd.bytes == 0 }

func (rd *remoteRead) end(msg *nats.Msg) (done bool, err error) {
	synced, err := ParseSeq(msg.Header.Get(headerSynced))
	if err != nil {
		return false, err
	}
	if rd.through == 0 {
		rd.through = synced
		if rd.req.Through != 0 {
			rd.through = min(synced, rd.req.Through)
		}
	}
	if rd.req.MaxBytes > 0 && rd.bytes >= rd.req.MaxBytes {
		return true, nil
	}
	return rd.after >= rd.through, nil
}

func (r *Remote) addSchema(msg *nats.Msg) error {
	var n uint64
	if _, err := fmt.Sscanf(msg.Header.Get(headerSchema), "%x", &n); err != nil {
		return wrapf(ErrFormat, "wal: schema id %q", msg.Header.Get(headerSchema))
	}
	id := SchemaID(n)
	if _, err := r.schema(id); err == nil {
		return nil
	}
	if xxhash.Sum64(msg.Data) != n {
		return fmt.Errorf("%w: schema %s damaged", errLost, id)
	}
	schema, err := decodeSchema(id, msg.Data)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.schemas) >= maxRemoteSchemas {
		clear(r.schemas)
	}
	r.schemas[id] = schema
	return nil
}

// schema finds a schema that arrived before its value; a missing one was lost.
func (r *Remote) schema(id SchemaID) (*arrow.Schema, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.schemas[id]; s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("%w: schema %s", errLost, id)
}

// checkFrame checks that a reply speaks this program's format.
func checkFrame(msg *nats.Msg) error {
	if msg.Header.Get("Status") == "503" {
		return wrapf(ErrUnavailable, "wal: no owner listens")
	}
	if got := msg.Header.Get(headerFormat); got != fmt.Sprint(wireVersion) {
		return wrapf(ErrFormat, "wal: reply format %q, this program speaks %d", got, wireVersion)
	}
	return nil
}

// unavailable classes a NATS error; nil stays nil.
func unavailable(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}
