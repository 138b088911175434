package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/foldline/foldline/fence"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
)

// writer makes one table and keeps everything it wrote.
type writer struct {
	ctx     context.Context
	dir     string
	c       tableCase
	table   *lance.Table
	written []arrow.Record
	rows    []int       // row number of each row of written, in order
	live    map[int]int // row number → index in rows
}

func newWriter(ctx context.Context, store objstore.Store, dir string, c tableCase) (*writer, error) {
	fields := make([]arrow.Field, len(c.columns))
	for i, col := range c.columns {
		fields[i] = col.field
	}
	s, err := lance.NewSchema(arrow.NewSchema(fields, nil), c.key)
	if err != nil {
		return nil, err
	}
	t, err := lance.Create(ctx, store, c.name+".lance", s, lance.CreateOptions{
		Metadata: map[string]string{"made.by": "interop"}, FileVersion: c.version,
	})
	if err != nil {
		return nil, err
	}
	return &writer{ctx: ctx, dir: dir, c: c, table: t, live: map[int]int{}}, nil
}

// update commits one Update that deletes the rows of [from, to) which are live and, if put, writes them anew.
func (w *writer) update(from, to int, put bool) error {
	rec := w.record(from, to)
	keys := fence.KeySet{}
	if err := keys.AddRecord(rec, w.c.key); err != nil {
		return err
	}
	found, err := fence.FindRows(w.ctx, w.table, keys)
	if err != nil {
		return err
	}
	op, affected, err := w.deletes(found)
	if err != nil {
		return err
	}
	inserted := fence.KeySet{}
	if put {
		if err := w.inserts(op, rec); err != nil {
			return err
		}
		inserted = keys.Absent(found)
	}
	if op.Filter, err = fence.NewFilter(w.table.Schema(), inserted.Hashes()); err != nil {
		return err
	}
	for _, id := range w.table.Schema().FieldIDs() {
		op.PreservedFields = append(op.PreservedFields, uint32(id))
	}
	res, err := w.table.Commit(w.ctx, lance.NewTransaction(w.table, op), lance.CommitOptions{Affected: affected})
	if err != nil {
		return err
	}
	w.table = res.Table
	w.remember(rec, from, to, put)
	return nil
}

// deletes starts an Update that deletes all addresses found.
func (w *writer) deletes(found map[string][]lance.RowAddress) (*lance.Update, map[uint64]*roaring.Bitmap, error) {
	affected := map[uint64]*roaring.Bitmap{}
	for _, addresses := range found {
		for _, a := range addresses {
			f := uint64(a.Fragment())
			if affected[f] == nil {
				affected[f] = roaring.New()
			}
			affected[f].Add(a.Offset())
		}
	}
	updated, removed, err := w.table.DeleteRows(w.ctx, affected)
	return &lance.Update{UpdatedFragments: updated, RemovedFragmentIDs: removed}, affected, err
}

// inserts writes the record as new fragments of an Update.
func (w *writer) inserts(op *lance.Update, rec arrow.Record) error {
	fw := w.table.NewFragmentWriter(w.ctx, lance.WriteOptions{MaxRowsPerFile: 100_000})
	if err := fw.Write(rec); err != nil {
		return err
	}
	fragments, err := fw.Finish()
	op.NewFragments = fragments
	return err
}

func (w *writer) record(from, to int) arrow.Record {
	b := array.NewRecordBuilder(memory.DefaultAllocator, w.table.Schema().Arrow())
	for row := from; row < to; row++ {
		for i, col := range w.c.columns {
			col.append(b.Field(i), row, len(w.written))
		}
	}
	return b.NewRecord()
}

// remember takes the update over into the model.
func (w *writer) remember(rec arrow.Record, from, to int, put bool) {
	for row := from; row < to; row++ {
		delete(w.live, row)
		if put {
			w.live[row] = len(w.rows)
			w.rows = append(w.rows, row)
		}
	}
	if put {
		w.written = append(w.written, rec)
	}
}

// finish writes down what a reader must find.
func (w *writer) finish() error {
	if int(w.table.Rows()) != len(w.live) {
		return fmt.Errorf("the table says %d live rows, the model %d", w.table.Rows(), len(w.live))
	}
	f, err := os.Create(filepath.Join(w.dir, w.c.name+".expected.arrow"))
	if err != nil {
		return err
	}
	if err := w.expected(f); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	about, err := json.Marshal(map[string]any{"key": w.c.key, "rows": len(w.live), "version": w.table.Version(), "files": w.table.FileVersion()})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(w.dir, w.c.name+".json"), about, 0o644)
}

// expected writes all records, each row marked dead or not.
func (w *writer) expected(f *os.File) error {
	s := w.table.Schema().Arrow()
	dead := arrow.Field{Name: "_dead", Type: arrow.FixedWidthTypes.Boolean}
	marked := arrow.NewSchema(append(s.Fields(), dead), nil)
	out := ipc.NewWriter(f, ipc.WithSchema(marked))
	first := 0
	for _, rec := range w.written {
		b := array.NewBooleanBuilder(memory.DefaultAllocator)
		for i := range int(rec.NumRows()) {
			index, ok := w.live[w.rows[first+i]]
			b.Append(!ok || index != first+i)
		}
		first += int(rec.NumRows())
		columns := append(rec.Columns()[:len(rec.Columns()):len(rec.Columns())], b.NewArray())
		if err := out.Write(array.NewRecord(marked, columns, rec.NumRows())); err != nil {
			return err
		}
	}
	return out.Close()
}
