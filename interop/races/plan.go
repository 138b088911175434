package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/foldline/foldline/fence"
	"github.com/foldline/foldline/internal/keys"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
)

// makeTable creates rows "k0" to "k19", v = 0 to 19, in two fragments, and then adds a column w that no file holds.
func makeTable(ctx context.Context, store objstore.Store, root string) error {
	s, err := lance.NewSchema(arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.BinaryTypes.String}, {Name: "v", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	}, nil), []string{"id"})
	if err != nil {
		return err
	}
	table, err := lance.Create(ctx, store, root, s, lance.CreateOptions{})
	if err != nil {
		return err
	}
	fragments, err := write(ctx, table, 0, 20, 0, lance.WriteOptions{MaxRowsPerFile: 10})
	if err != nil {
		return err
	}
	done, err := table.Commit(ctx, lance.NewTransaction(table, &lance.Append{Fragments: fragments}), lance.CommitOptions{})
	if err != nil {
		return err
	}
	op, err := done.Table.AddColumns(arrow.Field{Name: "w", Type: arrow.PrimitiveTypes.Int64, Nullable: true})
	if err != nil {
		return err
	}
	_, err = done.Table.Commit(ctx, lance.NewTransaction(done.Table, op), lance.CommitOptions{})
	return err
}

// write uploads the rows of the keys from and up to to, where v is the key's number plus add.
func write(ctx context.Context, t *lance.Table, from, to int, add int64, o lance.WriteOptions) ([]lance.Fragment, error) {
	b := array.NewRecordBuilder(memory.DefaultAllocator, t.Schema().Arrow())
	defer b.Release()
	for i := from; i < to; i++ {
		b.Field(0).(*array.StringBuilder).Append(key(i))
		b.Field(1).(*array.Int64Builder).Append(int64(i) + add)
		for _, other := range b.Fields()[2:] {
			other.AppendNull()
		}
	}
	rec := b.NewRecord()
	defer rec.Release()
	w := t.NewFragmentWriter(ctx, o)
	if err := w.Write(rec); err != nil {
		return nil, err
	}
	return w.Finish()
}

func key(i int) string { return fmt.Sprintf("k%d", i) }

// plan builds an operation. Those about rows touch row 3 of the fragment, or its first five rows.
func plan(ctx context.Context, t *lance.Table, operation string, on uint64) (lance.Operation, lance.CommitOptions, error) {
	var o lance.CommitOptions
	switch operation {
	case "append":
		fragments, err := write(ctx, t, 100, 103, 0, lance.WriteOptions{})
		return &lance.Append{Fragments: fragments}, o, err
	case "delete", "delete_half", "update", "update_filter", "update_bloom", "update_taken":
		return planRows(ctx, t, operation, on)
	case "delete_blind", "update_blind": // the commit is not told which rows
		op, _, err := planRows(ctx, t, operation[:len("delete")], on)
		return op, o, err
	case "overwrite":
		fragments, err := write(ctx, t, 200, 203, 0, lance.WriteOptions{})
		return &lance.Overwrite{Schema: t.Schema(), Fragments: fragments}, o, err
	case "rewrite": // of the first fragment that has deleted rows, also when an index covers it
		op, err := t.Compact(ctx, lance.CompactOptions{TargetRows: 4, MaxRows: 1, IndexedDeletedShare: 0.1})
		return op, o, err
	case "merge":
		op, err := t.AddColumns(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int32, Nullable: true})
		return op, o, err
	case "project":
		op, err := t.DropColumns("w")
		return op, o, err
	case "restore":
		return &lance.Restore{Version: 3}, o, nil
	case "reserve":
		return &lance.ReserveFragments{Count: 3}, o, nil
	case "barrier":
		return &lance.UpdateConfig{}, lance.CommitOptions{SetMetadata: map[string]string{fence.MetaEpoch: "1"}}, nil
	case "witness":
		op, o, err := planRows(ctx, t, "update_filter", on)
		o.SetMetadata = map[string]string{
			fence.MetaGraph: "g", fence.MetaTable: "t", fence.MetaFold: "f", fence.MetaCut: "c", fence.MetaEpoch: "7",
		}
		return op, o, err
	}
	if shape, ok := strings.CutPrefix(operation, "filter_"); ok {
		op, err := planFilter(t, shape)
		return op, o, err
	}
	op, err := planConfig(t, operation)
	return op, o, err
}

