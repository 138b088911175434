package publisher

import (
	"context"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/foldline/foldline/lance"
)

// keepRowIDs gives the new rows of a table with stable row ids the ids of the rows that they replace in the newest version, which
// may be others than at the plan. The format wants replacing rows first, so the files are written anew when a key has come or gone
// in between.
func (r *rebuild) keepRowIDs(ctx context.Context) error {
	if !r.latest.StableRowIDs() {
		return nil
	}
	var sources []lance.RowAddress
	replacedFirst, created := true, false
	err := r.scan(ctx, r.latest.Schema().PrimaryKey(), func(rec arrow.Record, _ int, _ uint32) error {
		replaced, err := r.replacedBy(rec)
		if err != nil {
			return err
		}
		for i := range int(rec.NumRows()) {
			addresses := replaced(i)
			if len(addresses) == 0 {
				created = true
				continue
			}
			replacedFirst = replacedFirst && !created
			sources = append(sources, addresses[0])
		}
		return nil
	})
	if err != nil {
		return err
	}
	if !replacedFirst {
		if err := r.writeReplacedFirst(ctx); err != nil {
			return err
		}
	}
	r.fragments, err = r.latest.KeepRowIDs(r.fragments, sources)
	return err
}

// replacedBy gives the rows of the newest version that a row of rec replaces.
func (r *rebuild) replacedBy(rec arrow.Record) (func(row int) []lance.RowAddress, error) {
	reader, err := lance.NewKeyReader(rec.Schema(), r.latest.Schema().PrimaryKey())
	if err != nil {
		return nil, err
	}
	if err := reader.Bind(rec); err != nil {
		return nil, err
	}
	return func(row int) []lance.RowAddress { return r.found[reader.Exact(row)] }, nil
}

func (r *rebuild) writeReplacedFirst(ctx context.Context) error {
	w := r.latest.NewFragmentWriter(ctx, lance.WriteOptions{})
	for _, first := range []bool{true, false} {
		err := r.scan(ctx, nil, func(rec arrow.Record, _ int, _ uint32) error {
			replaced, err := r.replacedBy(rec)
			if err != nil {
				return err
			}
			return writeRuns(rec, w, func(row int) bool { return (len(replaced(row)) > 0) == first })
		})
		if err != nil {
			_ = w.Abort() // the first error says what happened
			return err
		}
	}
	var err error
	r.fragments, err = w.Finish()
	return err
}
