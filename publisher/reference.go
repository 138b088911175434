package publisher

import (
	"context"
	"reflect"
	"slices"

	"github.com/foldline/foldline/heads"
)

// ReferenceSpec names the columns of a table whose values are the key of a row of another table, or of the same, in the order of that key.
type ReferenceSpec struct {
	Columns []string
	Table   string // table key
}

// SetReferences makes references, and no others, those of a table: folds judge the rows that they write from then on; rows that are there are not looked
// at. It costs one graph commit, and nothing when the table has them already.
//
// ErrInvalid names table, columns and reason, and nothing is changed: no such table, columns that are not there, or that are not as many and of the types as
// the key that they refer to.
func (p *Publisher) SetReferences(ctx context.Context, key string, references []ReferenceSpec) (heads.Table, error) {
	t, err := p.Enrolled(ctx, key)
	if err != nil {
		return t, err
	}
	wanted, err := p.references(t, references)
	if err != nil || reflect.DeepEqual(t.References, wanted) {
		return t, err
	}
	return p.alterTable(ctx, heads.KindAlter, t, func(now *heads.Table, _ *heads.GraphCommit) error {
		now.References = wanted
		return nil
	})
}

// references finds the tables that references name; nil when there are none.
func (p *Publisher) references(t heads.Table, specs []ReferenceSpec) (out []heads.Reference, err error) {
	for _, spec := range specs {
		target, ok := p.snap.Table(spec.Table)
		if !ok {
			return nil, invalid("table %q: reference %v to %q: there is no such table", t.Key, spec.Columns, spec.Table)
		}
		if err := t.CheckReference(spec.Columns, target); err != nil {
			return nil, invalid("table %q: reference %v to %q: %v", t.Key, spec.Columns, spec.Table, err)
		}
		r := heads.Reference{Columns: slices.Clone(spec.Columns), Table: target.ID}
		if slices.ContainsFunc(out, func(o heads.Reference) bool { return reflect.DeepEqual(o, r) }) {
			return nil, invalid("table %q: reference %v to %q comes twice", t.Key, spec.Columns, spec.Table)
		}
		out = append(out, r)
	}
	return out, nil
}
