package feed

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/foldline/foldline/client"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/envelope"
)

// Progress is how far the rows have come; each number counts rows and includes those that are further on.
type Progress struct {
	Sent, Acked, Visible int64
	// Refused rows were answered with an error and are in no table.
	Refused int64
	// Lag is the age of the oldest acked row that is not visible.
	Lag time.Duration
}

// Latencies are the latencies of messages: from send to ack, and from ack to heads that show the rows.
type Latencies struct {
	Ack, Visible Quantiles
}

// Quantiles of one latency.
type Quantiles struct{ P50, P99, Max time.Duration }

const (
	shortest = int64(time.Microsecond)
	longest  = int64(10 * time.Minute)
	digits   = 3
)

type place struct {
	lane        uint32
	incarnation string
}

type acked struct {
	seq  uint64
	rows int64
	at   time.Time
}

// tracker follows messages from their ack to their publish.
type tracker struct {
	clock func() time.Time

	mu       sync.Mutex
	progress Progress
	ack      *hdrhistogram.Histogram
	visible  *hdrhistogram.Histogram
	waiting  map[place][]acked
	through  map[place]uint64
}

func newTracker(clock func() time.Time) *tracker {
	return &tracker{
		clock:   clock,
		ack:     hdrhistogram.New(shortest, longest, digits),
		visible: hdrhistogram.New(shortest, longest, digits),
		waiting: map[place][]acked{}, through: map[place]uint64{},
	}
}

func (t *tracker) sent(rows int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.progress.Sent += int64(rows)
}

func (t *tracker) refused(rows int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.progress.Refused += int64(rows)
}

func (t *tracker) acked(r client.Receipt, since time.Time) {
	now := t.clock()
	t.mu.Lock()
	defer t.mu.Unlock()
	record(t.ack, now.Sub(since))
	for _, part := range parts(r) {
		t.progress.Acked += int64(part.Rows)
		p := place{part.Lane, part.Incarnation}
		t.waiting[p] = append(t.waiting[p], acked{seq: part.Seq, rows: int64(part.Rows), at: now})
		t.advanceLocked(p, now)
	}
}

// parts are the receipts of all lanes that took a part of a message.
func parts(r client.Receipt) []envelope.Receipt {
	if len(r.Parts) > 0 {
		return r.Parts
	}
	return []envelope.Receipt{r.Receipt}
}

// published takes the cuts of heads that were read.
func (t *tracker) published(cuts []heads.Cut) {
	now := t.clock()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range cuts {
		p := place{c.Lane, c.Incarnation}
		t.through[p] = max(t.through[p], c.Through)
		t.advanceLocked(p, now)
	}
}

func (t *tracker) advanceLocked(p place, now time.Time) {
	left := t.waiting[p][:0]
	for _, a := range t.waiting[p] {
		if a.seq > t.through[p] {
			left = append(left, a)
			continue
		}
		t.progress.Visible += a.rows
		record(t.visible, now.Sub(a.at))
	}
	t.waiting[p] = left
}

func (t *tracker) outstanding() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.progress.Visible < t.progress.Acked
}

func (t *tracker) snapshot() Progress {
	now := t.clock()
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.progress
	for _, list := range t.waiting {
		for _, a := range list {
			p.Lag = max(p.Lag, now.Sub(a.at))
		}
	}
	return p
}

func (t *tracker) latencies() Latencies {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Latencies{Ack: quantiles(t.ack), Visible: quantiles(t.visible)}
}

func record(h *hdrhistogram.Histogram, d time.Duration) {
	// The value is within the bounds of the histogram, the only reason for an error.
	_ = h.RecordValue(min(max(int64(d), shortest), longest))
}

func quantiles(h *hdrhistogram.Histogram) Quantiles {
	return Quantiles{
		P50: time.Duration(h.ValueAtQuantile(50)), P99: time.Duration(h.ValueAtQuantile(99)), Max: time.Duration(h.Max()),
	}
}
