package heads

import (
	"fmt"
	"slices"
)

// Reference says that some columns of a table's rows, when none of them is null, are the key of a row of another table or of the same. Folds hold it; a
// later delete of that row may leave it dangling.
type Reference struct {
	Columns []string `json:"columns"` // in the order of the other table's key
	Table   TableID  `json:"table,string"`
}

// CheckReference says why columns of t cannot be the key of a row of target; nil when they can.
func (t Table) CheckReference(columns []string, target Table) error {
	switch {
	case target.System:
		return fmt.Errorf("table %q is the graph's own", target.Key)
	case len(columns) != len(target.PrimaryKey):
		return fmt.Errorf("%d columns for the key %v of table %q", len(columns), target.PrimaryKey, target.Key)
	}
	for i, name := range columns {
		own, ok := t.column(name)
		if !ok {
			return fmt.Errorf("table %q has no column %q", t.Key, name)
		}
		if slices.Contains(columns[:i], name) {
			return fmt.Errorf("column %q comes twice", name)
		}
		if key, _ := target.column(target.PrimaryKey[i]); own.Type != key.Type {
			return fmt.Errorf("column %q is %s, key column %q of table %q is %s", name, own.Type, key.Name, target.Key, key.Type)
		}
	}
	return nil
}

func (t Table) column(name string) (Column, bool) {
	i := slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == name })
	if i < 0 {
		return Column{}, false
	}
	return t.Columns[i], true
}

// validateReferences requires that each reference can be judged.
func (s *Snapshot) validateReferences() error {
	var byID map[TableID]Table
	for _, t := range s.Tables {
		if len(t.References) > 0 && byID == nil {
			byID = make(map[TableID]Table, len(s.Tables))
			for _, t := range s.Tables {
				byID[t.ID] = t
			}
		}
		for i, r := range t.References {
			target, ok := byID[r.Table]
			if !ok {
				return corrupt("table %q refers to table %016x, which is not registered", t.Key, uint64(r.Table))
			}
			if err := t.CheckReference(r.Columns, target); err != nil {
				return corrupt("table %q: reference %v: %v", t.Key, r.Columns, err)
			}
			if slices.ContainsFunc(t.References[:i], r.equal) {
				return corrupt("table %q: reference %v to %q comes twice", t.Key, r.Columns, target.Key)
			}
		}
	}
	return nil
}

func (r Reference) equal(o Reference) bool {
	return r.Table == o.Table && slices.Equal(r.Columns, o.Columns)
}
