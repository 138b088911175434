package bench

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/nats-io/nats.go"
)

// Load is a stream of requests, each answered by one reply.
type Load struct {
	Conn *nats.Conn
	// Request makes the i-th message; the generator sets its reply subject.
	Request func(i int) *nats.Msg
	// Check refuses a reply that is not the wanted one. It is called from one goroutine.
	Check func(reply []byte) error
	// InFlight bounds the requests that wait for an answer.
	InFlight int
	// Rate in requests a second; 0 = as fast as the bound allows.
	Rate float64
	// For is how long requests are sent, Count how many; zero is no bound, and one of the two is set.
	For   time.Duration
	Count int
	// First is the number of the first request.
	First int
}

// Measured is what a load met.
type Measured struct {
	Acks    int
	Elapsed time.Duration // from the first send to the last answer
	hist    *hdrhistogram.Histogram
}

// PerSecond is the rate of answers.
func (m Measured) PerSecond() float64 { return float64(m.Acks) / m.Elapsed.Seconds() }

// Micros is a quantile of the latency in microseconds.
func (m Measured) Micros(quantile float64) float64 {
	return float64(m.hist.ValueAtQuantile(quantile)) / 1000
}

// answerLimit is how long an answer may take before the run is given up.
const answerLimit = 30 * time.Second

// generator is a load that runs.
type generator struct {
	Load
	inbox string
	free  chan int

	mu    sync.Mutex
	began []time.Time // by slot
	m     Measured
	err   error
}

// Run sends the load and waits for all answers. It fails with the first answer
// that Check refuses, or when answers stay out.
func (l Load) Run(ctx context.Context) (Measured, error) {
	g := &generator{Load: l, inbox: nats.NewInbox(), free: make(chan int, l.InFlight), began: make([]time.Time, l.InFlight)}
	g.m.hist = hdrhistogram.New(int64(time.Microsecond), int64(answerLimit), 3)
	sub, err := l.Conn.Subscribe(g.inbox+".*", g.answer)
	if err != nil {
		return Measured{}, err
	}
	defer func() { _ = sub.Unsubscribe() }() // the connection ends with the run
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		return Measured{}, err
	}
	for slot := range l.InFlight {
		g.free <- slot
	}
	start := time.Now()
	if err := g.send(ctx, start); err != nil {
		return Measured{}, err
	}
	for range l.InFlight {
		if _, err := g.slot(ctx); err != nil {
			return Measured{}, err
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.m.Elapsed = time.Since(start)
	return g.m, g.err
}

func (g *generator) send(ctx context.Context, start time.Time) error {
	for i := 0; ; i++ {
		intended := time.Now()
		if g.Rate > 0 {
			intended = start.Add(time.Duration(float64(i) / g.Rate * float64(time.Second)))
			if wait := time.Until(intended); wait > 0 {
				if err := pause(ctx, wait); err != nil {
					return err
				}
			}
		}
		if g.For > 0 && intended.Sub(start) >= g.For || g.Count > 0 && i >= g.Count {
			return nil
		}
		slot, err := g.slot(ctx)
		if err != nil {
			return err
		}
		if g.Rate == 0 {
			intended = time.Now()
		}
		g.mu.Lock()
		g.began[slot] = intended
		g.mu.Unlock()
		msg := g.Request(g.First + i)
		msg.Reply = g.inbox + "." + strconv.Itoa(slot)
		if err := g.Conn.PublishMsg(msg); err != nil {
			return err
		}
	}
}

// slot waits for a free place among the requests in flight.
func (g *generator) slot(ctx context.Context) (int, error) {
	select {
	case slot := <-g.free:
		return slot, nil
	default:
	}
	timer := time.NewTimer(answerLimit)
	defer timer.Stop()
	select {
	case slot := <-g.free:
		return slot, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-timer.C:
		return 0, fmt.Errorf("bench: no answer within %s", answerLimit)
	}
}

// answer takes one reply. The subscription calls it from one goroutine.
func (g *generator) answer(msg *nats.Msg) {
	slot, err := strconv.Atoi(msg.Subject[strings.LastIndexByte(msg.Subject, '.')+1:])
	if err != nil || slot < 0 || slot >= g.InFlight {
		return
	}
	now := time.Now()
	err = g.Check(msg.Data)
	g.mu.Lock()
	if err == nil {
		g.m.Acks++
		_ = g.m.hist.RecordValue(max(1, int64(now.Sub(g.began[slot])))) // above the limit the run fails anyway
	} else if g.err == nil {
		g.err = err
	}
	g.mu.Unlock()
	g.free <- slot
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// median is the middle of some numbers, of the lower two when they are even.
func median[T cmp.Ordered](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[(len(sorted)-1)/2]
}
