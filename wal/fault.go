package wal

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

func wrapf(sentinel error, format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, sentinel)...)
}

// fault is why a log stopped admitting entries for good, and the storage
// errors that may pass.
type fault struct {
	// done is closed by the first permanent fault.
	done chan struct{}
	// stopped is closed when a goroutine inside the storage engine was stopped;
	// the engine must not be called to write or close again.
	stopped chan struct{}

	mu  sync.Mutex
	err error // first permanent fault
	// ended is the error of the last flush event, nil when it succeeded.
	ended error
	// flush is set while flushes fail.
	flush error
}

func newFault() *fault {
	return &fault{done: make(chan struct{}), stopped: make(chan struct{})}
}

// set records the first permanent fault.
func (f *fault) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = fmt.Errorf("%w: %w", ErrFault, err)
		close(f.done)
	}
}

// stop records a fault inside the storage engine and never returns.
func (f *fault) stop(err error) {
	f.set(err)
	f.mu.Lock()
	if !f.isStopped() {
		close(f.stopped)
	}
	f.mu.Unlock()
	select {}
}

func (f *fault) isStopped() bool {
	select {
	case <-f.stopped:
		return true
	default:
		return false
	}
}

func (f *fault) get() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// setFlush notes how a flush ended. An error may be none (a flush that found
// nothing to write has one too); a real one is reported again by setBackground.
func (f *fault) setFlush(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = err
	if err == nil {
		f.flush = nil
	}
}

// setBackground takes an error of a flush or a compaction. Pebble repeats a
// flush until it succeeds, and until then admission is held back. A compaction
// that fails costs space and is repeated later; it holds nothing back.
func (f *fault) setBackground(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended != nil && errors.Is(err, f.ended) {
		f.flush = err
	}
}

// storage gives the flush error that holds admission back for now.
func (f *fault) storage() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.flush == nil {
		return nil
	}
	return fmt.Errorf("wal: storage: %w", f.flush)
}

// attempt makes a call into the storage engine that may be stopped inside it,
// and comes back with the fault then.
func (f *fault) attempt(call func() error) error {
	result := make(chan error, 1)
	go func() { result <- call() }()
	select {
	case err := <-result:
		return err
	case <-f.stopped:
		return f.get()
	}
}

// storageLogger hands Pebble's log to ours. Fatalf is never swallowed: it ends
// the log. It does not return, because Pebble would go on as if nothing had
// happened (a failed manifest sync would be followed by the deletion of the
// logs it covers).
type storageLogger struct {
	logger *slog.Logger
	fault  *fault
}

var _ pebble.Logger = storageLogger{}

func (s storageLogger) Infof(format string, args ...any) {
	s.logger.Debug("wal storage", "event", fmt.Sprintf(format, args...))
}

func (s storageLogger) Errorf(format string, args ...any) {
	s.logger.Warn("wal storage error", "event", fmt.Sprintf(format, args...))
}

func (s storageLogger) Fatalf(format string, args ...any) {
	s.fault.stop(fmt.Errorf("storage: "+format, args...))
}

// listener turns Pebble's events into faults, log lines and counts.
func (l *Log) listener() *pebble.EventListener {
	return &pebble.EventListener{
		BackgroundError: func(err error) {
			l.fault.setBackground(err)
			l.metrics.storageError()
			l.opts.Logger.Warn("wal storage error", "error", err)
		},
		FlushEnd: func(info pebble.FlushInfo) { l.fault.setFlush(info.Err) },
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			l.fault.set(fmt.Errorf("%w: %s: %w", ErrCorrupt, info.Path, info.Details))
		},
		DiskSlow: func(info pebble.DiskSlowInfo) {
			l.opts.Logger.Warn("wal disk slow", "path", info.Path, "seconds", info.Duration.Seconds())
		},
		WriteStallBegin: func(info pebble.WriteStallBeginInfo) {
			l.opts.Logger.Warn("wal writes stalled", "reason", info.Reason)
		},
	}
}
