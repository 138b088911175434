// Package exit turns the errors of every other package into exit codes and one line for people.
//
// It is fed by the commands' mains and feeds the shell. The codes are a contract with scripts and stand in the README.
package exit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/foldline/foldline/client"
	"github.com/foldline/foldline/cmd/internal/feed"
	"github.com/foldline/foldline/cmd/internal/infer"
	"github.com/foldline/foldline/cmd/internal/lease"
	"github.com/foldline/foldline/cmd/internal/run"
	"github.com/foldline/foldline/fold"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/envelope"
	"github.com/foldline/foldline/internal/ingest"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/publisher"
	"github.com/foldline/foldline/wal"
)

// The exit codes.
const (
	OK          = 0
	Other       = 1   // anything that has no class, such as an I/O error
	Invalid     = 2   // usage, settings, refused rows, no such table: change the request
	Conflict    = 3   // something else is there: read again and decide again
	Fenced      = 4   // another owner has taken over: this process must not go on
	Busy        = 5   // in use, full or unreachable: try again later
	Corrupt     = 6   // damaged or missing data: an operator has to look
	Unknown     = 7   // it may or may not have happened: read back
	Interrupted = 130 // ended by a signal before the job was done
)

// classes are the sentinels of each code: the first that an error wraps decides. The gravest come first, except that a
// sentinel that explains another one stands before it.
var classes = []struct {
	code      int
	hint      string
	sentinels []error
}{
	{Corrupt, lookHint, []error{
		envelope.ErrCorrupt, wal.ErrCorrupt, wal.ErrGap, wal.ErrReleased, lance.ErrCorrupt, heads.ErrCorrupt, heads.ErrOtherVersion,
		publisher.ErrCorrupt, ingest.ErrLogBehind, ingest.ErrGraphBehind,
	}},
	// What retention has taken is not missing.
	{Invalid, "", []error{heads.ErrPruned}},
	// Nobody looks for an object that the heads do not name: one that is not found is missing, one that ends too early damaged.
	{Corrupt, lookHint, []error{lance.ErrNotFound, objstore.ErrNotFound, objstore.ErrRange}},
	// A log ends for good at a full disk, and goes on after a restart with space.
	{Busy, "make space on that file system", []error{syscall.ENOSPC, syscall.EDQUOT}},
	{Corrupt, lookHint, []error{wal.ErrFault}},
	{Fenced, "another process owns the graph or the lane; see foldline status", []error{
		envelope.ErrFenced, wal.ErrFenced, publisher.ErrFenced, fold.ErrFenced, ingest.ErrFenced, lease.ErrLost,
	}},
	{Unknown, "read back before you repeat it", []error{
		envelope.ErrUnknown, wal.ErrUnknownOutcome, lance.ErrUnknownOutcome, publisher.ErrUnknownOutcome, objstore.ErrUnknownOutcome,
	}},
	{Busy, "try again later", []error{
		envelope.ErrBusy, wal.ErrBusy, wal.ErrLocked, wal.ErrUnavailable, wal.ErrNotReady, publisher.ErrLanesChanging, objstore.ErrBusy, run.ErrInUse,
		run.ErrStopLimit, publisher.ErrStarved, run.ErrUnreachable, run.ErrAddressInUse, run.ErrNoFolder, lease.ErrUnavailable, client.ErrNoOwner,
	}},
	{Conflict, "look at what is there (foldline heads) and decide again", []error{
		envelope.ErrConflict, publisher.ErrConflict, publisher.ErrIncarnation, lance.ErrConflict, lance.ErrExists, objstore.ErrExists,
	}},
	{Invalid, "", []error{
		envelope.ErrInvalid, wal.ErrInvalid, wal.ErrIdentity, wal.ErrFormat, wal.ErrTooLarge, publisher.ErrInvalid, lance.ErrInvalid,
		lance.ErrUnsupported, heads.ErrNoGraph, heads.ErrFormat, heads.ErrNotFound,
		objstore.ErrInvalidKey, objstore.ErrUnsupported, objstore.ErrDenied, objstore.ErrNoBucket, ingest.ErrWrongGraph, fold.ErrInvalid, infer.ErrEmpty, infer.ErrNoKey, feed.ErrRefused,
		run.ErrSettings, lease.ErrNoJetStream, ErrUsage, fs.ErrNotExist,
	}},
}

// lookHint stands with everything that must not be repeated before somebody has looked.
const lookHint = "stop and look at what the message names"

// ErrUsage marks a command line that asks for something impossible.
var ErrUsage = errors.New("usage")

// Code is the exit code of an error.
func Code(err error) int {
	code, _ := classify(err)
	return code
}

func classify(err error) (code int, hint string) {
	if err == nil {
		return OK, ""
	}
	for _, c := range classes {
		for _, s := range c.sentinels {
			if errors.Is(err, s) {
				return c.code, c.hint
			}
		}
	}
	var parse *kong.ParseError
	var line *infer.LineError
	var row *feed.RowError
	switch {
	case errors.As(err, &parse), errors.As(err, &line), errors.As(err, &row):
		return Invalid, ""
	case errors.Is(err, context.Canceled):
		return Interrupted, ""
	}
	return Other, ""
}

// Report writes the error in one line, with what to do about it, and returns its code.
func Report(w io.Writer, program string, err error) int {
	code, hint := classify(err)
	if code == OK {
		return code
	}
	text := strings.Join(strings.Fields(err.Error()), " ")
	if hint != "" {
		text += "; " + hint
	}
	_, _ = fmt.Fprintf(w, "%s: %s\n", program, text)
	return code
}
