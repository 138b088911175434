package heads

import "slices"

// Clone returns a copy that may be changed: publisher's next state starts as one. Definitions inside tables are shared, for they
// are replaced and never edited.
func (s *Snapshot) Clone() *Snapshot {
	c := *s
	c.Lanes, c.Cuts = slices.Clone(s.Lanes), slices.Clone(s.Cuts)
	c.Tables, c.Journal = slices.Clone(s.Tables), slices.Clone(s.Journal)
	return &c
}

// SetCut adds or replaces a cut, keeping the order.
func (s *Snapshot) SetCut(c Cut) {
	i, found := slices.BinarySearchFunc(s.Cuts, c, compareCuts)
	if found {
		s.Cuts[i] = c
		return
	}
	s.Cuts = slices.Insert(s.Cuts, i, c)
}

// SetLaneEpoch adds or replaces a lane's epoch, keeping the order.
func (s *Snapshot) SetLaneEpoch(lane uint32, epoch uint64) {
	i, found := slices.BinarySearchFunc(s.Lanes, lane, func(l Lane, id uint32) int { return compareUint(uint64(l.ID), uint64(id)) })
	if found {
		s.Lanes[i].Epoch = epoch
		return
	}
	s.Lanes = slices.Insert(s.Lanes, i, Lane{ID: lane, Epoch: epoch})
}

// SetTable adds or replaces a table by its id, keeping the order.
func (s *Snapshot) SetTable(t Table) {
	i, there := slices.BinarySearchFunc(s.Tables, t, compareTables)
	if there {
		s.Tables[i] = t
		return
	}
	s.Tables = slices.DeleteFunc(s.Tables, func(o Table) bool { return o.ID == t.ID }) // its key was another
	i, _ = slices.BinarySearchFunc(s.Tables, t, compareTables)
	s.Tables = slices.Insert(s.Tables, i, t)
}
