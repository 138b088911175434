package heads

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestDuplicatesAreCarried: a head keeps what is said of repeated keys, in the states that it belongs to and in no other.
func TestDuplicatesAreCarried(t *testing.T) {
	some := NewDuplicates(3, true, []string{`{"id":"a"}`, `{"id":"b"}`})
	require.Equal(t, Duplicates{Keys: 3, Stale: true, Sample: `{"id":"a"}, {"id":"b"}`}, some)
	require.Equal(t, Duplicates{}, NewDuplicates(0, true, nil))
	paused := NewHold("why", time.UnixMicro(1), time.UnixMicro(2))
	for name, c := range map[string]struct {
		state      State
		hold       Hold
		duplicates Duplicates
		refused    bool
	}{
		"some":                 {state: StateDuplicateKeys, duplicates: some},
		"while it is held":     {state: StatePaused, hold: paused, duplicates: some},
		"held without":         {state: StatePaused, hold: paused},
		"the state without":    {state: StateDuplicateKeys, refused: true},
		"without the state":    {state: StateLive, duplicates: some, refused: true},
		"a dropped table":      {state: StateTombstoned, duplicates: some, refused: true},
		"a sample of none":     {state: StateLive, duplicates: Duplicates{Sample: "a"}, refused: true},
		"a sample without end": {state: StateDuplicateKeys, duplicates: Duplicates{Keys: 1, Sample: strings.Repeat("a", maxReasonBytes+1)}, refused: true},
	} {
		s := sample()
		flight, ok := s.Table("edge:Flight")
		require.True(t, ok)
		flight.Head.State, flight.Head.Hold, flight.Head.Duplicates = c.state, c.hold, c.duplicates
		s.SetTable(flight)
		got, err := decode(s.Version, s.hotRows(), s.registryRows())
		if c.refused {
			require.ErrorIs(t, err, ErrCorrupt, name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, s, got, name)
	}
}

func TestDuplicatesForPeople(t *testing.T) {
	require.Equal(t, "no key has more than one live row", Duplicates{}.String())
	require.Equal(t, `1 key has more than one live row, such as {"id":"a"}`, NewDuplicates(1, false, []string{`{"id":"a"}`}).String())
	require.Equal(t, "about 7 keys have more than one live row", NewDuplicates(7, true, nil).String())
	long := strings.Repeat("x", maxReasonBytes)
	require.Equal(t, long, NewDuplicates(2, false, []string{long, "b"}).Sample, "what fits")
	require.Empty(t, NewDuplicates(2, false, []string{long + "x", "b"}).Sample)
}
