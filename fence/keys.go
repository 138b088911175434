package fence

import (
	"context"
	"iter"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/foldline/foldline/lance"
)

// KeySet is a set of primary keys: the exact encoding of each (lance.KeyReader.Exact) and the hash of its Lance key bytes
// (XXH64, seed 0), which is what a filter holds.
type KeySet map[string]uint64

// AddRecord adds the keys of all rows of rec, whose schema holds the key columns. ErrNullKey names the row.
func (k KeySet) AddRecord(rec arrow.Record, keyColumns []string) error { panic("pending") }

// Hashes iterates over the hashes, for [NewFilter].
func (k KeySet) Hashes() iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for _, h := range k {
			if !yield(h) {
				return
			}
		}
	}
}

// FindRows scans the key columns of t and returns all live addresses of each key of keys that has any: more than one is a
// duplicate. Keys of the result are exact encodings.
func FindRows(ctx context.Context, t *lance.Table, keys KeySet) (map[string][]lance.RowAddress, error) {
	panic("pending")
}
