package lance_test

import (
	"context"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/foldline/foldline/internal/keys"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
)

// Example creates a table, inserts two rows, replaces one and looks at both versions.
func Example() {
	ctx, store := context.Background(), objstore.NewMemory()
	schema, err := lance.NewSchema(arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.BinaryTypes.String}}, nil), []string{"id"})
	check(err)
	table, err := lance.Create(ctx, store, "people.lance", schema, lance.CreateOptions{})
	check(err)
	table = upsert(ctx, table, nil, "ada", "grace")
	gone := map[uint64]*roaring.Bitmap{0: roaring.BitmapOf(1)} // "grace": fragment 0, row 1
	table = upsert(ctx, table, gone, "barbara")
	fmt.Println(table.Version(), names(ctx, table))
	before, err := table.At(ctx, 2)
	check(err)
	fmt.Println(before.Version(), names(ctx, before))
	// Output:
	// 3 [ada barbara]
	// 2 [ada grace]
}

// upsert deletes rows by address and inserts names, fenced by a filter of the inserted keys.
func upsert(ctx context.Context, t *lance.Table, gone map[uint64]*roaring.Bitmap, inserted ...string) *lance.Table {
	b := array.NewRecordBuilder(memory.DefaultAllocator, t.Schema().Arrow())
	defer b.Release()
	update := &lance.Update{Filter: &lance.KeyFilter{FieldIDs: t.Schema().PrimaryKeyFieldIDs()}}
	for _, name := range inserted {
		b.Field(0).(*array.StringBuilder).Append(name)
		update.Filter.Exact = append(update.Filter.Exact, keys.Hash([]byte(name)))
	}
	w := t.NewFragmentWriter(ctx, lance.WriteOptions{})
	check(w.Write(b.NewRecord()))
	var err error
	update.NewFragments, err = w.Finish()
	check(err)
	update.UpdatedFragments, update.RemovedFragmentIDs, err = t.DeleteRows(ctx, gone)
	check(err)
	r, err := t.Commit(ctx, lance.NewTransaction(t, update), lance.CommitOptions{Affected: gone})
	check(err)
	return r.Table
}

func names(ctx context.Context, t *lance.Table) (out []string) {
	for rec, err := range t.Scan(ctx, lance.ScanOptions{}) {
		check(err)
		for i := range int(rec.NumRows()) {
			out = append(out, rec.Column(0).(*array.String).Value(i))
		}
		rec.Release()
	}
	return out
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
