package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/client"
	sample "github.com/foldline/foldline/examples/flights"
	"github.com/foldline/foldline/internal/keys"
)

const (
	graph    = "crash"
	airports = "node:Airport"
	routes   = "node:Route"
	flights  = "edge:Flight"
)

var tables = []string{airports, routes, flights}

// mark is what the producer adds to each real row: who wrote it, and with which message. All rows of a message have the
// same mark, so a reader that sees a message in one table has to see it in all.
type mark struct {
	Worker int64 `json:"worker"`
	Rev    int64 `json:"rev"`
}

type airport struct {
	ID        string   `json:"id"`
	Name      *string  `json:"name"`
	City      *string  `json:"city"`
	State     *string  `json:"state"`
	Latitude  *float64 `json:"latitude"`
	Longitude *float64 `json:"longitude"`
	mark
}

type route struct {
	ID       string `json:"id"`
	Src      string `json:"src"`
	Dst      string `json:"dst"`
	Distance int64  `json:"distance"`
	mark
}

type flight struct {
	ID       string    `json:"id"`
	Src      string    `json:"src"`
	Dst      string    `json:"dst"`
	Departed time.Time `json:"departed"`
	Delay    int64     `json:"delay"`
	Distance int64     `json:"distance"`
	mark
}

// readSample reads one file of the sample.
func readSample[T any](t *testing.T, table string) (rows []T) {
	t.Helper()
	for _, f := range sample.Files() {
		if f.Table != table {
			continue
		}
		data, err := f.Read()
		require.NoError(t, err)
		for dec := json.NewDecoder(bytes.NewReader(data)); dec.More(); {
			var row T
			require.NoError(t, dec.Decode(&row))
			rows = append(rows, row)
		}
	}
	require.NotEmpty(t, rows)
	return rows
}

// model is a plain map of what was acknowledged: table, id, row.
type model map[string]map[string]any

// worker writes its own keys, one message after another, so that its model is exact at every moment.
type worker struct {
	id       int64
	airports []airport
	routes   map[string]route
	flights  []flight
	acked    model
	// rejected are the messages whose strict insert met its own upsert: one dead letter each.
	rejected map[int64]bool
	rev      int64
	last     client.Receipt
	// idempotent leaves strict inserts out, so that a message may be written again when its outcome is unknown.
	idempotent bool
}

// newWorkers divides the sample: a route and its flights belong to one worker, an airport to one.
func newWorkers(t *testing.T, n int) []*worker {
	t.Helper()
	workers := make([]*worker, n)
	for i := range workers {
		workers[i] = &worker{id: int64(i), routes: map[string]route{}, acked: model{airports: {}, routes: {}, flights: {}}, rejected: map[int64]bool{}}
	}
	owner := func(id string) *worker { return workers[keys.Hash([]byte(id))%uint64(n)] }
	for _, a := range readSample[airport](t, airports) {
		owner(a.ID).airports = append(owner(a.ID).airports, a)
	}
	for _, r := range readSample[route](t, routes) {
		owner(r.ID).routes[r.ID] = r
	}
	for _, f := range readSample[flight](t, flights) {
		w := owner(f.Src + "-" + f.Dst)
		w.flights = append(w.flights, f)
	}
	return workers
}

const (
	// flightsBehind is how far behind the newest flight a worker deletes one.
	flightsBehind = 17
	// rejectEvery is how often a message brings a row that has to become a dead letter.
	rejectEvery = 5
)

// message is the next message: a flight, its route and an airport, now and then the end of an older flight, and now and then a
// strict insert of the airport that it has just written.
func (w *worker) message() []client.Row {
	w.rev++
	m := mark{w.id, w.rev}
	f := w.flights[int(w.rev-1)%len(w.flights)]
	r := w.routes[f.Src+"-"+f.Dst]
	a := w.airports[int(w.rev-1)%len(w.airports)]
	f.mark, r.mark, a.mark = m, m, m
	rows := []client.Row{{Table: flights, Value: f}, {Table: routes, Value: r}, {Table: airports, Value: a}}
	if w.rev%3 == 0 && w.rev > flightsBehind {
		old := w.flights[int(w.rev-1-flightsBehind)%len(w.flights)]
		rows = append(rows, client.Row{Table: flights, Op: client.OpDelete, Value: map[string]string{"id": old.ID}})
	}
	if w.rev%rejectEvery == 0 && !w.idempotent {
		rows = append(rows, client.Row{Table: airports, Op: client.OpInsert, Value: a})
	}
	return rows
}

func (w *worker) apply(rows []client.Row) {
	for _, row := range rows {
		if row.Op == client.OpInsert {
			w.rejected[w.rev] = true
			continue
		}
		switch v := row.Value.(type) {
		case flight:
			w.acked[flights][v.ID] = v
		case route:
			w.acked[routes][v.ID] = v
		case airport:
			w.acked[airports][v.ID] = v
		case map[string]string:
			delete(w.acked[flights], v["id"])
		}
	}
}

// producers are workers at work.
type producers struct {
	workers []*worker
	acks    atomic.Int64
	// duplicates are acks of messages whose first ack a crash had swallowed.
	duplicates atomic.Int64
	// unknown are outcomes that nobody could tell; those messages were written again.
	unknown atomic.Int64
	stop    chan struct{}
	group   sync.WaitGroup
	errs    chan error
	// paced makes every worker wait until its message is visible before it writes the next one.
	paced bool
}

// startProducers lets every worker write until finish. A write that fails for good is an error: the client retries with
// the same message id over every restart of the line.
func startProducers(ctx context.Context, c *client.Client, workers []*worker, paced bool) *producers {
	p := &producers{workers: workers, stop: make(chan struct{}), errs: make(chan error, len(workers)), paced: paced}
	for _, w := range workers {
		p.group.Go(func() { p.work(ctx, c, w) })
	}
	return p
}

func (p *producers) work(ctx context.Context, c *client.Client, w *worker) {
	for {
		select {
		case <-p.stop:
			return
		default:
		}
		rows := w.message()
		receipt, err := c.Write(ctx, rows...)
		for w.idempotent && errors.Is(err, client.ErrUnknown) {
			p.unknown.Add(1)
			receipt, err = c.Write(ctx, rows...)
		}
		if err != nil {
			p.errs <- fmt.Errorf("worker %d, message %d: %w", w.id, w.rev, err)
			return
		}
		w.apply(rows)
		w.last = receipt
		p.acks.Add(1)
		if receipt.Duplicate {
			p.duplicates.Add(1)
		}
		if !p.paced {
			continue
		}
		if err := c.WaitVisible(ctx, receipt); err != nil {
			p.errs <- fmt.Errorf("worker %d, message %d is not visible: %w", w.id, w.rev, err)
			return
		}
	}
}

// healthy requires that no producer has given up.
func (p *producers) healthy(t *testing.T) {
	t.Helper()
	select {
	case err := <-p.errs:
		require.NoError(t, err)
	default:
	}
}

// finish stops the workers after the message that each is writing.
func (p *producers) finish(t *testing.T) {
	t.Helper()
	close(p.stop)
	p.group.Wait()
	close(p.errs)
	for err := range p.errs {
		require.NoError(t, err)
	}
}
