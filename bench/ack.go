package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"
)

// AckConfig is the measurement of acks: ours, the bare loop and a JetStream
// that syncs every message, in turns.
type AckConfig struct {
	Dir      string        // emptied and used
	Rounds   int           // default 11
	For      time.Duration // of one side of one round, twice that with an open loop; default 500 ms
	InFlight []int         // default 1, 16, 256
	// Only names what is measured: acks, open, ndjson, arrow; nil is all. The open loop needs the acks.
	Only []string
	// Side names the one side that runs, "" for all in turns. With one alone, for a profile, there are no figures.
	Side     string
	Progress func(string)
}

func (c *AckConfig) wants(part string) bool {
	return len(c.Only) == 0 || slices.Contains(c.Only, part)
}

func (c *AckConfig) ensureDefaults() {
	if c.Rounds == 0 {
		c.Rounds = 11
	}
	if c.For == 0 {
		c.For = 500 * time.Millisecond
	}
	if len(c.InFlight) == 0 {
		c.InFlight = []int{1, 16, 256}
	}
	if c.Progress == nil {
		c.Progress = func(string) {}
	}
}

// side is one of the things that are measured in turns.
type side struct {
	name  string
	load  Load
	syncs func() uint64
	runs  []Measured
	cost  cost
	synced,
	acked uint64
}

// spread is the least and the most over the rounds.
func (s *side) spread(of func(Measured) float64) (low, high float64) {
	for i, m := range s.runs {
		v := of(m)
		if i == 0 {
			low, high = v, v
		}
		low, high = min(low, v), max(high, v)
	}
	return low, high
}

func (s *side) median(of func(Measured) float64) float64 {
	values := make([]float64, len(s.runs))
	for i, m := range s.runs {
		values[i] = of(m)
	}
	return median(values)
}

func (s *side) rate() float64 { return s.median(Measured.PerSecond) }
func (s *side) p50() float64  { return s.median(func(m Measured) float64 { return m.Micros(50) }) }
func (s *side) p99() float64  { return s.median(func(m Measured) float64 { return m.Micros(99) }) }

// Acks measures one-row messages of about 200 bytes.
func Acks(ctx context.Context, c AckConfig) (figures []Figure, err error) {
	c.ensureDefaults()
	stage, err := startAcks(ctx, c.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stage.close()) }()
	for _, n := range c.InFlight {
		if !c.wants("acks") {
			break
		}
		sides := stage.sides(1)
		if err := stage.rounds(ctx, c, fmt.Sprintf("acks with %d in flight", n), sides, turn{inFlight: n, rows: 1, length: c.For}); err != nil {
			return nil, err
		}
		if c.Side != "" {
			continue
		}
		figures = append(figures, ackFigures(n, sides)...)
		if n == c.InFlight[len(c.InFlight)-1] && c.wants("open") {
			open, err := stage.openLoop(ctx, c, n, sides)
			if err != nil {
				return nil, err
			}
			figures = append(figures, open...)
		}
	}
	many, err := stage.manyRows(ctx, c)
	return append(figures, many...), err
}

// turn is what each side does in each round.
type turn struct {
	inFlight, rows int
	length         time.Duration
	rate           float64
}

// rounds runs sides in turns, so that a noisy moment is one for all of them.
func (a *ackStage) rounds(ctx context.Context, c AckConfig, what string, sides []*side, t turn) error {
	for range c.Rounds {
		for _, s := range sides {
			if c.Side != "" && s.name != c.Side {
				continue
			}
			if err := a.run(ctx, s, t.inFlight, t.length, t.rate); err != nil {
				return fmt.Errorf("%s, %s: %w", s.name, what, err)
			}
		}
	}
	c.Progress(what + ":")
	for _, s := range sides {
		if len(s.runs) > 0 {
			c.Progress(s.costs(t.rows))
		}
	}
	return nil
}

