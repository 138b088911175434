package fence

import (
	"fmt"
	"iter"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/foldline/foldline/internal/keys"
	"github.com/foldline/foldline/lance"
)

// KeySet is a set of primary keys: the exact encoding of each (lance.KeyReader.Exact) and the hash of its Lance key bytes
// (XXH64, seed 0), which is what a filter holds.
type KeySet map[string]uint64

// AddRecord adds the keys of all rows of rec, whose schema holds the key columns. ErrNullKey names the row.
func (k KeySet) AddRecord(rec arrow.Record, keyColumns []string) error {
	reader, err := lance.NewKeyReader(rec.Schema(), keyColumns)
	if err != nil {
		return err
	}
	if err := reader.Bind(rec); err != nil {
		return err
	}
	for i := range int(rec.NumRows()) {
		if reader.Null(i) {
			return fmt.Errorf("%w: row %d", ErrNullKey, i)
		}
		k.Add(reader, i)
	}
	return nil
}

// Add adds the key of one row of the record that reader is bound to; the key must not be null.
func (k KeySet) Add(reader *lance.KeyReader, row int) {
	if _, known := k[string(reader.ExactBytes(row))]; !known {
		k[reader.Exact(row)] = keys.Hash(reader.Lance(row))
	}
}

// Absent are the keys without an address in found, which is keyed by their exact encodings.
func (k KeySet) Absent(found map[string][]lance.RowAddress) KeySet {
	absent := KeySet{}
	for exact, hash := range k {
		if len(found[exact]) == 0 {
			absent[exact] = hash
		}
	}
	return absent
}

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
