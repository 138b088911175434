package main

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/decimal128"
	"github.com/apache/arrow/go/v17/arrow/decimal256"
	"github.com/apache/arrow/go/v17/arrow/float16"
)

// drawn appends a random value of any type, null at every fifth row.
func drawn(b array.Builder, row, round int) {
	if row%nullEvery == 0 {
		b.AppendNull()
		return
	}
	draw(b, rand.New(rand.NewPCG(uint64(row), uint64(round))))
}

// longLists makes lists that fill many pages.
func longLists(b array.Builder, row, round int) {
	if row%nullEvery == 0 {
		b.AppendNull()
		return
	}
	r := rand.New(rand.NewPCG(uint64(row), uint64(round)))
	l := b.(*array.ListBuilder)
	l.Append(true)
	for range r.IntN(400) {
		l.ValueBuilder().(*array.StringBuilder).Append(strings.Repeat("item ", r.IntN(50)))
	}
}

// draw appends a value that is not null itself; items of lists and vectors and fields of structs may be.
func draw(b array.Builder, r *rand.Rand) {
	switch b := b.(type) {
	case *array.ListBuilder:
		b.Append(true)
		drawItems(b.ValueBuilder(), r, r.IntN(5))
	case *array.LargeListBuilder:
		b.Append(true)
		drawItems(b.ValueBuilder(), r, r.IntN(5))
	case *array.FixedSizeListBuilder:
		b.Append(true)
		for range b.Type().(*arrow.FixedSizeListType).Len() {
			draw(b.ValueBuilder(), r)
		}
	case *array.StructBuilder:
		b.Append(true)
		for i := range b.NumField() {
			drawItems(b.FieldBuilder(i), r, 1)
		}
	default:
		drawScalar(b, r)
	}
}

// drawItems appends n values; structs are never null, since version 2.0 has no place for that.
func drawItems(b array.Builder, r *rand.Rand, n int) {
	for range n {
		if _, isStruct := b.(*array.StructBuilder); !isStruct && r.IntN(6) == 0 {
			b.AppendNull()
		} else {
			draw(b, r)
		}
	}
}

func drawScalar(b array.Builder, r *rand.Rand) {
	switch b := b.(type) {
	case *array.Int8Builder:
		b.Append(int8(r.Uint32()))
	case *array.Uint16Builder:
		b.Append(uint16(r.Uint32()))
	case *array.Int32Builder:
		b.Append(int32(r.Uint32()))
	case *array.Int64Builder:
		b.Append(int64(r.Uint64()))
	case *array.Float16Builder:
		b.Append(float16.New(r.Float32()))
	case *array.Float32Builder:
		b.Append(r.Float32())
	case *array.Decimal128Builder:
		b.Append(decimal128.FromI64(r.Int64N(1e18) - 5e17))
	case *array.Decimal256Builder:
		b.Append(decimal256.FromI64(r.Int64N(1e18) - 5e17))
	case *array.FixedSizeBinaryBuilder:
		b.Append(noise(r, 7))
	case *array.Date64Builder:
		b.Append(arrow.Date64(r.Int64N(20_000) * 86_400_000))
	case *array.Time32Builder:
		b.Append(arrow.Time32(r.IntN(86_400)))
	case *array.Time64Builder:
		b.Append(arrow.Time64(r.Int64N(86_400e9)))
	case *array.DurationBuilder:
		b.Append(arrow.Duration(r.Int64N(1e12)))
	case *array.StringBuilder:
		b.Append(strings.Repeat("é", r.IntN(4)))
	case *array.LargeStringBuilder:
		b.Append(fmt.Sprint("large ", r.IntN(1000)))
	case *array.BinaryBuilder:
		b.Append(noise(r, r.IntN(20)))
	case *array.BinaryDictionaryBuilder:
		if err := b.AppendString(fmt.Sprint("code ", r.IntN(30))); err != nil {
			panic(err) // more than 30 values in 16 bits
		}
	default:
		panic(fmt.Sprintf("no values for %T", b))
	}
}
