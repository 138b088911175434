package wal

import (
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

func wrapf(sentinel error, format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, sentinel)...)
}

// fault is why a log stopped admitting entries for good, and the storage
// errors that may pass.
type fault struct {
	mu   sync.Mutex
	err  error // first permanent fault
	done chan struct{}
	// poison: the storage engine stopped halfway; it must not be called again.
	poison bool
	// background is the last background error, cleared by a flush that succeeds.
	background error
}

// set records the first permanent fault and wakes Run.
func (f *fault) set(err error, poison bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.poison = f.poison || poison
	if f.err == nil {
		f.err = fmt.Errorf("%w: %w", ErrFault, err)
		close(f.done)
	}
}

func (f *fault) get() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

func (f *fault) poisoned() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.poison
}

func (f *fault) setBackground(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.background = err
}

// storage gives the background error that holds admission back for now.
func (f *fault) storage() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.background == nil {
		return nil
	}
	return fmt.Errorf("wal: storage: %w", f.background)
}

// storageLogger hands Pebble's log to ours. Fatalf is never swallowed: it marks
// the log failed for good. It must not return either, because Pebble goes on as
// if nothing had happened (a failed manifest sync would be followed by the
// deletion of logs it covers): on a goroutine of ours it unwinds to guarded, on
// one of Pebble's own it stops that goroutine forever.
type storageLogger struct {
	logger *slog.Logger
	fault  *fault
}

var _ pebble.Logger = storageLogger{}

// fatalStorage is what Fatalf panics with.
type fatalStorage struct{ err error }

func (s storageLogger) Infof(format string, args ...any) {
	s.logger.Debug("wal storage", "event", fmt.Sprintf(format, args...))
}

func (s storageLogger) Errorf(format string, args ...any) {
	s.logger.Warn("wal storage error", "event", fmt.Sprintf(format, args...))
}

func (s storageLogger) Fatalf(format string, args ...any) {
	err := fmt.Errorf("storage: "+format, args...)
	s.logger.Error("wal storage failed", "error", err)
	s.fault.set(err, true)
	if calledByGuarded() {
		panic(fatalStorage{err})
	}
	select {}
}

// calledByGuarded tells whether the current goroutine runs under Log.guarded.
func calledByGuarded() bool {
	pcs := make([]uintptr, 128)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	for {
		frame, more := frames.Next()
		if strings.HasSuffix(frame.Function, "/wal.runGuarded") {
			return true
		}
		if !more {
			return false
		}
	}
}

// guarded calls into Pebble. Pebble answers some disk errors (a log that cannot
// be rotated) with a panic; that ends the log, not the process.
func (l *Log) guarded(what string, call func() error) error {
	return runGuarded(&l.fault, what, call)
}

func runGuarded(f *fault, what string, call func() error) (err error) {
	defer func() {
		switch cause := recover().(type) {
		case nil:
		case fatalStorage:
			err = fmt.Errorf("wal: %s: %w: %w", what, ErrFault, cause.err)
		case error:
			f.set(fmt.Errorf("%s: %w", what, cause), true)
			err = fmt.Errorf("wal: %s: %w: %w", what, ErrFault, cause)
		default:
			f.set(fmt.Errorf("%s: %v", what, cause), true)
			err = fmt.Errorf("wal: %s: %w: %v", what, ErrFault, cause)
		}
	}()
	return call()
}

// listener turns Pebble's events into faults, log lines and counts.
func (l *Log) listener() *pebble.EventListener {
	return &pebble.EventListener{
		BackgroundError: func(err error) {
			l.fault.setBackground(err)
			l.metrics.storageError()
			l.opts.Logger.Warn("wal storage error", "error", err)
		},
		FlushEnd: func(info pebble.FlushInfo) {
			if info.Err == nil {
				l.fault.setBackground(nil)
			}
		},
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			l.fault.set(fmt.Errorf("%w: %s", ErrCorrupt, info.Path), false)
			l.opts.Logger.Error("wal storage corrupt", "path", info.Path, "error", info.Details)
		},
		DiskSlow: func(info pebble.DiskSlowInfo) {
			l.opts.Logger.Warn("wal disk slow", "path", info.Path, "seconds", info.Duration.Seconds())
		},
		WriteStallBegin: func(info pebble.WriteStallBeginInfo) {
			l.opts.Logger.Warn("wal writes stalled", "reason", info.Reason)
		},
	}
}

// spaceGuard watches the free space of the log's volume, so that producers are
// pushed back before a sync fails.
type spaceGuard struct {
	mu   sync.Mutex
	next time.Time
	low  bool
	// free gives the free bytes; ok is false where the file system cannot say.
	free func() (bytes int64, ok bool)
	min  int64
}

// spaceInterval is how often the volume is asked.
const spaceInterval = 100 * time.Millisecond

// isLow tells whether free space is below the minimum.
func (g *spaceGuard) isLow(now time.Time) bool {
	if g.min < 0 {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if now.Before(g.next) && g.next.Sub(now) <= spaceInterval {
		return g.low
	}
	g.next = now.Add(spaceInterval)
	bytes, ok := g.free()
	g.low = ok && bytes < g.min
	return g.low
}
