package heads

import (
	"slices"
	"strings"
	"time"
)

// State says what a head means.
type State string

// The states of a head.
const (
	// StateLive: folds and reads go on.
	StateLive State = "live"
	// StateTombstoned: the table was dropped; its id and path are not used again.
	StateTombstoned State = "tombstoned"
	// StateReplaced: a foreign overwrite or restore sits above our version; frozen until an operator decides.
	StateReplaced State = "replaced"
	// StateSuspended: it cannot be read, or takes no commit or barrier; rows that were acknowledged for it are dead letters until it is taken
	// back.
	StateSuspended State = "suspended"
	// StatePaused: an operator has given another writer a window; it ends at Hold.Until.
	StatePaused State = "paused"
	// StateDuplicateKeys: a foreign writer made a second live row of some key.
	StateDuplicateKeys State = "duplicate_keys"
)

func (s State) known() bool {
	return s.TakesFolds() || slices.Contains([]State{StateTombstoned, StateReplaced, StateSuspended, StatePaused}, s)
}

// TakesFolds tells the states in which a table takes rows and folds.
func (s State) TakesFolds() bool { return s == StateLive || s == StateDuplicateKeys }

// Held tells the states in which a table exists and takes none: the hold says why.
func (s State) Held() bool { return s == StateReplaced || s == StateSuspended || s == StatePaused }

// maxReasonBytes bounds a hold's reason: every publish writes it again.
const maxReasonBytes = 512

// Hold says why a table takes no folds.
type Hold struct {
	Reason string    // for people
	Since  time.Time // microseconds, UTC
	Until  time.Time // when a pause ends; zero for other states
}

// NewHold makes a hold from a time on; the reason is cut to what a head may carry, and until is zero except for a pause.
func NewHold(reason string, since, until time.Time) Hold {
	if len(reason) > maxReasonBytes {
		const more = "…"
		reason = reason[:maxReasonBytes-len(more)] + more
	}
	h := Hold{Reason: strings.ToValidUTF8(reason, ""), Since: since.UTC().Truncate(time.Microsecond)}
	if !until.IsZero() {
		h.Until = until.UTC().Truncate(time.Microsecond)
	}
	return h
}

// validate requires that a hold belongs to the state it comes with.
func (h Head) validate() error {
	switch {
	case !h.State.Held() && h.Hold != Hold{}:
		return corrupt("state %q with a hold", h.State)
	case len(h.Hold.Reason) > maxReasonBytes:
		return corrupt("a reason of %d bytes", len(h.Hold.Reason))
	case (h.State == StatePaused) == h.Hold.Until.IsZero():
		return corrupt("state %q is held until %v", h.State, h.Hold.Until)
	}
	return nil
}

// microsOrZero and timeOrZero keep the zero time, which has no place in microseconds since 1970.
func microsOrZero(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func timeOrZero(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}
