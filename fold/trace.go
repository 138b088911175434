package fold

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// maxTracedEntries bounds the spans and links of one fold; entries beyond it are
// folded like all others and only not traced.
const maxTracedEntries = 1000

// startSpan opens the span of a fold: one per cut, linked to the traced entries
// that it holds.
func (f *Folder) startSpan(ctx context.Context, c *cut) (context.Context, trace.Span) {
	var links []trace.Link
	for parent := range c.traced {
		links = append(links, trace.Link{SpanContext: parent})
	}
	return f.opts.Tracer.Start(ctx, "foldline.fold", trace.WithLinks(links...), trace.WithAttributes(
		attribute.Int("foldline.rows", c.rows), attribute.Int("foldline.entries", c.entries)))
}

// traceVisible ends the story of each traced message in its own trace: a span
// "foldline.visible" that links to the fold whose publish showed it.
func (f *Folder) traceVisible(ctx context.Context, c *cut, now time.Time) {
	link := trace.WithLinks(trace.LinkFromContext(ctx))
	for parent, durable := range c.traced {
		_, span := f.opts.Tracer.Start(trace.ContextWithRemoteSpanContext(context.WithoutCancel(ctx), parent),
			"foldline.visible", link, trace.WithTimestamp(durable))
		span.End(trace.WithTimestamp(now))
	}
}

// traced iterates over the sampled traces of the cut's entries, with the log
// time at which each became durable.
func (c *cut) traced(yield func(trace.SpanContext, time.Time) bool) {
	n := 0
	for _, l := range c.lanes {
		for _, b := range l.batches {
			for i := range b.Entries {
				parent := spanContext(b.Entries[i].Trace)
				if !parent.IsSampled() {
					continue
				}
				if n++; n > maxTracedEntries || !yield(parent, b.Time) {
					return
				}
			}
		}
	}
}

// spanContext reads a W3C traceparent; what is none gives an invalid context.
func spanContext(traceparent string) trace.SpanContext {
	if traceparent == "" {
		return trace.SpanContext{}
	}
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": traceparent})
	return trace.SpanContextFromContext(ctx)
}
