package heads

import (
	"fmt"
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
	// StateDuplicateKeys: another writer made a second live row of some key, see Head.Duplicates. The next upsert or delete of the key removes all its rows.
	StateDuplicateKeys State = "duplicate_keys"
)

func (s State) known() bool {
	return s.TakesFolds() || slices.Contains([]State{StateTombstoned, StateReplaced, StateSuspended, StatePaused}, s)
}

// TakesFolds tells the states in which a table takes rows and folds.
func (s State) TakesFolds() bool { return s == StateLive || s == StateDuplicateKeys }

// Held tells the states in which a table exists and takes none: the hold says why.
func (s State) Held() bool { return s == StateReplaced || s == StateSuspended || s == StatePaused }

// maxReasonBytes bounds a hold's reason, and a sample of keys: every publish writes them again.
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

// Duplicates say how many keys of a table have more than one live row.
type Duplicates struct {
	Keys uint64
	// Stale tells that the number may not be that of the head's version: it was counted at an earlier one, or only some keys were.
	Stale  bool
	Sample string // some of the keys, for people, as JSON objects with the key columns
}

// NewDuplicates makes Duplicates of some keys, given as they are shown; as many as a head may carry are kept.
func NewDuplicates(keys uint64, stale bool, sample []string) Duplicates {
	if keys == 0 {
		return Duplicates{}
	}
	d := Duplicates{Keys: keys, Stale: stale}
	for i, key := range sample {
		if i > 0 {
			key = d.Sample + ", " + key
		}
		if len(key) > maxReasonBytes {
			break
		}
		d.Sample = key
	}
	d.Sample = strings.ToValidUTF8(d.Sample, "")
	return d
}

// String is for people.
func (d Duplicates) String() string {
	if d.Keys == 0 {
		return "no key has more than one live row"
	}
	about, have, sample := "", "keys have", ""
	if d.Stale {
		about = "about "
	}
	if d.Keys == 1 {
		have = "key has"
	}
	if d.Sample != "" {
		sample = ", such as " + d.Sample
	}
	return fmt.Sprintf("%s%d %s more than one live row%s", about, d.Keys, have, sample)
}

// validate requires that a hold and repeated keys belong to the state they come with.
func (h Head) validate() error {
	switch {
	case h.Duplicates.Keys == 0 && h.Duplicates != Duplicates{},
		h.State == StateDuplicateKeys && h.Duplicates.Keys == 0, h.Duplicates.Keys > 0 && h.State != StateDuplicateKeys && !h.State.Held():
		return corrupt("state %q with %d repeated keys", h.State, h.Duplicates.Keys)
	case len(h.Duplicates.Sample) > maxReasonBytes:
		return corrupt("a sample of %d bytes", len(h.Duplicates.Sample))
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
