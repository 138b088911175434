package wal

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// instruments are the log's own; none has an attribute of many values.
type instruments struct {
	syncs      metric.Int64Counter
	syncTime   metric.Float64Histogram
	faults     metric.Int64Counter
	batch      metric.Int64Histogram
	entries    metric.Int64Counter
	rows       metric.Int64Counter
	bytes      metric.Int64Counter
	duplicates metric.Int64Counter
	busy       metric.Int64Counter
	storage    metric.Int64Counter
	lane       metric.MeasurementOption
	// add and record are lane, in slices made once: a call with options of its own allocates.
	add    []metric.AddOption
	record []metric.RecordOption
	gauges metric.Registration
}

func newInstruments(m metric.Meter, l *Log) (*instruments, error) {
	i := &instruments{lane: metric.WithAttributes(attribute.Int64("lane", int64(l.opts.Lane)))}
	i.add, i.record = []metric.AddOption{i.lane}, []metric.RecordOption{i.lane}
	var errs []error
	keep := func(err error) { errs = append(errs, err) }
	counter := func(name, unit, what string) metric.Int64Counter {
		c, err := m.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(what))
		keep(err)
		return c
	}
	i.syncs = counter("foldline.wal.sync", "{sync}", "Syncs of the log.")
	i.faults = counter("foldline.wal.fault", "{fault}", "Faults that ended a log.")
	i.entries = counter("foldline.wal.entry", "{entry}", "Entries made durable.")
	i.rows = counter("foldline.wal.row", "{row}", "Rows made durable.")
	i.bytes = counter("foldline.wal.written", "By", "Bytes of stored values made durable.")
	i.duplicates = counter("foldline.wal.duplicate", "{entry}", "Entries answered with an earlier receipt.")
	i.busy = counter("foldline.wal.busy", "{entry}", "Entries pushed back, by reason.")
	i.storage = counter("foldline.wal.storage.error", "{error}", "Background errors of the storage engine.")
	var err error
	i.syncTime, err = m.Float64Histogram("foldline.wal.sync.duration", metric.WithUnit("s"),
		metric.WithDescription("From handing a batch to the log until its sync returned."))
	keep(err)
	i.batch, err = m.Int64Histogram("foldline.wal.batch", metric.WithUnit("{entry}"),
		metric.WithDescription("Entries that shared one sync."))
	keep(err)
	keep(i.observe(m, l))
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	i.startAtZero()
	return i, nil
}

// startAtZero makes the counters that alerts watch exist before they count: a counter that appears at 1 has not increased.
func (i *instruments) startAtZero() {
	ctx := context.Background()
	i.faults.Add(ctx, 0, i.lane)
	i.storage.Add(ctx, 0, i.lane)
	for _, reason := range busyReasons {
		i.busy.Add(ctx, 0, i.lane, metric.WithAttributes(attribute.String("reason", reason)))
	}
}

// observe registers the gauges that show how near each bound is.
func (i *instruments) observe(m metric.Meter, l *Log) error {
	gauge := func(name, unit, what string) metric.Int64ObservableGauge {
		g, err := m.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(what))
		if err != nil {
			return nil
		}
		return g
	}
	unreleased := gauge("foldline.wal.unreleased", "By", "Bytes synced and not released.")
	backlog := gauge("foldline.wal.unreleased.entries", "{entry}", "Entries synced and not released.")
	inFlight := gauge("foldline.wal.in_flight", "{entry}", "Entries appended and not yet synced.")
	inFlightBytes := gauge("foldline.wal.in_flight.size", "By", "Bytes appended and not yet synced.")
	free := gauge("foldline.wal.free", "By", "Bytes free on the log's file system.")
	minFree := gauge("foldline.wal.free.min", "By", "Bytes that have to be free there for entries to be admitted.")
	ready := gauge("foldline.wal.ready", "{state}", "1 while entries are admitted, else 0.")
	var err error
	i.gauges, err = m.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		s, err := l.Status(ctx)
		if err != nil {
			return err
		}
		entries, bytes := l.queue.load()
		o.ObserveInt64(unreleased, s.Bytes, i.lane)
		o.ObserveInt64(backlog, s.Entries, i.lane)
		o.ObserveInt64(inFlight, int64(entries), i.lane)
		o.ObserveInt64(inFlightBytes, bytes, i.lane)
		if s.FreeBytes >= 0 {
			o.ObserveInt64(free, s.FreeBytes, i.lane)
			o.ObserveInt64(minFree, max(0, l.opts.MinFreeBytes), i.lane)
		}
		state := int64(0)
		if s.Ready {
			state = 1
		}
		o.ObserveInt64(ready, state, i.lane)
		return nil
	}, unreleased, backlog, inFlight, inFlightBytes, free, minFree, ready)
	return err
}

func (i *instruments) synced(f *flight, took time.Duration) {
	ctx := context.Background()
	i.syncs.Add(ctx, 1, i.add...)
	i.syncTime.Record(ctx, took.Seconds(), i.record...)
	i.batch.Record(ctx, int64(f.entries), i.record...)
	i.entries.Add(ctx, int64(f.entries), i.add...)
	i.rows.Add(ctx, int64(f.rows), i.add...)
	i.bytes.Add(ctx, f.bytes, i.add...)
}

func (i *instruments) duplicate(n int) {
	if n > 0 {
		i.duplicates.Add(context.Background(), int64(n), i.lane)
	}
}

func (i *instruments) pushedBack(reason string) {
	i.busy.Add(context.Background(), 1, i.lane, metric.WithAttributes(attribute.String("reason", reason)))
}

func (i *instruments) failed()       { i.faults.Add(context.Background(), 1, i.lane) }
func (i *instruments) storageError() { i.storage.Add(context.Background(), 1, i.lane) }
