package fold

import (
	"cmp"
	"context"
	"slices"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/foldline/foldline/fence"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/rowjson"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/publisher"
	"github.com/foldline/foldline/wal"
)

// rejectsOf makes the dead letters of one table: the refused rows as JSON, a
// delete with its key columns only.
func (f *Folder) rejectsOf(p *tablePlan, fold uint64) ([]publisher.Reject, error) {
	out := make([]publisher.Reject, 0, len(p.refused))
	now := f.opts.Clock()
	for _, r := range p.refused {
		i, ref := p.in.at(r.row)
		c := p.in.chunks[i]
		op := c.table().Ops[ref.row]
		place := ""
		if c.letters != nil {
			place = c.letters[ref.row].place()
		}
		row, err := rowJSON(c.table().Record, int(ref.row), op, p.table.PrimaryKey)
		if err != nil {
			return nil, err
		}
		out = append(out, publisher.Reject{
			Origin: c.origin(ref.row), Place: place, Table: p.table.Key, Op: op.String(), Code: r.fault.code, Field: r.fault.field,
			Reason: r.fault.reason, Row: row, Fold: fold, Time: now,
		})
	}
	return out, nil
}

func rowJSON(rec arrow.Record, row int, op wal.Op, key []string) ([]byte, error) {
	if op != wal.OpDelete || len(key) == 0 {
		return rowjson.AppendRow(nil, rec, row)
	}
	var columns []int
	for _, name := range key {
		columns = append(columns, rec.Schema().FieldIndices(name)...)
	}
	return rowjson.AppendColumns(nil, rec, columns, row)
}

// prepareRejects writes the dead letters of a fold, in the order of the log,
// and builds their transaction; nil when there are none.
func (f *Folder) prepareRejects(ctx context.Context, snap *heads.Snapshot, rejects []publisher.Reject) (*publisher.PreparedTable, error) {
	if len(rejects) == 0 {
		return nil, nil
	}
	slices.SortFunc(rejects, func(a, b publisher.Reject) int { return compareOrigins(a.Origin, b.Origin) })
	table, ok := snap.Table(heads.RejectsKey)
	if !ok {
		return nil, heads.ErrNotFound
	}
	base, err := f.openTable(ctx, snap, table)
	if err != nil {
		return nil, err
	}
	keySet := make(fence.KeySet, len(rejects))
	update := &lance.Update{PreservedFields: preserved(base.Schema())}
	update.NewFragments, err = f.writeFragments(ctx, base, func(write func(arrow.Record) error) error {
		return encodeRejects(rejects, func(rec arrow.Record) error {
			if err := keySet.AddRecord(rec, base.Schema().PrimaryKey()); err != nil {
				return err
			}
			return write(rec)
		})
	})
	if err != nil {
		return nil, err
	}
	if update.Filter, err = fence.NewFilter(base.Schema(), keySet.Hashes()); err != nil {
		return nil, err
	}
	return &publisher.PreparedTable{
		Table: table, Base: base, Tx: lance.NewTransaction(base, update), Inserted: len(rejects),
	}, nil
}

// encodeRejects gives the dead letters to write in records of bounded size.
func encodeRejects(rejects []publisher.Reject, write func(arrow.Record) error) error {
	for len(rejects) > 0 {
		n, bytes := 0, 0
		for n < len(rejects) && n < outputRecordRows && bytes < outputRecordBytes {
			bytes += len(rejects[n].Row)
			n++
		}
		rec := publisher.EncodeRejects(rejects[:n])
		err := write(rec)
		rec.Release()
		if err != nil {
			return err
		}
		rejects = rejects[n:]
	}
	return nil
}

func compareOrigins(a, b publisher.Origin) int {
	return cmp.Or(cmp.Compare(a.Lane, b.Lane), cmp.Compare(a.Incarnation, b.Incarnation), cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Row, b.Row))
}
