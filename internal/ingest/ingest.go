package ingest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"github.com/foldline/foldline/internal/envelope"
)

// Ingester serves one lane. Make it with New and run it once.
type Ingester struct {
	o        Options
	subjects envelope.Subjects
	metrics  *metrics
	catalog  *catalog
	flight   *flight
	replies  *replier
	visible  *waiters
	chunks   sync.Pool     // of *chunk
	hint     chan struct{} // one token: the heads are worth a look
	sealed   atomic.Bool   // nothing new is taken: the lane count changes
	// unready is the reason why requests are not served, nil while they are.
	unready atomic.Pointer[error]
}

var errNotRunning = errors.New("ingest: not running")

// New checks the options; it makes no request and starts nothing.
func New(o Options) (*Ingester, error) {
	o.EnsureDefaults()
	if err := o.Validate(); err != nil {
		return nil, err
	}
	subjects, err := envelope.NewSubjects(o.Prefix, o.Graph)
	if err != nil {
		return nil, err
	}
	in := &Ingester{o: o, subjects: subjects, hint: make(chan struct{}, 1)}
	in.setReady(errNotRunning)
	in.flight = newFlight(o.MaxInFlightMessages, o.MaxInFlightBytes)
	if in.metrics, err = newMetrics(o.Meter, in.flight); err != nil {
		return nil, fmt.Errorf("ingest: metrics: %w", err)
	}
	in.visible = newWaiters(in)
	in.catalog = newCatalog(&in.o, in.metrics)
	in.replies = newReplier(in)
	return in, nil
}

// Run serves until ctx ends and then drains: it unsubscribes, answers what it took, and returns nil. An error is the
// reason why it stopped serving on its own; what it took is answered in that case too.
func (in *Ingester) Run(ctx context.Context) error {
	defer in.setReady(errNotRunning)
	// What was taken is finished under a context of its own, bounded by DrainTimeout.
	work, finish := context.WithCancel(context.WithoutCancel(ctx))
	defer finish()
	if err := in.refresh(work); err != nil {
		return fmt.Errorf("ingest: first look at the heads: %w", err)
	}
	intake, err := in.subscribe()
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(ctx)
	defer stop()
	var watch, pipe errgroup.Group
	unhook, err := in.hints()
	if err != nil {
		return errors.Join(err, intake.close())
	}
	watch.Go(func() error { defer stop(); return in.watch(serving) })
	pipe.Go(func() error { in.replies.run(); return nil })
	in.setReady(nil)
	in.o.Logger.Info("serving writes", "graph", in.o.Graph, "lane", in.o.Lane, "incarnation", in.o.Log.Incarnation())
	in.pump(serving, work, intake)
	stop()
	unhook()
	err = watch.Wait()
	in.visible.releaseAll()
	in.drained(work)
	in.replies.close()
	_ = pipe.Wait()
	return errors.Join(err, in.flush(), in.metrics.close())
}

// drained waits until everything taken is answered, for at most DrainTimeout.
func (in *Ingester) drained(work context.Context) {
	limit, cancel := context.WithTimeout(work, in.o.DrainTimeout)
	defer cancel()
	if left := in.flight.wait(limit); left > 0 {
		in.o.Logger.Warn("stopped with unanswered requests; their producers will retry", "messages", left)
	}
}

// flush hands the last replies to the server.
func (in *Ingester) flush() error {
	err := flush(in.o.Conn, in.o.DrainTimeout, true)
	if errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, errNoServer) {
		return nil // the producers will retry
	}
	return err
}

// errNoServer says that a stop has nobody to hand anything to.
var errNoServer = errors.New("ingest: not connected to NATS")

// flushStep is how soon a flush notices that its server has gone away.
const flushStep = 100 * time.Millisecond

// flush waits until the server has everything that was sent, for at most limit. A process that stops gives up at once when there is no server: one that
// comes back later would be too late.
func flush(conn *nats.Conn, limit time.Duration, stopping bool) error {
	for deadline := time.Now().Add(limit); ; {
		if stopping && !conn.IsConnected() && !conn.IsClosed() {
			return errNoServer
		}
		err := conn.FlushTimeout(flushStep) // which a server that goes away meanwhile ends with an error
		if err == nil || conn.IsClosed() || time.Now().After(deadline) {
			return err
		}
	}
}

// Ready is nil while requests are served, else the reason why not.
func (in *Ingester) Ready() error {
	if reason := in.unready.Load(); reason != nil {
		return *reason
	}
	if !in.o.Conn.IsConnected() {
		return errNoServer
	}
	status, err := in.o.Log.Status(context.Background())
	if err != nil {
		return fmt.Errorf("ingest: log: %w", err)
	}
	if !status.Ready {
		return fmt.Errorf("ingest: the log takes nothing: %s", status.Fault)
	}
	return nil
}

func (in *Ingester) setReady(reason error) {
	if reason == nil {
		in.unready.Store(nil)
		return
	}
	in.unready.Store(&reason)
}
