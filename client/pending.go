package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/propagation"

	"github.com/foldline/foldline/internal/envelope"
)

// Bounds of the pause before a message is sent again.
const (
	minPause = 5 * time.Millisecond
	maxPause = 2 * time.Second
)

// leastWait is how long a reply is waited for at least when the time of a message is over with the attempt: an attempt without time for its reply would only make
// the outcome unknown. A shorter attempt timeout is kept.
const leastWait = time.Second

// Pending is a message on its way. Its methods are safe for concurrent use.
type Pending struct {
	c        *Client
	lines    [][]byte
	table    string // "" when the lines name theirs
	op       Op
	id       string
	token    string
	reserved int64 // bytes of the bound; 0 for a part, which its whole has paid for
	part     bool
	began    time.Time
	msg      *nats.Msg
	done     chan struct{}

	mu       sync.Mutex
	timer    *time.Timer // of the next attempt, or of the wait for this one's reply
	attempts int
	sent     time.Time // when the last attempt was
	settled  bool
	// doubt is when the first of the attempts was sent that may have been taken without our knowing; zero when there is none.
	doubt     time.Time
	lane      int64 // the lane the message is sent to, -1 for whoever answers
	told      int64 // the lane that a refusal has told last, -1 before the first
	reroutes  int   // how often that was another one
	splitting bool  // its parts are on their way: late replies to the whole say nothing any more

	receipt Receipt
	err     error
}

// Done is closed when the outcome is known.
func (p *Pending) Done() <-chan struct{} { return p.done }

// Receipt waits for the outcome. When ctx ends first its error is returned, and the message goes on.
func (p *Pending) Receipt(ctx context.Context) (Receipt, error) {
	select {
	case <-p.done:
		return p.receipt, p.err
	case <-ctx.Done():
		return Receipt{}, ctx.Err()
	}
}

// wait is Receipt for a caller that will not ask again: the message ends with its context.
func (p *Pending) wait(ctx context.Context) (Receipt, error) {
	select {
	case <-p.done:
	case <-ctx.Done():
		p.giveUp(ctx.Err())
		<-p.done
	}
	return p.receipt, p.err
}

func (c *Client) message(ctx context.Context, p *Pending, data []byte) *nats.Msg {
	msg := &nats.Msg{Reply: c.inbox + p.token, Data: data, Header: nats.Header{}}
	p.msg, p.told = msg, -1
	p.sendToAny()
	msg.Header.Set(envelope.HeaderMsgID, p.id)
	if p.table != "" && p.op != OpUpsert {
		msg.Header.Set(envelope.HeaderOp, p.op.String())
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	for key, value := range carrier {
		msg.Header.Set(key, value)
	}
	return msg
}

// attempt sends the message and sets the time for its reply.
func (p *Pending) attempt() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.settled || p.splitting {
		return
	}
	p.attempts++
	p.sent = time.Now()
	wait := max(p.began.Add(p.c.o.retryFor).Sub(p.sent), leastWait)
	p.scheduleLocked(min(p.c.o.attempt, wait), p.timeout)
	switch err := p.c.nc.PublishMsg(p.msg); {
	case err == nil:
	case errors.Is(err, nats.ErrMaxPayload):
		p.finishLocked(Receipt{}, refused(envelope.CodeTooLarge, p.table, envelope.NoRow, "message %s: %v", p.id, err))
	default:
		p.againLocked(fmt.Errorf("client: send: %w", err), 0)
	}
}

// scheduleLocked replaces what the message waits for.
func (p *Pending) scheduleLocked(d time.Duration, f func()) {
	if p.timer != nil {
		p.timer.Stop()
	}
	p.timer = time.AfterFunc(d, f)
}

// timeout ends the wait for a reply: whether the message was taken is open.
func (p *Pending) timeout() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.splitting {
		return
	}
	p.doubtLocked()
	p.againLocked(nats.ErrTimeout, 0)
}

// doubtLocked notes that the last attempt may have been taken.
func (p *Pending) doubtLocked() {
	if p.doubt.IsZero() {
		p.doubt = p.sent
	}
}

func (p *Pending) uncertain() bool { return !p.doubt.IsZero() }

