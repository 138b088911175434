package fence

import (
	"context"

	"github.com/foldline/foldline/lance"
)

// FindRows scans the key columns of t and returns all live addresses of each key of set that has any, in ascending order: more
// than one is a duplicate. Keys of the result are exact encodings. It costs the key column of the whole table. Rows with a null in their key, which
// only a foreign writer makes, have none.
func FindRows(ctx context.Context, t *lance.Table, set KeySet) (map[string][]lance.RowAddress, error) {
	found := make(map[string][]lance.RowAddress)
	if len(set) == 0 {
		return found, nil
	}
	columns := t.Schema().PrimaryKey()
	reader, err := lance.NewKeyReader(t.Schema().Arrow(), columns)
	if err != nil {
		return nil, err
	}
	wanted := newPrefilter(set)
	var suspects []int
	for rec, err := range t.Scan(ctx, lance.ScanOptions{Columns: columns, RowAddress: true}) {
		if err != nil {
			return nil, err
		}
		at, err := addresses(rec)
		if err == nil {
			err = reader.Bind(rec)
		}
		if err != nil {
			rec.Release()
			return nil, err
		}
		suspects = wanted.rows(suspects[:0], reader, int(rec.NumRows()))
		for _, row := range suspects {
			if _, ok := set[string(reader.ExactBytes(row))]; ok {
				k := reader.Exact(row)
				found[k] = append(found[k], lance.RowAddress(at.Value(row)))
			}
		}
		rec.Release()
	}
	return found, nil
}
