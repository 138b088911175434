package fence

import (
	"iter"

	"github.com/foldline/foldline/lance"
)

// MaxExactKeys is the size up to which a filter is exact: 8 bytes a key, against 32 KiB for the bloom form.
const MaxExactKeys = 1000

// NewFilter builds the filter of the inserted keys of a transaction on a table with schema s: exact up to MaxExactKeys,
// bloom above. hashes are XXH64 (seed 0) of the Lance key bytes (see [KeySet.Hashes]). An update that inserts nothing gets
// an empty filter, not none. ErrNotCovered when s has no primary key or a key column of a type that filters cannot cover.
func NewFilter(s *lance.Schema, hashes iter.Seq[uint64]) (*lance.KeyFilter, error) { panic("pending") }

// Covers checks that tx may be committed to a keyed table with schema s: an Update with a filter whose fields are exactly
// the primary key, in key order. ErrNotCovered otherwise.
func Covers(tx *lance.Transaction, s *lance.Schema) error { panic("pending") }
