package main

import (
	"context"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
)

// makeTable creates rows "k0" to "k19", v = 0 to 19, in two fragments.
func makeTable(ctx context.Context, store objstore.Store, root string) error {
	s, err := lance.NewSchema(arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.BinaryTypes.String}, {Name: "v", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "w", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	}, nil), []string{"id"})
	if err != nil {
		return err
	}
	table, err := lance.Create(ctx, store, root, s, lance.CreateOptions{})
	if err != nil {
		return err
	}
	fragments, err := write(ctx, table, 0, 20, lance.WriteOptions{MaxRowsPerFile: 10})
	if err != nil {
		return err
	}
	_, err = table.Commit(ctx, lance.NewTransaction(table, &lance.Append{Fragments: fragments}), lance.CommitOptions{})
	return err
}

func write(ctx context.Context, t *lance.Table, from, to int, o lance.WriteOptions) ([]lance.Fragment, error) {
	b := array.NewRecordBuilder(memory.DefaultAllocator, t.Schema().Arrow())
	defer b.Release()
	for i := from; i < to; i++ {
		b.Field(0).(*array.StringBuilder).Append(fmt.Sprintf("k%d", i))
		b.Field(1).(*array.Int64Builder).Append(int64(i))
		b.Field(2).AppendNull()
	}
	rec := b.NewRecord()
	defer rec.Release()
	w := t.NewFragmentWriter(ctx, o)
	if err := w.Write(rec); err != nil {
		return nil, err
	}
	return w.Finish()
}

// plan builds an operation; those about rows delete row 3 of the fragment, which the engine's side never touches.
func plan(ctx context.Context, t *lance.Table, operation string, on uint64) (lance.Operation, lance.CommitOptions, error) {
	var o lance.CommitOptions
	switch operation {
	case "append":
		fragments, err := write(ctx, t, 100, 103, lance.WriteOptions{})
		return &lance.Append{Fragments: fragments}, o, err
	case "delete", "update", "update_filter":
		return planRows(ctx, t, operation, on)
	case "overwrite":
		fragments, err := write(ctx, t, 200, 203, lance.WriteOptions{})
		return &lance.Overwrite{Schema: t.Schema(), Fragments: fragments}, o, err
	case "rewrite":
		op, err := t.Compact(ctx, lance.CompactOptions{})
		return op, o, err
	case "merge":
		op, err := t.AddColumns(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int32, Nullable: true})
		return op, o, err
	case "project":
		op, err := t.DropColumns("w")
		return op, o, err
	case "restore":
		return &lance.Restore{Version: 1}, o, nil
	case "reserve":
		return &lance.ReserveFragments{Count: 3}, o, nil
	case "config":
		return &lance.UpdateConfig{Config: &lance.MapUpdate{Set: map[string]string{"ours": "1"}}}, o, nil
	case "barrier":
		return &lance.UpdateConfig{}, lance.CommitOptions{SetMetadata: map[string]string{"epoch": "1"}}, nil
	}
	return nil, o, fmt.Errorf("unknown operation %q", operation)
}

func planRows(ctx context.Context, t *lance.Table, operation string, on uint64) (lance.Operation, lance.CommitOptions, error) {
	o := lance.CommitOptions{Affected: map[uint64]*roaring.Bitmap{on: roaring.BitmapOf(3)}}
	updated, removed, err := t.DeleteRows(ctx, o.Affected)
	if err != nil {
		return nil, o, err
	}
	if operation == "delete" {
		return &lance.Delete{UpdatedFragments: updated, DeletedFragmentIDs: removed}, o, nil
	}
	op := &lance.Update{UpdatedFragments: updated, RemovedFragmentIDs: removed}
	if operation == "update_filter" {
		op.Filter = &lance.KeyFilter{FieldIDs: t.Schema().PrimaryKeyFieldIDs(), Exact: []uint64{1}}
	}
	row := int(on)*10 + 3
	op.NewFragments, err = write(ctx, t, row, row+1, lance.WriteOptions{})
	return op, o, err
}
