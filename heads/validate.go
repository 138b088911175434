package heads

import (
	"fmt"
	"slices"
)

// Validate checks the invariants of a whole state. Publisher runs it before every manifest commit, Resolve after every read.
func (s *Snapshot) Validate() error {
	for _, check := range []func() error{s.validateHead, s.validateCuts, s.validateTables} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (s *Snapshot) validateHead() error {
	switch {
	case s.Commit.ID == "" || s.Commit.Version != s.Version:
		return corrupt("graph commit %q is of version %d, the manifest of %d", s.Commit.ID, s.Commit.Version, s.Version)
	case len(s.Journal) == 0 || s.Journal[len(s.Journal)-1].ID != s.Commit.ID:
		return corrupt("graph commit %q is not the newest of the journal", s.Commit.ID)
	case s.PrunedThrough >= s.Version:
		return corrupt("version %d is pruned through %d", s.Version, s.PrunedThrough)
	case s.History.Through >= s.Version:
		return corrupt("version %d has history through %d", s.Version, s.History.Through)
	case (s.Fold == 0) != (s.FoldRecord == ""):
		return corrupt("fold %d has record %q", s.Fold, s.FoldRecord)
	}
	if first := s.Journal[0]; s.History.Through > 0 && first.Version > s.History.Through+1 {
		return corrupt("history ends at version %d, the journal begins at %d", s.History.Through, first.Version)
	}
	return nil
}

func (s *Snapshot) validateCuts() error {
	open := map[uint32]string{}
	for i, c := range s.Cuts {
		if i > 0 && compareCuts(s.Cuts[i-1], c) >= 0 {
			return corrupt("cuts are not in order at lane %d, incarnation %q", c.Lane, c.Incarnation)
		}
		if !c.Sealed && c.End != 0 || c.Sealed && c.Through > c.End {
			return corrupt("lane %d, incarnation %q: sealed %t at %d, folded through %d", c.Lane, c.Incarnation, c.Sealed, c.End, c.Through)
		}
		if !c.Open {
			continue
		}
		if s.registry && c.Lane >= s.LaneCount {
			return corrupt("incarnation %q of lane %d is open, the graph has %d lanes", c.Incarnation, c.Lane, s.LaneCount)
		}
		if other, twice := open[c.Lane]; twice {
			return corrupt("lane %d has two open incarnations, %q and %q", c.Lane, other, c.Incarnation)
		}
		open[c.Lane] = c.Incarnation
	}
	for i, l := range s.Lanes {
		if i > 0 && s.Lanes[i-1].ID >= l.ID {
			return corrupt("lanes are not in order at %d", l.ID)
		}
	}
	return nil
}

func (s *Snapshot) validateTables() error {
	n := len(s.Tables)
	keys, paths, ids := make(map[string]bool, n), make(map[string]bool, n), make(map[TableID]bool, n)
	for i, t := range s.Tables {
		if i > 0 && compareTables(s.Tables[i-1], t) >= 0 {
			return corrupt("tables are not in order at %q", t.Key)
		}
		live := t.Head.State != StateTombstoned
		if ids[t.ID] || paths[t.Path] || live && keys[t.Key] {
			return corrupt("table %q (%016x at %q): id, path or key is used twice", t.Key, uint64(t.ID), t.Path)
		}
		ids[t.ID], paths[t.Path] = true, true
		keys[t.Key] = keys[t.Key] || live
		if !t.Head.State.known() || t.Head.Version == 0 {
			return corrupt("table %q: head version %d, state %q", t.Key, t.Head.Version, t.Head.State)
		}
		if err := t.Head.validate(); err != nil {
			return fmt.Errorf("table %q: %w", t.Key, err)
		}
		if s.registry && t.ID >= s.NextTableID {
			return corrupt("table %q: id %016x is not below the next one", t.Key, uint64(t.ID))
		}
		if s.registry {
			if err := t.validateDefinition(); err != nil {
				return err
			}
		}
	}
	return s.validateReferences()
}

func (t Table) validateDefinition() error {
	names := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		names[i] = c.Name
	}
	if len(t.PrimaryKey) == 0 || len(t.LaneColumns) == 0 || len(t.LaneColumns) > len(t.PrimaryKey) ||
		!slices.Equal(t.LaneColumns, t.PrimaryKey[:len(t.LaneColumns)]) {
		return corrupt("table %q: lane columns %v of primary key %v", t.Key, t.LaneColumns, t.PrimaryKey)
	}
	for _, k := range t.PrimaryKey {
		if !slices.Contains(names, k) {
			return corrupt("table %q: primary key column %q is not a column", t.Key, k)
		}
	}
	if t.Order != "" && !slices.Contains(names, t.Order) {
		return corrupt("table %q: order column %q is not a column", t.Key, t.Order)
	}
	if t.UnknownFields != RefuseUnknown && t.UnknownFields != DropUnknown {
		return corrupt("table %q: unknown_fields is %q", t.Key, t.UnknownFields)
	}
	return nil
}
