package wal

import (
	"io"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/foldline/foldline/internal/options"
)

// Limits of the format and defaults of the settings.
const (
	// MaxValueBytes is the size above which a sync batch is split into several
	// stored values. One larger entry stands alone.
	MaxValueBytes = 4 << 20
	// MaxEntryBytes bounds one entry; a larger one is refused with [ErrTooLarge].
	MaxEntryBytes = 64 << 20
	// MaxMsgIDBytes and MaxTraceBytes bound an entry's strings.
	MaxMsgIDBytes = 1024
	MaxTraceBytes = 256

	defaultMaxBytes           = 8 << 30
	defaultMaxInFlightBytes   = 64 << 20
	defaultMaxInFlightEntries = 1 << 16
	defaultMinFreeBytes       = 256 << 20
	defaultDedupeWindow       = 10 * time.Minute
	defaultDedupeMax          = 1_000_000
)

// Options configure a [Log]. The zero value of a field means its default.
type Options struct {
	// Dir is the log's directory; required. It is created when missing.
	Dir string
	// FS is the file system of all file access; default the operating system's.
	FS vfs.FS
	// Graph and Lane are the log's identity; a directory of another one is
	// refused with [ErrIdentity]. Graph is required.
	Graph string
	Lane  uint32

	// MaxBytes bounds the unreleased bytes; above it Append answers [ErrBusy].
	// Default 8 GiB. Small values stop producers early; very large ones can
	// fill the disk before the bound is met.
	MaxBytes int64
	// MaxInFlightBytes and MaxInFlightEntries bound what was appended and is not
	// yet synced; above them Append answers [ErrBusy]. Defaults 64 MiB, 65,536.
	MaxInFlightBytes   int64
	MaxInFlightEntries int
	// MinFreeBytes is the free space of the volume below which Append answers
	// [ErrBusy], so that a full disk is met before it fails a sync. Default
	// 256 MiB; negative turns the check off.
	MinFreeBytes int64
	// DedupeWindow and DedupeMax bound the message ids that are remembered, by
	// age and by number. Defaults 10 minutes and 1,000,000 (about 60 MB of
	// memory when full).
	DedupeWindow time.Duration
	DedupeMax    int

	// AcceptLoss opens a log that ends below what it acknowledged, which is
	// refused with [ErrGap] otherwise. What is missing is lost; receipts carry
	// DedupeSince from then on.
	AcceptLoss bool

	// Owns tells whether this process may still speak for the lane; [Serve] leaves
	// readers without an answer when it may not. It may be called concurrently.
	// Default always.
	Owns func() bool

	// Logger gets state changes and storage events; nil discards.
	Logger *slog.Logger
	// Meter makes the log's instruments; nil records nothing.
	Meter metric.Meter
	// Clock is the wall clock of dedupe and value times; default time.Now.
	Clock func() time.Time

	// memTableBytes is Pebble's memtable; tests make it small to see flushes.
	memTableBytes uint64
}

// EnsureDefaults fills every zero field with its default.
func (o *Options) EnsureDefaults() {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	options.Default(&o.MaxBytes, defaultMaxBytes)
	options.Default(&o.MaxInFlightBytes, defaultMaxInFlightBytes)
	options.Default(&o.MaxInFlightEntries, defaultMaxInFlightEntries)
	options.Default(&o.MinFreeBytes, defaultMinFreeBytes)
	options.Default(&o.DedupeWindow, defaultDedupeWindow)
	options.Default(&o.DedupeMax, defaultDedupeMax)
	options.Default(&o.memTableBytes, memTableBytes)
	if o.Owns == nil {
		o.Owns = func() bool { return true }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	if o.Meter == nil {
		o.Meter = noop.Meter{}
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
}

// Validate reports all faults of the options together.
func (o *Options) Validate() error {
	c := &options.Check{What: "wal: options", Class: ErrInvalid}
	c.That(o.Dir != "", "Dir is required")
	c.That(o.Graph != "", "Graph is required")
	c.That(len(o.Graph) <= maxGraphBytes, "Graph is too long")
	c.That(o.MaxBytes > 0, "MaxBytes must be positive")
	c.That(o.MaxInFlightBytes > 0, "MaxInFlightBytes must be positive")
	c.That(o.MaxInFlightEntries > 0, "MaxInFlightEntries must be positive")
	c.That(o.DedupeWindow > 0, "DedupeWindow must be positive")
	c.That(o.DedupeMax > 0, "DedupeMax must be positive")
	return c.Err()
}