// againLocked sends the message again, with the same id, after a pause of at least least; or gives up when its time is
// over. mu is held.
func (p *Pending) againLocked(cause error, least time.Duration) {
	if p.settled {
		return
	}
	pause := max(least, backoff(p.attempts))
	ends := p.began.Add(p.c.o.retryFor)
	if p.c.nc.IsClosed() || time.Now().Add(pause).After(ends) || p.uncertain() && !p.c.remembers(p) {
		p.finishLocked(Receipt{}, p.failureLocked(cause))
		return
	}
	p.scheduleLocked(pause, p.attempt)
}

// backoff doubles with each attempt; the random half keeps producers that were refused together apart.
func backoff(attempts int) time.Duration {
	pause := min(minPause<<min(attempts, 10), maxPause)
	return pause/2 + rand.N(pause/2)
}

// failureLocked is what became of a message without a receipt.
func (p *Pending) failureLocked(cause error) error {
	if p.uncertain() {
		return fmt.Errorf("%w: message %s: %w", ErrUnknown, p.id, cause)
	}
	return fmt.Errorf("message %s: %w", p.id, cause)
}

// giveUp ends a message early.
func (p *Pending) giveUp(cause error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.settled {
		if p.attempts > 0 {
			p.doubtLocked()
		}
		p.finishLocked(Receipt{}, p.failureLocked(cause))
	}
}

func (p *Pending) finishLocked(r Receipt, err error) {
	if p.settled {
		return
	}
	p.settled = true
	if p.timer != nil {
		p.timer.Stop()
	}
	p.receipt, p.err = r, err
	p.c.forget(p)
	close(p.done)
}

func (c *Client) forget(p *Pending) {
	c.mu.Lock()
	delete(c.outstanding, p.token)
	c.mu.Unlock()
	if !p.part {
		c.unreserve(p)
	}
}

// remembers tells whether the lanes know of every attempt at a message that they may have taken, so that a retry is recognised.
func (c *Client) remembers(p *Pending) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for lane, since := range c.known {
		if (p.lane < 0 || uint32(p.lane) == lane) && p.doubt.Before(since) {
			return false
		}
	}
	return true
}

func (c *Client) learn(r envelope.Receipt) {
	if r.DedupeSince.IsZero() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.DedupeSince.After(c.known[r.Lane]) {
		c.known[r.Lane] = r.DedupeSince
	}
}

// onReply settles a message by its reply.
func (c *Client) onReply(msg *nats.Msg) {
	token := msg.Subject[len(c.inbox):]
	c.mu.Lock()
	p := c.outstanding[token]
	c.mu.Unlock()
	if p != nil {
		p.reply(msg)
	}
}

// noResponders is the status of the server's own reply when nobody subscribes to a subject.
const noResponders = "503"

func (p *Pending) reply(msg *nats.Msg) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.splitting {
		return
	}
	if len(msg.Data) == 0 && msg.Header.Get("Status") == noResponders {
		cause := fmt.Errorf("%w (subject %s)", ErrNoOwner, p.msg.Subject)
		p.sendToAny() // the lane may be no more
		p.againLocked(cause, 0)
		return
	}
	if msg.Header.Get(envelope.HeaderServiceErrorCode) != "" {
		p.refusedLocked(envelope.DecodeError(msg.Data))
		return
	}
	r, err := envelope.DecodeReceipt(msg.Data)
	if err != nil {
		p.doubtLocked()
		p.finishLocked(Receipt{}, p.failureLocked(err))
		return
	}
	p.c.learn(r)
	p.finishLocked(Receipt{Receipt: r}, nil)
}