// manyRows measures messages of 100 rows, as NDJSON and as Arrow streams. The bare
// loop takes the same messages and decodes nothing.
func (a *ackStage) manyRows(ctx context.Context, c AckConfig) (figures []Figure, err error) {
	const rows, inFlight = 100, 64
	stream, err := newArrowMessages(rows)
	if err != nil {
		return nil, err
	}
	measure := func(id, format string, sides []*side, goals func(Figure) Figure) error {
		what := fmt.Sprintf("%s messages of %d rows of 200 B, %d in flight", format, rows, inFlight)
		if err := a.rounds(ctx, c, what, sides[:2], turn{inFlight: inFlight, rows: rows, length: c.For}); err != nil || c.Side != "" {
			return err
		}
		rate := Report(id, "rows made durable, "+what+"; peer: the bare loop with the same messages", sides[0].rate()*rows, "rows/s").Beside(sides[1].rate() * rows)
		figures = append(figures, goals(rate), cpuFigure(id+"-cpu", what, sides))
		return nil
	}
	if c.wants("ndjson") {
		err = measure("ndjson-100", "NDJSON", a.sides(rows), func(f Figure) Figure { return f.Above(500_000) })
	}
	if err == nil && c.wants("arrow") {
		err = measure("arrow-100", "Arrow", a.sidesOf(func(i int) *nats.Msg { return stream.message(a.line.Subjects.WriteTable("node:T0"), i*rows) }),
			func(f Figure) Figure { return f.Above(1_000_000).AtLeast(0.65) })
	}
	return figures, err
}

// cpuFigure is the CPU time of an ack, that of load generator and NATS server included on both sides.
func cpuFigure(id, what string, sides []*side) Figure {
	return Report(id, "CPU time of an ack with its request, load generator and NATS server included, "+what+"; peer: the bare loop", sides[0].cpuMicros(), "us").
		Beside(sides[1].cpuMicros())
}

// ackFigures compares one level of concurrency.
func ackFigures(n int, sides []*side) []Figure {
	ours, bare, stream := sides[0], sides[1], sides[2]
	what := fmt.Sprintf("one-row messages of 200 B, %d in flight", n)
	rate := Report(fmt.Sprintf("ack-rate-%d", n), "acks of "+what+"; peer: bare request, Pebble sync, reply", ours.rate(), "acks/s").Beside(bare.rate())
	p50 := Report(fmt.Sprintf("ack-p50-%d", n), "median ack latency of "+what+"; peer: the bare loop", ours.p50(), "us").Beside(bare.p50())
	p99 := Report(fmt.Sprintf("ack-p99-%d", n), "99th percentile of ack latency of "+what+"; peer: the bare loop", ours.p99(), "us").Beside(bare.p99())
	streamRate := Report(fmt.Sprintf("ack-rate-%d-jetstream", n), "acks of "+what+"; peer: JetStream with sync_interval always, R1, file storage", ours.rate(), "acks/s").Beside(stream.rate())
	streamP50 := Report(fmt.Sprintf("ack-p50-%d-jetstream", n), "median ack latency of "+what+"; peer: JetStream with sync_interval always", ours.p50(), "us").Beside(stream.p50())
	switch n {
	case 1:
		p50 = p50.AtMost(1.25)
	case 256:
		rate, streamRate, streamP50 = rate.AtLeast(0.7), streamRate.AtLeast(15), streamP50.AtMost(1.0/15)
	}
	syncs := Report(fmt.Sprintf("ack-syncs-%d", n), "syncs of the log for 1,000 acks of "+what, 1000*float64(ours.synced)/float64(ours.acked), "syncs").
		Beside(1000 * float64(bare.synced) / float64(bare.acked))
	return []Figure{rate, p50, p99, streamRate, streamP50, syncs, cpuFigure(fmt.Sprintf("ack-cpu-%d", n), what, sides)}
}

// openLoop sends at half the rate that the slower of ours and the bare loop
// reached, and measures from the intended time of sending.
func (a *ackStage) openLoop(ctx context.Context, c AckConfig, n int, closed []*side) ([]Figure, error) {
	rate := min(closed[0].rate(), closed[1].rate()) / 2
	sides := a.sides(1)[:2]
	if err := a.rounds(ctx, c, fmt.Sprintf("%.0f messages/s, open loop", rate), sides, turn{inFlight: 16 * n, rows: 1, length: 2 * c.For, rate: rate}); err != nil {
		return nil, err
	}
	what := fmt.Sprintf("ack latency from the intended time of sending at %.0f messages/s, half of what was reached", rate)
	return []Figure{
		Report("open-loop-p99", "99th percentile of "+what+"; peer: the bare loop", sides[0].p99(), "us").Beside(sides[1].p99()).AtMost(1.5),
		Report("open-loop-p50", "median of "+what+"; peer: the bare loop", sides[0].p50(), "us").Beside(sides[1].p50()),
	}, nil
}

