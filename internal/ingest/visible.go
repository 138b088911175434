package ingest

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/foldline/foldline/internal/envelope"
	"github.com/foldline/foldline/wal"
)

// waiters are durable requests whose producers want to hear when the write is visible. They stay counted in the flight,
// without their bodies, and so their number is bounded with it.
type waiters struct {
	in *Ingester

	mu      sync.Mutex
	waiting map[*request]*time.Timer
	closed  bool
	seen    rejectsSeen
}

func newWaiters(in *Ingester) *waiters {
	return &waiters{in: in, waiting: map[*request]*time.Timer{}}
}

// add takes a durable request until it is visible or its time is over. It is false when waiting is pointless: the
// caller then answers at once with what the request is.
func (w *waiters) add(settled *request) bool {
	left := settled.visible - time.Since(settled.arrived)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || left <= 0 {
		return false
	}
	// A copy, for the rest of its chunk need not wait with it.
	r := new(request)
	*r = *settled
	r.chunk = nil
	w.in.leave(settled.chunk)
	size := r.size
	r.size, r.msg.Data, r.entry = 0, nil, wal.Entry{} // the entry names memory of the chunk
	w.in.flight.forget(size)
	w.waiting[r] = time.AfterFunc(left, func() { w.expire(r) })
	if covers(w.in.catalog.view(), r.receipt) {
		// A retry of what is visible already: the next look at the heads answers it, and nobody else will ask for one.
		w.in.look()
	}
	return true
}

// expire answers durable at the deadline.
func (w *waiters) expire(r *request) {
	if w.take(r) {
		w.in.acknowledge(r, nil)
	}
}

// take removes a request; exactly one caller gets it.
func (w *waiters) take(r *request) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	timer, ok := w.waiting[r]
	if ok {
		timer.Stop()
		delete(w.waiting, r)
	}
	return ok
}

// reached answers what the view shows. The dead letters of the same publish are read first; when that fails the requests
// go on waiting.
func (w *waiters) reached(ctx context.Context, v *view) {
	w.mu.Lock()
	var shown []*request
	for r := range w.waiting {
		if covers(v, r.receipt) {
			shown = append(shown, r)
		}
	}
	w.mu.Unlock()
	if len(shown) == 0 {
		return
	}
	rejected, err := w.seen.read(ctx, w.in.o.Store, v.snapshot, shown)
	if err != nil {
		w.in.o.Logger.Warn("the dead letters could not be read; visible acks wait", "error", err)
		return
	}
	for _, r := range shown {
		if w.take(r) {
			r.receipt.State = envelope.StateVisible
			r.receipt.Rejected = r.inLines(rejected[entryOf(r.receipt)])
			w.in.acknowledge(r, nil)
		}
	}
}

// inLines names rejected rows by the producer's lines. The list may belong to a retry too.
func (r *request) inLines(rejected []envelope.Rejected) []envelope.Rejected {
	if r.lines == nil {
		return rejected
	}
	out := slices.Clone(rejected)
	for i := range out {
		if row := out[i].Row; row < len(r.lines) {
			out[i].Row = int(r.lines[row])
		}
	}
	slices.SortStableFunc(out, func(a, b envelope.Rejected) int { return cmp.Compare(a.Row, b.Row) })
	return out
}

// releaseAll answers durable and takes no more.
func (w *waiters) releaseAll() {
	w.mu.Lock()
	w.closed = true
	var all []*request
	for r := range w.waiting {
		all = append(all, r)
	}
	w.mu.Unlock()
	for _, r := range all {
		if w.take(r) {
			w.in.acknowledge(r, nil)
		}
	}
}

// covers tells whether a view's cuts include the entry of a receipt.
func covers(v *view, r envelope.Receipt) bool {
	cut, ok := v.snapshot.Cut(r.Lane, r.Incarnation)
	return ok && cut.Through >= r.Seq
}

// entry names an entry of a lane.
type entry struct {
	lane        uint32
	incarnation string
	seq         uint64
}

func entryOf(r envelope.Receipt) entry { return entry{r.Lane, r.Incarnation, r.Seq} }
