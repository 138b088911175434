package publisher

import (
	"errors"
	"fmt"

	"github.com/foldline/foldline/fence"
)

// What went wrong, by what the caller can do. After any error of Publish the Publisher is used up: claim again, which
// completes or drops what was begun.
var (
	// ErrFenced: a higher epoch owns the graph or the lane. Stop being the owner. It is fence.ErrFenced.
	ErrFenced = fence.ErrFenced
	// ErrConflict: what the call expected is not so. Refresh and decide anew.
	ErrConflict = errors.New("publisher: conflict")
	// ErrInvalid: the input breaks a rule. Nothing was changed.
	ErrInvalid = errors.New("publisher: invalid")
	// ErrManifestSize: the manifest of a table to enrol is too large to be rewritten by every fold. It refines ErrInvalid.
	ErrManifestSize = errors.New("publisher: manifest too large to enrol")
	// ErrIncarnation: another incarnation of the lane is open, or this one is closed.
	ErrIncarnation = errors.New("publisher: incarnation refused")
	// ErrLanesChanging: the lane count is being changed. Try again when that is done.
	ErrLanesChanging = errors.New("publisher: the lane count changes")
	// ErrUnknownOutcome: whether the commit landed could not be told. Claim again.
	ErrUnknownOutcome = errors.New("publisher: unknown outcome")
	// ErrStarved: other writers were faster than every attempt on a table. Ask them to stop, or to leave gaps; try again.
	ErrStarved = errors.New("publisher: other writers were faster than each attempt")
	// ErrCorrupt: a record, or what it names, is damaged or gone. Stop and alert.
	ErrCorrupt = errors.New("publisher: corrupt")
	// ErrFormat: an object of another format number. Class invalid: use the program that wrote it.
	ErrFormat = errors.New("publisher: unknown format")
	// ErrUsedUp: an earlier call left the Publisher with an unfinished fold. Claim again.
	ErrUsedUp = errors.New("publisher: used up by an earlier error")
)

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}