// planConfig builds changes of the table's maps.
func planConfig(t *lance.Table, operation string) (lance.Operation, error) {
	set := func(key string) *lance.MapUpdate { return &lance.MapUpdate{Set: map[string]string{key: "ours"}} }
	switch operation {
	case "config":
		return &lance.UpdateConfig{Config: set("of ours")}, nil
	case "config_key":
		return &lance.UpdateConfig{Config: set("of both")}, nil
	case "config_schema":
		return &lance.UpdateConfig{SchemaMetadata: set("of ours")}, nil
	case "config_field":
		v := t.Schema().FieldIDs()[1]
		return &lance.UpdateConfig{FieldMetadata: map[int32]*lance.MapUpdate{v: set("of ours")}}, nil
	}
	return nil, fmt.Errorf("unknown operation %q", operation)
}

// planRows deletes rows; an update puts them in again with 1,000 more in v, and one with a filter inserts a key too: "k150", or as "update_taken"
// the engine's "k400".
func planRows(ctx context.Context, t *lance.Table, operation string, on uint64) (lance.Operation, lance.CommitOptions, error) {
	rows := roaring.BitmapOf(3)
	if operation == "delete_half" {
		rows = roaring.BitmapOf(0, 1, 2, 3, 4)
	}
	o := lance.CommitOptions{Affected: map[uint64]*roaring.Bitmap{on: rows}}
	updated, removed, err := t.DeleteRows(ctx, o.Affected)
	if err != nil {
		return nil, o, err
	}
	if operation == "delete" || operation == "delete_half" {
		return &lance.Delete{UpdatedFragments: updated, DeletedFragmentIDs: removed}, o, nil
	}
	op := &lance.Update{UpdatedFragments: updated, RemovedFragmentIDs: removed}
	row := int(on)*10 + 3
	if op.NewFragments, err = write(ctx, t, row, row+1, 1000, lance.WriteOptions{}); err != nil || operation == "update" {
		return op, o, err
	}
	fresh := 150
	if operation == "update_taken" {
		fresh = 400
	}
	inserted, err := write(ctx, t, fresh, fresh+1, 0, lance.WriteOptions{})
	op.NewFragments = append(op.NewFragments, inserted...)
	op.Filter = filterOf(t, fresh, operation != "update_filter")
	return op, o, err
}

// filterOf is the filter of one inserted key: exact, or in the engine's form.
func filterOf(t *lance.Table, inserted int, bloom bool) *lance.KeyFilter {
	f := &lance.KeyFilter{FieldIDs: t.Schema().PrimaryKeyFieldIDs()}
	hash := keys.Hash([]byte(key(inserted)))
	if bloom {
		f.Bloom = lance.NewBloom()
		f.Bloom.Add(hash)
	} else {
		f.Exact = []uint64{hash}
	}
	return f
}

// bloomOf is a filter of the keys prefix0, prefix1, ...
func bloomOf(prefix string, count int) *lance.Bloom {
	b := lance.NewBloom()
	for i := range count {
		b.Add(keys.Hash(fmt.Append(nil, prefix, i)))
	}
	return b
}

// planFilter builds an update that does nothing but carry a filter.
func planFilter(t *lance.Table, shape string) (lance.Operation, error) {
	f := filterOf(t, 150, true)
	switch prefix, count, _ := strings.Cut(shape, ":"); prefix {
	case "fields":
		f.FieldIDs = t.Schema().FieldIDs()[:2]
	case "items":
		f.Bloom.Items--
	case "probability":
		f.Bloom.Probability *= 2
	case "short":
		f.Bloom.Bits = f.Bloom.Bits[:len(f.Bloom.Bits)/2]
	case "empty":
		f.Bloom = lance.NewBloom()
	case "nothing":
		f.Bloom = nil
	case "bit": // one of the bits of the key that the engine inserts
		f.Bloom = oneBit(filterOf(t, 400, true).Bloom)
	default:
		n, err := strconv.Atoi(count)
		if err != nil {
			return nil, fmt.Errorf("unknown filter %q", shape)
		}
		f.Bloom = bloomOf(prefix, n)
	}
	return &lance.Update{Filter: f}, nil
}

func oneBit(of *lance.Bloom) *lance.Bloom {
	one := lance.NewBloom()
	for i, b := range of.Bits {
		if b != 0 {
			one.Bits[i] = b & -b
			break
		}
	}
	return one
}