// ackStage holds the three sides, each with a NATS server of its own.
type ackStage struct {
	line   *Line
	bare   *Bare
	server *server.Server // of the bare loop
	stream *server.Server
	conns  []*nats.Conn
	g      errgroup.Group
	stop   context.CancelFunc
	sent   int
}

const streamSubject = "bench.stream"

func startAcks(ctx context.Context, dir string) (a *ackStage, err error) {
	a = &ackStage{}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.close())
		}
	}()
	if err = os.RemoveAll(dir); err != nil {
		return a, err
	}
	if a.line, err = StartLine(ctx, LineConfig{Dir: filepath.Join(dir, "line"), Tables: 1}); err != nil {
		return a, err
	}
	if a.server, err = startNATS(filepath.Join(dir, "bare-nats"), false); err != nil {
		return a, err
	}
	if a.stream, err = startNATS(filepath.Join(dir, "stream"), true); err != nil {
		return a, err
	}
	for _, s := range []*server.Server{a.server, a.server, a.stream} {
		nc, err := connect(s)
		if err != nil {
			return a, err
		}
		a.conns = append(a.conns, nc)
	}
	js, err := jetstream.New(a.conns[2])
	if err != nil {
		return a, err
	}
	if _, err = js.CreateStream(ctx, jetstream.StreamConfig{Name: "BENCH", Subjects: []string{streamSubject}}); err != nil {
		return a, err
	}
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	a.stop = stop
	if a.bare, err = OpenBare(a.conns[1], "bench.bare", filepath.Join(dir, "bare")); err != nil {
		return a, err
	}
	a.g.Go(func() error { return a.bare.Run(run) })
	return a, nil
}

func (a *ackStage) close() error {
	var err error
	if a.stop != nil {
		a.stop()
		err = a.g.Wait()
	}
	for _, nc := range a.conns {
		nc.Close()
	}
	for _, s := range []*server.Server{a.server, a.stream} {
		if s != nil {
			stopNATS(s)
		}
	}
	if a.line != nil {
		err = errors.Join(err, a.line.Close())
	}
	return err
}

// sides are ours, the bare loop and JetStream, with the same NDJSON messages.
func (a *ackStage) sides(rows int) []*side {
	return a.sidesOf(func(i int) *nats.Msg { return a.line.message("node:T0", i*rows, rows, same) })
}

// sidesOf are ours, the bare loop and JetStream, with the same messages.
func (a *ackStage) sidesOf(message func(i int) *nats.Msg) []*side {
	request := func(subject string) func(int) *nats.Msg {
		return func(i int) *nats.Msg {
			m := message(i)
			if subject != "" {
				m.Subject = subject
			}
			return m
		}
	}
	return []*side{
		{name: "ours", load: Load{Conn: a.line.producer, Request: request(""), Check: durable}, syncs: a.lineSyncs},
		{name: "bare", load: Load{Conn: a.conns[0], Request: request("bench.bare"), Check: isOK}, syncs: a.bare.syncs},
		{name: "JetStream", load: Load{Conn: a.conns[2], Request: request(streamSubject), Check: isPubAck}, syncs: func() uint64 { return 0 }},
	}
}

func (a *ackStage) lineSyncs() uint64 {
	st, err := a.line.Log.Status(context.Background()) // a log in this process answers from memory
	if err != nil {
		return 0
	}
	return st.Syncs
}

// run adds one measurement to a side. Message numbers go on over all runs, so
// that no key is written twice.
func (a *ackStage) run(ctx context.Context, s *side, inFlight int, d time.Duration, rate float64) error {
	l := s.load
	l.InFlight, l.For, l.Rate, l.First = inFlight, d, rate, a.sent
	before, cost := s.syncs(), spent()
	m, err := l.Run(ctx)
	if err != nil {
		return err
	}
	s.cost.add(cost)
	a.sent += m.Acks
	s.synced += s.syncs() - before
	s.acked += uint64(m.Acks)
	s.runs = append(s.runs, m)
	return nil
}

func isOK(reply []byte) error {
	if string(reply) != "ok" {
		return fmt.Errorf("the bare loop answered %q", reply)
	}
	return nil
}

func isPubAck(reply []byte) error {
	if !bytes.Contains(reply, []byte(`"seq":`)) {
		return fmt.Errorf("JetStream answered %q", reply)
	}
	return nil
}
