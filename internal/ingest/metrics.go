package ingest

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/foldline/foldline/internal/envelope"
)

// stateOptions say how far an entry has come.
type stateOptions struct {
	add    []metric.AddOption
	record []metric.RecordOption
}

func optionsOf(s envelope.State) stateOptions {
	o := withText("state", string(s))
	return stateOptions{[]metric.AddOption{o}, []metric.RecordOption{o}}
}

// metrics are the ingester's instruments. Their attributes have few values: states, classes and codes.
type metrics struct {
	acks, rows, dropped, duplicates    metric.Int64Counter
	refusals, lost, resolves, releases metric.Int64Counter
	ack, decode, resolve, release      metric.Float64Histogram

	failed, fine metric.MeasurementOption
	// durable and visible are options made once: a call with options of its own allocates.
	durable, visible stateOptions

	gauges metric.Registration

	mu    sync.Mutex
	codes map[envelope.Code]metric.MeasurementOption
}

func newMetrics(m metric.Meter, f *flight) (*metrics, error) {
	out := &metrics{
		durable: optionsOf(envelope.StateDurable), visible: optionsOf(envelope.StateVisible),
		fine: withText("outcome", "ok"), failed: withText("outcome", "error"),
		codes: map[envelope.Code]metric.MeasurementOption{},
	}
	var faults []error
	counter := func(name, unit, text string) metric.Int64Counter {
		c, err := m.Int64Counter("foldline.ingest."+name, metric.WithUnit(unit), metric.WithDescription(text))
		faults = append(faults, err)
		return c
	}
	seconds := func(name, text string) metric.Float64Histogram {
		h, err := m.Float64Histogram("foldline.ingest."+name, metric.WithUnit("s"), metric.WithDescription(text))
		faults = append(faults, err)
		return h
	}
	out.acks = counter("acks", "{message}", "Messages acknowledged.")
	out.rows = counter("rows", "{row}", "Rows acknowledged.")
	out.dropped = counter("dropped_members", "{member}", "Members of rows dropped because their table has no such column.")
	out.duplicates = counter("duplicates", "{message}", "Messages whose id had been acknowledged before.")
	out.refusals = counter("refusals", "{message}", "Messages refused, by class and code.")
	out.lost = counter("lost_replies", "{message}", "Replies the connection did not take.")
	out.resolves = counter("head_reads", "{read}", "Reads of the heads.")
	out.releases = counter("releases", "{release}", "Releases of the log.")
	out.ack = seconds("ack.duration", "From the arrival of a message to its receipt.")
	out.decode = seconds("decode.duration", "Decoding of the messages that were taken together.")
	out.resolve = seconds("head_read.duration", "One read of the heads.")
	out.release = seconds("release.duration", "One release of the log.")
	var err error
	out.gauges, err = observeFlight(m, f)
	return out, errors.Join(append(faults, err)...)
}

// observeFlight shows how near the bounds of the flight are.
func observeFlight(m metric.Meter, f *flight) (metric.Registration, error) {
	messages, err1 := m.Int64ObservableGauge("foldline.ingest.in_flight.messages", metric.WithUnit("{message}"), metric.WithDescription("Messages taken and not yet answered."))
	bytes, err2 := m.Int64ObservableGauge("foldline.ingest.in_flight.bytes", metric.WithUnit("By"), metric.WithDescription("Bytes taken and not yet answered."))
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	return m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		count, size := f.load()
		o.ObserveInt64(messages, int64(count))
		o.ObserveInt64(bytes, size)
		return nil
	}, messages, bytes)
}

// close takes the gauges away; their provider outlives the ingester.
func (m *metrics) close() error { return m.gauges.Unregister() }

func withText(key, value string) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String(key, value)))
}

func (m *metrics) acknowledged(r *request, took time.Duration) {
	ctx, state := context.Background(), m.durable
	if r.receipt.State == envelope.StateVisible {
		state = m.visible
	}
	m.acks.Add(ctx, 1, state.add...)
	m.rows.Add(ctx, int64(r.added.Rows))
	m.ack.Record(ctx, took.Seconds(), state.record...)
	if r.added.Dropped > 0 {
		m.dropped.Add(ctx, int64(r.added.Dropped))
	}
	if r.receipt.Duplicate {
		m.duplicates.Add(ctx, 1)
	}
}

func (m *metrics) refused(class envelope.Class, code envelope.Code) {
	m.mu.Lock()
	o, ok := m.codes[code]
	if !ok {
		o = metric.WithAttributeSet(attribute.NewSet(attribute.String("class", string(class)), attribute.String("code", string(code))))
		m.codes[code] = o
	}
	m.mu.Unlock()
	m.refusals.Add(context.Background(), 1, o)
}

func (m *metrics) replyLost() { m.lost.Add(context.Background(), 1) }

func (m *metrics) decoded(took time.Duration) { m.decode.Record(context.Background(), took.Seconds()) }

func (m *metrics) resolved(took time.Duration, err error) {
	m.resolve.Record(context.Background(), took.Seconds())
	m.resolves.Add(context.Background(), 1, m.outcome(err))
}

func (m *metrics) released(took time.Duration, err error) {
	m.release.Record(context.Background(), took.Seconds())
	m.releases.Add(context.Background(), 1, m.outcome(err))
}

func (m *metrics) outcome(err error) metric.MeasurementOption {
	if err != nil {
		return m.failed
	}
	return m.fine
}
