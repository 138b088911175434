package run

import (
	"context"
	"slices"

	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/publisher"
)

// Reference declares that columns of a table, when none of them is null, are the key of a row of another table, or of the same: folds put a row whose
// reference names no row into the dead letters.
type Reference struct {
	Columns []string `yaml:"columns,flow" json:"columns"` // in the order of the other table's key
	Table   string   `yaml:"table" json:"table"`
}

// setReferences makes the declared references of all tables those of the graph, once all tables are there. A table that declares none keeps what it has;
// an empty list takes them away.
func setReferences(ctx context.Context, pub *publisher.Publisher, tables []Table) error {
	for _, t := range tables {
		if t.References == nil {
			continue
		}
		specs := make([]publisher.ReferenceSpec, len(t.References))
		for i, r := range t.References {
			specs[i] = publisher.ReferenceSpec(r)
		}
		if _, err := pub.SetReferences(ctx, t.Table, specs); err != nil {
			return err
		}
	}
	return nil
}

// validateReferences checks what the settings alone can tell; what they leave to the graph, such as a table that they do not declare, is checked when the
// tables are there.
func (c *Config) validateReferences(found *faults) {
	for i, t := range c.Tables {
		for j, r := range t.References {
			bad := func(format string, args ...any) {
				found.addf("tables[%d].references[%d]: table %q: reference %v to %q: "+format, append([]any{i, j, t.Table, r.Columns, r.Table}, args...)...)
			}
			switch {
			case r.Table == "":
				bad("no table is named")
			case len(r.Columns) == 0:
				bad("no columns are named")
			}
			if slices.ContainsFunc(t.References[:j], func(o Reference) bool { return o.Table == r.Table && slices.Equal(o.Columns, r.Columns) }) {
				bad("it comes twice")
			}
			for k, name := range r.Columns {
				if _, ok := t.column(name); !ok && len(t.Columns) > 0 {
					bad("there is no column %q", name)
				}
				if slices.Contains(r.Columns[:k], name) {
					bad("column %q comes twice", name)
				}
			}
			if at := slices.IndexFunc(c.Tables, func(o Table) bool { return o.Table == r.Table }); at >= 0 {
				t.checkTarget(r, c.Tables[at], bad)
			}
		}
	}
}

// checkTarget compares the columns with the key that they refer to, as far as both are declared.
func (t Table) checkTarget(r Reference, target Table, bad func(format string, args ...any)) {
	if target.Path != "" && len(target.Key) == 0 {
		return // the table says what its key is
	}
	key := target.KeyColumns()
	if len(key) != len(r.Columns) {
		bad("%d columns for the key %v", len(r.Columns), key)
		return
	}
	for i, name := range r.Columns {
		own, ok := t.column(name)
		theirs, there := target.column(key[i])
		if ok && there && canonical(own.Type) != canonical(theirs.Type) {
			bad("column %q is %s, key column %q is %s", name, own.Type, key[i], theirs.Type)
		}
	}
}

func (t Table) column(name string) (Column, bool) {
	i := slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == name })
	if i < 0 {
		return Column{}, false
	}
	return t.Columns[i], true
}

// canonical is the one name of a type that has several; a type that is none has been reported where it is declared.
func canonical(name string) string {
	t, err := lance.ParseType(name)
	if err != nil {
		return name
	}
	if text, err := lance.FormatType(t); err == nil {
		return text
	}
	return name
}
