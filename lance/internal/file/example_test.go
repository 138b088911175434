package file_test

import (
	"bytes"
	"context"
	"fmt"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/foldline/foldline/lance/internal/file"
	"github.com/foldline/foldline/lance/internal/schema"
)

// A file is written front to back and read by column and row.
func Example() {
	ctx := context.Background()
	s := arrow.NewSchema([]arrow.Field{
		{Name: "code", Type: arrow.BinaryTypes.String},
		{Name: "runways", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
	}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, s)
	defer b.Release()
	b.Field(0).(*array.StringBuilder).AppendValues([]string{"LAS", "ATL", "MCI"}, nil)
	b.Field(1).(*array.Int32Builder).AppendValues([]int32{4, 5, 0}, []bool{true, true, false})
	rec := b.NewRecord()
	defer rec.Release()

	fields, err := schema.FromArrow(s)
	if err != nil {
		panic(err)
	}
	var out bytes.Buffer
	w, err := file.NewWriter(&out, fields, file.WriterOptions{})
	if err != nil {
		panic(err)
	}
	if err := w.Write(rec); err != nil {
		panic(err)
	}
	sum, err := w.Finish()
	if err != nil {
		panic(err)
	}
	fmt.Println(sum.Rows, "rows, version", sum.Version)

	r, err := file.OpenReader(ctx, &source{data: out.Bytes()}, file.ReaderOptions{Size: sum.Bytes})
	if err != nil {
		panic(err)
	}
	cols, err := r.Columns()
	if err != nil {
		panic(err)
	}
	for rec, err := range r.Scan(ctx, cols, 0, r.Rows(), 0) {
		if err != nil {
			panic(err)
		}
		fmt.Println(rec.Column(0), rec.Column(1))
		rec.Release()
	}
	taken, err := r.Take(ctx, cols[:1], []uint32{0, 2})
	if err != nil {
		panic(err)
	}
	defer taken.Release()
	fmt.Println(taken.Column(0))
	// Output:
	// 3 rows, version 2.1
	// ["LAS" "ATL" "MCI"] [4 5 (null)]
	// ["LAS" "MCI"]
}
