package file_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/foldline/foldline/lance/internal/file"
	"github.com/foldline/foldline/lance/internal/schema"
)

// source is a file in memory that counts what is read.
type source struct {
	data     []byte
	requests atomic.Int64
	bytes    atomic.Int64
}

func (s *source) GetRange(_ context.Context, off, n int64) ([]byte, error) {
	s.requests.Add(1)
	s.bytes.Add(n)
	if off < 0 || n < 0 || off+n > int64(len(s.data)) {
		return nil, io.ErrUnexpectedEOF
	}
	return bytes.Clone(s.data[off : off+n]), nil
}

func (s *source) GetTail(ctx context.Context, n int64) ([]byte, int64, error) {
	size := int64(len(s.data))
	b, err := s.GetRange(ctx, size-min(n, size), min(n, size))
	return b, size, err
}

// writeFile writes records into a file in memory.
func writeFile(t require.TestingT, opts file.WriterOptions, s *arrow.Schema, recs ...arrow.Record) ([]byte, file.Summary) {
	fields, err := schema.FromArrow(s)
	require.NoError(t, err)
	var out bytes.Buffer
	w, err := file.NewWriter(&out, fields, opts)
	require.NoError(t, err)
	for _, rec := range recs {
		require.NoError(t, w.Write(rec))
	}
	sum, err := w.Finish()
	require.NoError(t, err)
	require.EqualValues(t, out.Len(), sum.Bytes)
	return out.Bytes(), sum
}

// openFile opens a file in memory with all its columns.
func openFile(t require.TestingT, data []byte, opts file.ReaderOptions) (*source, *file.Reader, []file.Column) {
	src := &source{data: data}
	r, err := file.OpenReader(context.Background(), src, opts)
	require.NoError(t, err)
	cols, err := r.Columns()
	require.NoError(t, err)
	return src, r, cols
}

// requireRows compares rows of two columns, value by value.
func requireRows(t require.TestingT, want, got arrow.Array, rows []uint32) {
	require.Equal(t, len(rows), got.Len())
	for i, row := range rows {
		if w, g := text(want, int(row)), text(got, i); w != g {
			require.Failf(t, "values differ", "row %d: want %s, got %s", row, w, g)
		}
	}
}

func upTo(n int) []uint32 {
	rows := make([]uint32, n)
	for i := range rows {
		rows[i] = uint32(i)
	}
	return rows
}

// Whatever is written reads back the same: scanned in any batch size and taken in any subset.
func TestRandomTypesReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := randomType(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "type") }, 3)
		s := style{
			nulls:    rapid.SampledFrom([]float64{0, 0.1, 0.9, 1}).Draw(t, "nulls"),
			distinct: rapid.SampledFrom([]int{0, 1, 5}).Draw(t, "distinct"),
			small:    rapid.Bool().Draw(t, "small"),
			longest:  rapid.SampledFrom([]int{0, 3, 40, 400}).Draw(t, "longest"),
			items:    rapid.SampledFrom([]int{0, 2, 9}).Draw(t, "items"),
		}
		n := rapid.SampledFrom([]int{1, 7, 300, 3000}).Draw(t, "rows")
		roundTrip(t, typ, s, n, rapid.Uint64().Draw(t, "seed"))
	})
}

func roundTrip(t *rapid.T, typ arrow.DataType, s style, n int, seed uint64) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	r := rand.New(rand.NewPCG(seed, 1))
	opts := file.WriterOptions{
		Version:   rapid.SampledFrom([]file.Version{file.V20, file.V21, file.V22}).Draw(t, "version"),
		PageBytes: rapid.SampledFrom([]int64{4 << 10, 64 << 10, 0}).Draw(t, "page"),
	}
	s.wholeStructs = opts.Version == file.V20
	arr := randomArray(r, memory.DefaultAllocator, typ, n, s)
	sc := arrow.NewSchema([]arrow.Field{nullable("c", typ)}, nil)
	var recs []arrow.Record
	for from := 0; from < n; {
		to := min(n, from+1+r.IntN(n))
		recs = append(recs, array.NewRecord(sc, []arrow.Array{array.NewSlice(arr, int64(from), int64(to))}, int64(to-from)))
		from = to
	}
	data, sum := writeFile(t, opts, sc, recs...)
	require.EqualValues(t, n, sum.Rows)
	_, reader, cols := openFile(t, data, file.ReaderOptions{Allocator: mem, WindowBytes: int64(1 + r.IntN(1<<16))})
	from := r.IntN(n)
	to := from + r.IntN(n-from) + 1
	at := from
	for rec, err := range reader.Scan(context.Background(), cols, int64(from), int64(to), 1+r.IntN(n)) {
		require.NoError(t, err)
		rows := upTo(int(rec.NumRows()))
		for i := range rows {
			rows[i] += uint32(at)
		}
		requireRows(t, arr, rec.Column(0), rows)
		at += int(rec.NumRows())
		rec.Release()
	}
	require.Equal(t, to, at)
	var picked []uint32
	for i := range n {
		if r.IntN(4) == 0 {
			picked = append(picked, uint32(i))
		}
	}
	rec, err := reader.Take(context.Background(), cols, picked)
	require.NoError(t, err)
	requireRows(t, arr, rec.Column(0), picked)
	rec.Release()
}

func TestEmptyFile(t *testing.T) {
	s := arrow.NewSchema([]arrow.Field{nullable("a", arrow.PrimitiveTypes.Int64), nullable("b", arrow.BinaryTypes.String)}, nil)
	data, sum := writeFile(t, file.WriterOptions{}, s)
	require.Zero(t, sum.Rows)
	require.Equal(t, []file.ColumnRef{{FieldID: 0, Index: 0}, {FieldID: 1, Index: 1}}, sum.Columns)
	src, r, cols := openFile(t, data, file.ReaderOptions{})
	require.Zero(t, r.Rows())
	require.EqualValues(t, 1, src.requests.Load())
	for rec, err := range r.Scan(context.Background(), cols, 0, 0, 0) {
		t.Fatal("a record of no rows", rec, err)
	}
}

// A field that a file does not have reads as null; a struct that has lost a child keeps the others.
func TestMissingColumnsReadAsNull(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	st := arrow.StructOf(nullable("x", arrow.PrimitiveTypes.Int64), nullable("y", arrow.BinaryTypes.String))
	s := arrow.NewSchema([]arrow.Field{nullable("s", st)}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, s)
	b.Field(0).(*array.StructBuilder).Append(true)
	b.Field(0).(*array.StructBuilder).FieldBuilder(0).(*array.Int64Builder).Append(7)
	b.Field(0).(*array.StructBuilder).FieldBuilder(1).(*array.StringBuilder).Append("seven")
	data, _ := writeFile(t, file.WriterOptions{}, s, b.NewRecord())
	_, r, cols := openFile(t, data, file.ReaderOptions{Allocator: mem})
	cols[0].Leaves[1] = -1
	cols = append(cols, file.Column{Field: nullable("l", arrow.ListOf(arrow.PrimitiveTypes.Int8)), Leaves: []int32{-1}})
	rec, err := r.Take(context.Background(), cols, []uint32{0})
	require.NoError(t, err)
	defer rec.Release()
	require.Equal(t, "{[7] [(null)]}", fmt.Sprint(rec.Column(0)))
	require.True(t, rec.Column(1).IsNull(0))
}
