package fold

import (
	"errors"
	"time"

	"github.com/foldline/foldline/wal"
)

// What a row of one lane refers to may be in another, acknowledged before the row was sent and yet not in the cut: that lane was asked before, is behind, or
// does not answer. A lane by itself has no such gap, for its cut is all that came before.

// errWaits: the cut was made smaller, before rows that refer to what other lanes may still bring. Plan it again.
var errWaits = errors.New("fold: rows wait for other lanes")

// acceptAll is for plans of what no lane can add to.
func acceptAll([]*tablePlan) error { return nil }

// laneSeen is how far a lane was synced when it was asked last.
type laneSeen struct {
	incarnation string
	synced      wal.Seq
}

// laneWait is a value before which the cut of a lane has ended, for a row that refers to nothing yet.
type laneWait struct {
	last  wal.Seq
	since time.Time
}

// noteSeen remembers the marks of the lanes; the cut keeps those of the fold before.
func (f *Folder) noteSeen(c *cut, open []*laneCut) {
	c.open, c.before, f.lanesSeen = len(open), f.lanesSeen, make(map[uint32]laneSeen, len(open))
	for _, l := range open {
		f.lanesSeen[l.lane] = laneSeen{l.incarnation, l.synced}
	}
}

// waitForLanes ends the cut of each lane before the first row whose reference names nothing while other lanes may still bring what it names, and tells whether
// it did. It is sure that they do not when the row was synced by the time of the fold before, so that all lanes have been asked since, and they all
// are in the cut to their ends. A row waits SuspendAfter at most.
func (f *Folder) waitForLanes(c *cut, plans []*tablePlan) bool {
	if c.open < 2 {
		return false
	}
	first := map[*laneCut]int{} // index of the first value with such a row
	for _, p := range plans {
		for _, r := range p.refused {
			if r.fault.code != CodeMissingReference {
				continue
			}
			i, _ := p.in.at(r.row)
			l := p.in.chunks[i].lane
			at := l.indexOf(p.in.chunks[i].batch)
			if known, ok := first[l]; (!ok || at < known) && !f.settled(c, l, l.batches[at]) {
				first[l] = at
			}
		}
	}
	for l, at := range first {
		if last := l.batches[at].Last; f.laneWaits[l.lane].last != last {
			f.laneWaits[l.lane] = laneWait{last: last, since: f.opts.Clock()}
		}
		l.endAt(at)
	}
	c.sum()
	return len(first) > 0
}

// settled tells whether all that was acknowledged before a value was is in the cut, or the value has waited long enough.
func (f *Folder) settled(c *cut, own *laneCut, value *wal.Batch) bool {
	if w := f.laneWaits[own.lane]; w.last == value.Last && !f.opts.Clock().Before(w.since.Add(f.opts.SuspendAfter)) {
		return true
	}
	if seen := c.before[own.lane]; seen.incarnation != own.incarnation || value.Last > seen.synced || len(c.failed) > 0 {
		return false
	}
	for _, l := range c.lanes {
		if l != own && l.through < l.synced {
			return false
		}
	}
	return true
}