// refusedLocked acts on an error reply. Only what is neither busy nor open is final.
func (p *Pending) refusedLocked(e *Error) {
	switch {
	case e.Code == envelope.CodeLanesChanging:
		// The one lane that could have taken it has not, and takes nothing more.
		if p.c.remembers(p) {
			p.doubt = time.Time{}
		}
		p.againLocked(e, e.RetryAfter)
	case errors.Is(e, ErrBusy), errors.Is(e, ErrFenced):
		p.againLocked(e, e.RetryAfter)
	case errors.Is(e, ErrUnknown):
		p.doubtLocked()
		p.againLocked(e, e.RetryAfter)
	case e.Code == envelope.CodeWrongLane && len(e.Lanes) == len(p.lines) && p.mayReroute(e.Lanes):
		p.rerouteLocked(e)
	case p.uncertain():
		// An earlier attempt may have been taken under rules that have changed since.
		p.finishLocked(Receipt{}, p.failureLocked(e))
	default:
		p.finishLocked(Receipt{}, e)
	}
}

// maxReroutes bounds how often a message is sent to the lanes that a refusal tells: once, and again after each change of the lane count in its time.
const maxReroutes = 4

// rerouteLocked sends the message to the lane of its rows, or splits it when they have several.
func (p *Pending) rerouteLocked(e *Error) {
	for _, lane := range e.Lanes {
		if lane != e.Lanes[0] {
			p.timer.Stop()
			p.reroutes++
			p.splitting = true
			go p.split(e.Lanes)
			return
		}
	}
	if lane := int64(e.Lanes[0]); lane != p.told {
		p.told = lane
		p.reroutes++
	}
	p.sendTo(e.Lanes[0])
	p.scheduleLocked(0, p.attempt)
}

// mayReroute bounds the lanes that are tried. The one that was told before has no owner yet, and is tried until it has.
func (p *Pending) mayReroute(lanes []uint32) bool {
	again := !slices.ContainsFunc(lanes, func(lane uint32) bool { return int64(lane) != p.told })
	return again || p.reroutes < maxReroutes
}

// sendToAny lets whoever answers tell the lane.
func (p *Pending) sendToAny() {
	p.lane = -1
	p.msg.Subject = p.c.subjects.Write()
	if p.table != "" {
		p.msg.Subject = p.c.subjects.WriteTable(p.table)
	}
}

func (p *Pending) sendTo(lane uint32) {
	p.lane = int64(lane)
	p.msg.Subject = p.c.subjects.LaneWrite(lane)
	if p.table != "" {
		p.msg.Subject = p.c.subjects.LaneWriteTable(lane, p.table)
	}
}

// split sends one message for each lane and settles with all of their outcomes.
func (p *Pending) split(lanes []uint32) {
	parts := p.parts(lanes)
	for _, part := range parts {
		part.attempt()
	}
	var r Receipt
	var faults []error
	for _, part := range parts {
		<-part.done
		if part.err != nil {
			faults = append(faults, part.err)
			r.Parts = append(r.Parts, part.receipt.Parts...) // of a part that was split and written in part
			continue
		}
		r.Parts = append(r.Parts, part.receipt.all()...)
	}
	if len(r.Parts) > 0 {
		r.Receipt = r.Parts[0]
		if len(faults) > 0 {
			faults = append([]error{ErrPartly}, faults...)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.finishLocked(r, errors.Join(faults...))
}

// parts are the messages of each lane. They count as one message with the whole.
func (p *Pending) parts(lanes []uint32) []*Pending {
	byLane := map[uint32]*Pending{}
	var parts []*Pending
	for i, lane := range lanes {
		part := byLane[lane]
		if part == nil {
			suffix := ".lane" + strconv.FormatUint(uint64(lane), 10)
			part = &Pending{
				c: p.c, table: p.table, op: p.op, id: p.id + suffix, token: p.token + suffix[1:], began: p.began,
				done: make(chan struct{}), reroutes: p.reroutes, part: true,
			}
			byLane[lane] = part
			parts = append(parts, part)
		}
		part.lines = append(part.lines, p.lines[i])
	}
	p.c.mu.Lock()
	defer p.c.mu.Unlock()
	for lane, part := range byLane {
		part.msg = &nats.Msg{Reply: p.c.inbox + part.token, Data: body(part.lines), Header: nats.Header{}}
		for key, values := range p.msg.Header {
			part.msg.Header[key] = values
		}
		part.msg.Header.Set(envelope.HeaderMsgID, part.id)
		part.told = int64(lane)
		part.sendTo(lane)
		p.c.outstanding[part.token] = part
	}
	return parts
}
