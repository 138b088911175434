package faultstore

import "sync/atomic"

// counter numbers the calls that match, from 1.
type counter struct {
	match Match
	n     atomic.Int64
}

func newCounter(m Match) *counter { return &counter{match: m} }

// next is the number of a call, or 0 when it does not match.
func (c *counter) next(call Call) int {
	if !c.match(call) {
		return 0
	}
	return int(c.n.Add(1))
}
