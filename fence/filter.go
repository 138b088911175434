package fence

import (
	"fmt"
	"iter"
	"slices"

	"github.com/foldline/foldline/lance"
)

// MaxExactKeys is the size up to which a filter is exact: 8 bytes a key, against 32 KiB for the bloom form.
const MaxExactKeys = 1000

// NewFilter builds the filter of the inserted keys of a transaction on a table with schema s: exact up to MaxExactKeys,
// bloom above. hashes are XXH64 (seed 0) of the Lance key bytes (see [KeySet.Hashes]). An update that inserts nothing gets
// an empty filter, not none. ErrNotCovered when s has no primary key or a key column of a type that filters cannot cover.
func NewFilter(s *lance.Schema, hashes iter.Seq[uint64]) (*lance.KeyFilter, error) {
	if err := coverable(s); err != nil {
		return nil, err
	}
	f := &lance.KeyFilter{FieldIDs: s.PrimaryKeyFieldIDs()}
	for h := range hashes {
		switch {
		case f.Bloom != nil:
			f.Bloom.Add(h)
		case len(f.Exact) < MaxExactKeys:
			f.Exact = append(f.Exact, h)
		default:
			f.Bloom = lance.NewBloom()
			for _, seen := range f.Exact {
				f.Bloom.Add(seen)
			}
			f.Bloom.Add(h)
			f.Exact = nil
		}
	}
	slices.Sort(f.Exact)
	f.Exact = slices.Compact(f.Exact)
	return f, nil
}

// coverable refuses keys that the engine's filter would silently leave out.
func coverable(s *lance.Schema) error {
	columns := s.PrimaryKey()
	if len(columns) == 0 {
		return fmt.Errorf("%w: the table has no primary key", ErrNotCovered)
	}
	for _, name := range columns {
		at := s.Arrow().FieldIndices(name)
		if len(at) != 1 {
			return fmt.Errorf("%w: key column %q is not a top-level column", ErrNotCovered, name)
		}
		if f := s.Arrow().Field(at[0]); !lance.KeyType(f.Type) || f.Nullable {
			return fmt.Errorf("%w: key column %q of type %s, nullable %t", ErrNotCovered, name, f.Type, f.Nullable)
		}
	}
	return nil
}

// Covers checks that tx may be committed to a keyed table with schema s: an Update with a filter whose fields are exactly
// the primary key, in key order. ErrNotCovered otherwise.
func Covers(tx *lance.Transaction, s *lance.Schema) error {
	update, ok := tx.Op.(*lance.Update)
	switch {
	case !ok:
		return fmt.Errorf("%w: a keyed table takes an Update, not %s", ErrNotCovered, tx.Op.Kind())
	case update.Filter == nil:
		return fmt.Errorf("%w: no filter", ErrNotCovered)
	case !slices.Equal(update.Filter.FieldIDs, s.PrimaryKeyFieldIDs()):
		return fmt.Errorf("%w: filter of fields %v, key fields %v", ErrNotCovered, update.Filter.FieldIDs, s.PrimaryKeyFieldIDs())
	}
	return coverable(s)
}
