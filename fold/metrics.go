package fold

import (
	"context"
	"errors"
	"math"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/foldline/foldline/heads"
)

// metrics are the instruments of a folder.
type metrics struct {
	duration  metric.Float64Histogram
	rows      metric.Int64Counter
	entries   metric.Int64Counter
	rejected  metric.Int64Counter
	changed   metric.Int64Counter
	lag       metric.Float64Gauge
	backlog   metric.Int64Gauge
	failures  metric.Int64Counter
	tables    metric.Int64Gauge
	fragments metric.Int64Gauge
	repeated  metric.Int64Gauge
	// reported are what the last report said of tables: those that are held, and those with repeated keys.
	reported, repeating map[attribute.Set]bool
}

// newMetrics builds the instruments; a nil meter measures nothing.
func newMetrics(m metric.Meter) (*metrics, error) {
	if m == nil {
		m = noop.NewMeterProvider().Meter("")
	}
	b := instruments{meter: m}
	out := &metrics{
		duration:  b.seconds("foldline.fold.duration", "time from choosing a cut to its publish"),
		rows:      b.count("foldline.fold.rows", "{row}", "rows of published cuts, before coalescing"),
		entries:   b.count("foldline.fold.entries", "{entry}", "entries of published cuts"),
		rejected:  b.count("foldline.fold.rejected", "{row}", "rows sent to the dead letters, by code"),
		changed:   b.count("foldline.fold.changed", "{row}", "changes of published folds, by kind: inserted, updated, deleted, missing"),
		lag:       b.gauge("foldline.fold.lag", "s", "age of the oldest entry that was not published when a fold ended, well or not; 0 when nothing waits"),
		backlog:   b.level("foldline.fold.backlog", "By", "unreleased bytes of all lanes when the last cut was chosen"),
		tables:    b.level("foldline.fold.tables_held", "{table}", "tables that take no folds, by table and state: 1 while it is so"),
		fragments: b.level("foldline.fold.fragments", "{fragment}", "fragments of tables when they were last looked at for a compaction, by table"),
		repeated:  b.level("foldline.fold.duplicate_keys", "{key}", "keys with more than one live row, by table, as the heads say them"),
		failures:  b.count("foldline.fold.failures", "{fold}", "folds that ended in an error, by class"),
	}
	if err := errors.Join(b.errs...); err != nil {
		return nil, err
	}
	out.startAtZero(context.Background())
	return out, nil
}

// standbyGauge tells how warm a standby is.
func standbyGauge(m metric.Meter) (metric.Int64Gauge, error) {
	if m == nil {
		m = noop.NewMeterProvider().Meter("")
	}
	b := instruments{meter: m}
	g := b.level("foldline.fold.standby_behind", "{table}", "tables whose key index on a standby is not at the version that it last found in the heads")
	return g, errors.Join(b.errs...)
}

// startAtZero makes what alerts watch exist before it counts: a counter that appears at 1 has not increased.
func (m *metrics) startAtZero(ctx context.Context) {
	m.idle(ctx)
	m.rows.Add(ctx, 0)
	m.entries.Add(ctx, 0)
	for _, code := range rejectCodes {
		m.rejected.Add(ctx, 0, metric.WithAttributes(attribute.String("code", code)))
	}
	for _, class := range failureClasses {
		m.failures.Add(ctx, 0, metric.WithAttributes(attribute.String("class", class)))
	}
}

// instruments collects the errors of building instruments.
type instruments struct {
	meter metric.Meter
	errs  []error
}

func keep[T any](b *instruments, v T, err error) T {
	b.errs = append(b.errs, err)
	return v
}

func (b *instruments) seconds(name, what string) metric.Float64Histogram {
	v, err := b.meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(what),
		metric.WithExplicitBucketBoundaries(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60))
	return keep(b, v, err)
}

func (b *instruments) count(name, unit, what string) metric.Int64Counter {
	v, err := b.meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(what))
	return keep(b, v, err)
}

func (b *instruments) gauge(name, unit, what string) metric.Float64Gauge {
	v, err := b.meter.Float64Gauge(name, metric.WithUnit(unit), metric.WithDescription(what))
	return keep(b, v, err)
}

func (b *instruments) level(name, unit, what string) metric.Int64Gauge {
	v, err := b.meter.Int64Gauge(name, metric.WithUnit(unit), metric.WithDescription(what))
	return keep(b, v, err)
}

// published records a fold that landed.
func (m *metrics) published(ctx context.Context, r Report, codes map[string]int) {
	m.duration.Record(ctx, r.Duration.Seconds())
	m.rows.Add(ctx, int64(r.Rows))
	m.entries.Add(ctx, int64(r.Entries))
	m.lag.Record(ctx, r.Lag.Seconds())
	for kind, n := range map[string]int{"inserted": r.Inserted, "updated": r.Updated, "deleted": r.Deleted, "missing": r.Missing} {
		if n > 0 {
			m.changed.Add(ctx, int64(n), metric.WithAttributes(attribute.String("kind", kind)))
		}
	}
	for code, n := range codes {
		m.rejected.Add(ctx, int64(n), metric.WithAttributes(attribute.String("code", code)))
	}
}

// idle records that no lane holds anything to fold.
func (m *metrics) idle(ctx context.Context) { m.lag.Record(ctx, 0) }

func (m *metrics) failed(ctx context.Context, err error, lag time.Duration) {
	m.lag.Record(ctx, lag.Seconds())
	m.failures.Add(ctx, 1, metric.WithAttributes(attribute.String("class", classOf(err))))
}

// states reports which tables take no folds, and how many keys of which repeat; one of which that is over is reported as 0 once.
func (m *metrics) states(ctx context.Context, s *heads.Snapshot) {
	held, repeating := map[attribute.Set]int64{}, map[attribute.Set]int64{}
	for _, t := range s.Tables {
		name := attribute.String("table", t.Key)
		if t.Head.State.Held() {
			held[attribute.NewSet(name, attribute.String("state", string(t.Head.State)))] = 1
		}
		if n := t.Head.Duplicates.Keys; n > 0 {
			repeating[attribute.NewSet(name)] = int64(min(n, math.MaxInt64))
		}
	}
	m.reported = report(ctx, m.tables, held, m.reported)
	m.repeating = report(ctx, m.repeated, repeating, m.repeating)
}

// report records values, and 0 for those of the last report that are no more.
func report(ctx context.Context, g metric.Int64Gauge, now map[attribute.Set]int64, last map[attribute.Set]bool) map[attribute.Set]bool {
	reported := map[attribute.Set]bool{}
	for set, value := range now {
		reported[set] = true
		g.Record(ctx, value, metric.WithAttributeSet(set))
	}
	for set := range last {
		if !reported[set] {
			g.Record(ctx, 0, metric.WithAttributeSet(set))
		}
	}
	return reported
}
