package wal

import (
	"errors"
	"fmt"
	"time"
)

// Sentinels; test with errors.Is. What the caller should do stands with each.
var (
	// ErrInvalid: the argument can never be accepted; do not retry.
	ErrInvalid = errors.New("wal: invalid")
	// ErrUnsupported: the log cannot hold a column of this Arrow type.
	ErrUnsupported = errors.New("wal: unsupported type")
	// ErrTooLarge: the entry exceeds a stated limit; split it.
	ErrTooLarge = errors.New("wal: entry too large")
	// ErrBusy: a bound is reached; retry after [BusyError].RetryAfter.
	ErrBusy = errors.New("wal: busy")
	// ErrNoSpace: less is free on the log's file system than has to be; entries
	// are answered [ErrBusy] until a release or somebody else makes space.
	ErrNoSpace = errors.New("wal: free space too low")
	// ErrNotReady: the log does not admit entries (no epoch yet, stopping, or
	// failed). Nothing of the entry is durable.
	ErrNotReady = errors.New("wal: not ready")
	// ErrSealed: the log takes no more entries; the lanes of its graph are being changed. Nothing of the entry is durable. It is an ErrNotReady.
	ErrSealed = fmt.Errorf("%w: sealed", ErrNotReady)
	// ErrUnknownOutcome: the entry was written but its sync failed or was never
	// reported; it may or may not survive. Retry with the same message id.
	ErrUnknownOutcome = errors.New("wal: unknown outcome")
	// ErrMsgIDReused: the message id was used for another body within the window.
	ErrMsgIDReused = errors.New("wal: message id reused with another body")
	// ErrUnknownMsgID: an [Entry] that asks for a message id which the window does
	// not hold. Nothing of it was stored.
	ErrUnknownMsgID = errors.New("wal: unknown message id")
	// ErrFenced: the request names another incarnation or epoch than the log's;
	// read the heads again.
	ErrFenced = errors.New("wal: fenced")
	// ErrReleased: the requested range was released; see [RangeError].
	ErrReleased = errors.New("wal: released")
	// ErrGap: entries that must exist are missing; see [RangeError]. Stop and alert.
	ErrGap = errors.New("wal: gap")
	// ErrLocked: another process holds the directory; the text names it.
	ErrLocked = errors.New("wal: directory in use")
	// ErrFormat: the directory or peer has another format number than this program.
	ErrFormat = errors.New("wal: format")
	// ErrIdentity: the directory belongs to another graph or lane.
	ErrIdentity = errors.New("wal: belongs to another graph or lane")
	// ErrCorrupt: stored bytes do not check; see [CorruptError]. Stop and alert.
	ErrCorrupt = errors.New("wal: corrupt")
	// ErrFault: the log failed for good in this process; restart it.
	ErrFault = errors.New("wal: failed")
	// ErrClosed: the log was closed.
	ErrClosed = errors.New("wal: closed")
	// ErrUnavailable: no owner of the lane answered a remote request; retry.
	ErrUnavailable = errors.New("wal: lane unavailable")
)

// BusyError is push-back: nothing of the entry was taken.
type BusyError struct {
	// Reason names the bound that was reached: "entries in flight", "bytes in
	// flight", "unreleased bytes", "free space" or "storage".
	Reason string
	// RetryAfter is when a retry has a chance.
	RetryAfter time.Duration
}

// The reasons of a [BusyError].
const (
	busyEntries    = "entries in flight"
	busyBytes      = "bytes in flight"
	busyUnreleased = "unreleased bytes"
	busySpace      = "free space"
	busyStorage    = "storage"
)

// busyReasons are all of them.
var busyReasons = []string{busyEntries, busyBytes, busyUnreleased, busySpace, busyStorage}

func (e *BusyError) Error() string {
	return fmt.Sprintf("wal: busy (%s), retry after %v", e.Reason, e.RetryAfter)
}

// Is makes errors.Is(err, ErrBusy) hold.
func (e *BusyError) Is(target error) bool { return target == ErrBusy }

// RangeError names a range of sequences (From, To] that a reader asked for and
// the log cannot give; Err is [ErrReleased] or [ErrGap].
type RangeError struct {
	Err      error
	From, To Seq
}

func (e *RangeError) Error() string {
	return fmt.Sprintf("%v: entries above %d up to %d", e.Err, e.From, e.To)
}

// Unwrap gives ErrReleased or ErrGap.
func (e *RangeError) Unwrap() error { return e.Err }

// CorruptError says where stored bytes do not check.
type CorruptError struct {
	File   string // directory or file
	Key    string // record key, readable
	Offset int    // offset within the record's bytes
	Err    error  // cause
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("wal: corrupt: %s record %s at byte %d: %v", e.File, e.Key, e.Offset, e.Err)
}

// Unwrap gives the cause.
func (e *CorruptError) Unwrap() error { return e.Err }

// Is makes errors.Is(err, ErrCorrupt) hold.
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }
