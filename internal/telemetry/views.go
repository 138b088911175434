package telemetry

import sdkmetric "go.opentelemetry.io/otel/sdk/metric"

// views gives histograms buckets that fit their unit; the SDK's own are made for milliseconds.
func views() []sdkmetric.View {
	return []sdkmetric.View{
		histogram("s", []float64{
			50e-6, 100e-6, 200e-6, 400e-6, 800e-6, 1.6e-3, 3e-3, 6e-3, 12e-3, 25e-3, 50e-3,
			0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
		}),
		histogram("By", []float64{
			256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20, 256 << 20, 1 << 30,
		}),
	}
}

// histogram is a view of all histograms of a unit of OpenTelemetry's conventions.
func histogram(unit string, bounds []float64) sdkmetric.View {
	return sdkmetric.NewView(
		sdkmetric.Instrument{Kind: sdkmetric.InstrumentKindHistogram, Unit: unit},
		sdkmetric.Stream{Aggregation: sdkmetric.AggregationExplicitBucketHistogram{Boundaries: bounds}},
	)
}
