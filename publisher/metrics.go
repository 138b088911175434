package publisher

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// instruments are the package's metrics and its tracer.
type instruments struct {
	tracer     trace.Tracer
	publishes  metric.Int64Counter
	duration   metric.Float64Histogram
	commits    metric.Int64Counter
	conflicts  metric.Int64Counter
	fenced     metric.Int64Counter
	recoveries metric.Int64Counter
	suspended  metric.Int64Counter
	pruned     metric.Int64Counter
	compacted  metric.Int64Counter
	redrafts   metric.Int64Counter
	versions   metric.Int64Counter
	files      metric.Int64Counter
}

func newInstruments(o Options) (*instruments, error) {
	i := &instruments{tracer: o.Tracer}
	var err error
	counter := func(name, unit, what string) metric.Int64Counter {
		c, e := o.Meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(what))
		if e != nil {
			err = e
		}
		return c
	}
	i.publishes = counter("foldline.publish.count", "{publish}", "Manifest commits, by kind.")
	i.commits = counter("foldline.publish.commits", "{commit}", "Table commits of folds.")
	i.conflicts = counter("foldline.publish.conflicts", "{conflict}", "Attempts that lost to another commit, on a table or the manifest.")
	i.fenced = counter("foldline.publish.fenced", "{refusal}", "Refusals because a higher epoch was seen.")
	i.recoveries = counter("foldline.publish.recoveries", "{fold}", "Folds completed from their record.")
	i.suspended = counter("foldline.publish.suspended", "{table}", "Tables given up by a fold.")
	i.pruned = counter("foldline.publish.pruned", "{version}", "Old manifest versions removed.")
	i.redrafts = counter("foldline.publish.redrafts", "{file}", "Data files of the heads that were uploaded ahead of the tables' confirmation and not used.")
	i.compacted = counter("foldline.publish.compacted", "{row}", "Live rows that compactions have written anew.")
	i.versions = counter("foldline.publish.cleaned_versions", "{version}", "Old versions of tables removed.")
	i.files = counter("foldline.publish.cleaned_files", "{file}", "Files of tables removed with the versions that named them, or because none does.")
	duration, e := o.Meter.Float64Histogram("foldline.publish.duration", metric.WithUnit("s"),
		metric.WithDescription("From the record to the published heads."))
	if e != nil {
		err = e
	}
	i.duration = duration
	if err != nil {
		return nil, err
	}
	// The counters that alerts and the dashboard watch exist before they count: one that appears at 1 has not increased.
	for _, c := range []metric.Int64Counter{i.conflicts, i.fenced, i.recoveries, i.suspended, i.compacted, i.versions, i.files} {
		c.Add(context.Background(), 0)
	}
	return i, nil
}

func (i *instruments) span(ctx context.Context, name string, attrs ...attribute.KeyValue) (context.Context, func(error)) {
	ctx, span := i.tracer.Start(ctx, name, trace.WithAttributes(attrs...))
	return ctx, func(err error) {
		if err != nil {
			span.RecordError(err)
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
	}
}

func (i *instruments) published(ctx context.Context, kind string) {
	i.publishes.Add(ctx, 1, metric.WithAttributes(attribute.String("kind", kind)))
}

func (i *instruments) since(ctx context.Context, clock func() time.Time, start time.Time) {
	i.duration.Record(ctx, clock().Sub(start).Seconds())
}
