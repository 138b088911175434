// Package telemetry builds the logger, the meters and the tracers of a process.
//
// Only commands call it. They hand the results to the packages as constructor parameters; nothing is registered
// globally, so several processes' worth of telemetry can live in one (tests, the development server). Metrics are
// served in Prometheus form from a registry of their own and, like traces, sent by OTLP over HTTP when an endpoint
// is set. The results are safe for concurrent use.
package telemetry
