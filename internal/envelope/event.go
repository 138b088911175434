package envelope

import (
	"fmt"
)

// Event tells, after each publish, how far every lane is visible. It is a hint: whoever acts on it reads the heads.
type Event struct {
	V       int        `json:"v"`
	Graph   string     `json:"graph"`
	Commit  string     `json:"commit"`  // graph commit id
	Version uint64     `json:"version"` // version of the manifest
	Fold    uint64     `json:"fold"`
	Cuts    []EventCut `json:"cuts"`
}

// EventCut is the published cut of one incarnation of a lane: every sequence up to Through is visible.
type EventCut struct {
	Lane        uint32 `json:"lane"`
	Incarnation string `json:"inc"`
	Through     uint64 `json:"through,string"`
}

// Encode is the JSON of the event, with the format number set.
func (e Event) Encode() []byte {
	e.V = Version
	return mustEncode(e)
}

// DecodeEvent reads the JSON of an event and refuses another format number.
func DecodeEvent(data []byte) (Event, error) {
	var e Event
	if err := decodeReply(data, &e); err != nil {
		return Event{}, corrupt(err)
	}
	if e.V != Version {
		return Event{}, corrupt(fmt.Errorf("format number %d, this program reads %d", e.V, Version))
	}
	return e, nil
}

// Covers tells whether the event's cuts include a sequence of an incarnation.
func (e Event) Covers(lane uint32, incarnation string, seq uint64) bool {
	for _, c := range e.Cuts {
		if c.Lane == lane && c.Incarnation == incarnation {
			return c.Through >= seq
		}
	}
	return false
}
