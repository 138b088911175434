package lance_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/foldline/foldline/fence"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
)

var columns = arrow.NewSchema([]arrow.Field{
	{Name: "id", Type: arrow.BinaryTypes.String}, {Name: "city", Type: arrow.BinaryTypes.String, Nullable: true},
}, nil)

// Example creates a table, upserts, deletes, scans, and looks at how it was.
func Example() {
	ctx := context.Background()
	schema, err := lance.NewSchema(columns, []string{"id"})
	check(err)
	v1, err := lance.Create(ctx, objstore.NewMemory(), "people.lance", schema, lance.CreateOptions{})
	check(err)
	v2 := apply(ctx, v1, fence.Changes{Upserts: people("ada", "London", "grace", "New York")})
	v3 := apply(ctx, v2, fence.Changes{Upserts: people("grace", "Arlington", "barbara", "Boston")})
	gone := fence.KeySet{}
	check(gone.AddRecord(people("ada", "")[0], []string{"id"}))
	v4 := apply(ctx, v3, fence.Changes{Deletes: gone})
	show(ctx, v4)
	before, err := v4.At(ctx, 2)
	check(err)
	show(ctx, before)
	// Output:
	// version 4: grace in Arlington, barbara in Boston
	// version 2: ada in London, grace in New York
}

// apply commits changes; a key that is there is replaced, one that is not is fenced against others who insert it.
func apply(ctx context.Context, t *lance.Table, c fence.Changes) *lance.Table {
	done, err := fence.Apply(ctx, t, c, lance.CommitOptions{})
	check(err)
	return done.Table
}

func show(ctx context.Context, t *lance.Table) {
	var rows []string
	for rec, err := range t.Scan(ctx, lance.ScanOptions{}) {
		check(err)
		for i := range int(rec.NumRows()) {
			rows = append(rows, rec.Column(0).ValueStr(i)+" in "+rec.Column(1).ValueStr(i))
		}
		rec.Release()
	}
	fmt.Printf("version %d: %s\n", t.Version(), strings.Join(rows, ", "))
}

// people are rows of id and city in turn.
func people(values ...string) []arrow.Record {
	b := array.NewRecordBuilder(memory.DefaultAllocator, columns)
	defer b.Release()
	for i, v := range values {
		b.Field(i % 2).(*array.StringBuilder).Append(v)
	}
	return []arrow.Record{b.NewRecord()}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
