package fence

import (
	"context"
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

// FindRows scans the key columns of t and returns all live addresses of each key of set that has any, in ascending order: more
// than one is a duplicate. Keys of the result are exact encodings. It costs the key column of the whole table.
func FindRows(ctx context.Context, t *lance.Table, set KeySet) (map[string][]lance.RowAddress, error) {
	found := make(map[string][]lance.RowAddress)
	if len(set) == 0 {
		return found, nil
	}
	err := scanKeys(ctx, t, lance.ScanOptions{}, func(reader *lance.KeyReader, row int, at lance.RowAddress) {
		if _, wanted := set[string(reader.ExactBytes(row))]; wanted {
			k := reader.Exact(row)
			found[k] = append(found[k], at)
		}
	})
	return found, err
}

// scanKeys calls visit for each live row of t with a whole key; rows with a null in it, which only a foreign writer makes, have none.
func scanKeys(ctx context.Context, t *lance.Table, o lance.ScanOptions, visit func(*lance.KeyReader, int, lance.RowAddress)) error {
	columns := t.Schema().PrimaryKey()
	reader, err := lance.NewKeyReader(t.Schema().Arrow(), columns)
	if err != nil {
		return err
	}
	o.Columns, o.RowAddress = columns, true
	for rec, err := range t.Scan(ctx, o) {
		if err != nil {
			return err
		}
		err := visitRecord(rec, reader, visit)
		rec.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

func visitRecord(rec arrow.Record, reader *lance.KeyReader, visit func(*lance.KeyReader, int, lance.RowAddress)) error {
	if err := reader.Bind(rec); err != nil {
		return err
	}
	at, err := addresses(rec)
	if err != nil {
		return err
	}
	for i := range int(rec.NumRows()) {
		if !reader.Null(i) {
			visit(reader, i, lance.RowAddress(at.Value(i)))
		}
	}
	return nil
}
