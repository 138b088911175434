package telemetry

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"strings"

	"github.com/hashicorp/go-multierror"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Options says what to build. The zero value logs text at info to standard error, keeps metrics for Handler only
// and records no trace.
type Options struct {
	// Service names the process in metrics and traces; default "foldline".
	Service string
	// Version of the program, "" to leave it out.
	Version string
	// Instance tells processes of one service apart, "" to leave it out.
	Instance string
	// LogLevel is debug, info, warn or error; default info.
	LogLevel string
	// LogFormat is text or json; default text.
	LogFormat string
	// LogOutput defaults to standard error.
	LogOutput io.Writer
	// OTLPEndpoint is the base URL of a collector ("http://host:4318") for metrics and traces, "" for none.
	OTLPEndpoint string
	// TraceRatio is the share of traces without a parent that are sampled, 0 to 1; a parent's decision is kept.
	TraceRatio float64
	// SpanExporter receives spans beside the endpoint; nil for none.
	SpanExporter sdktrace.SpanExporter
}

// EnsureDefaults fills every zero field that has a default.
func (o *Options) EnsureDefaults() {
	if o.Service == "" {
		o.Service = "foldline"
	}
	if o.LogLevel == "" {
		o.LogLevel = "info"
	}
	if o.LogFormat == "" {
		o.LogFormat = "text"
	}
	if o.LogOutput == nil {
		o.LogOutput = os.Stderr
	}
}

// Validate reports all faults of the options together.
func (o *Options) Validate() error {
	var faults *multierror.Error
	if _, err := parseLevel(o.LogLevel); err != nil {
		faults = multierror.Append(faults, err)
	}
	if o.LogFormat != "text" && o.LogFormat != "json" {
		faults = multierror.Append(faults, fmt.Errorf("telemetry: log format %q is neither text nor json", o.LogFormat))
	}
	if o.TraceRatio < 0 || o.TraceRatio > 1 {
		faults = multierror.Append(faults, fmt.Errorf("telemetry: trace ratio %v is not in 0 to 1", o.TraceRatio))
	}
	if err := CheckEndpoint(o.OTLPEndpoint); err != nil {
		faults = multierror.Append(faults, err)
	}
	return faults.ErrorOrNil()
}

// CheckEndpoint accepts an http or https URL, and "" for none. Its error does not quote the URL, which may hold a password.
func CheckEndpoint(endpoint string) error {
	if endpoint == "" {
		return nil
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return errors.New("telemetry: the OTLP endpoint is no http or https URL")
	}
	return nil
}

func parseLevel(text string) (slog.Level, error) {
	switch strings.ToLower(text) {
	case "debug":
		return slog.LevelDebug, nil
	case "info":
		return slog.LevelInfo, nil
	case "warn":
		return slog.LevelWarn, nil
	case "error":
		return slog.LevelError, nil
	}
	return 0, fmt.Errorf("telemetry: log level %q is none of debug, info, warn, error", text)
}
