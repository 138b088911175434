package main

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
)

// appendFunc appends the value of a key: row names the key, round differs between two writes of it.
type appendFunc func(b array.Builder, row, round int)

// Keys depend on the row alone.
func textKey(b array.Builder, row, _ int) {
	b.(*array.StringBuilder).Append(fmt.Sprintf("k%06d-é", row))
}
func intKey(b array.Builder, row, _ int) { b.(*array.Int64Builder).Append(int64(row)*7 - 1000) }
func smallIntKey(b array.Builder, row, _ int) {
	b.(*array.Int32Builder).Append(int32(row%3) - 1)
}

// Every list of values starts with the ones at the edge of its type; above them come random ones.
func bools(b array.Builder, row, round int) {
	values(b.(*array.BooleanBuilder), row, round, []bool{false, true}, func(r *rand.Rand) bool { return r.IntN(2) == 0 })
}

func int32s(b array.Builder, row, round int) {
	values(b.(*array.Int32Builder), row, round, []int32{math.MinInt32, math.MaxInt32, 0, -1}, func(r *rand.Rand) int32 { return int32(r.Uint32()) })
}

func int64s(b array.Builder, row, round int) {
	edges := []int64{math.MinInt64, math.MaxInt64, 0, -1, 1<<53 + 1, -(1<<53 + 1), 1700000000852186258}
	values(b.(*array.Int64Builder), row, round, edges, func(r *rand.Rand) int64 { return int64(r.Uint64()) })
}

func uint32s(b array.Builder, row, round int) {
	values(b.(*array.Uint32Builder), row, round, []uint32{0, math.MaxUint32}, (*rand.Rand).Uint32)
}

func uint64s(b array.Builder, row, round int) {
	values(b.(*array.Uint64Builder), row, round, []uint64{0, math.MaxUint64, 1<<53 + 1}, (*rand.Rand).Uint64)
}

func float32s(b array.Builder, row, round int) {
	edges := []float32{0, float32(math.Copysign(0, -1)), math.MaxFloat32, math.SmallestNonzeroFloat32, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())}
	values(b.(*array.Float32Builder), row, round, edges, func(r *rand.Rand) float32 { return r.Float32()*1e6 - 5e5 })
}

func float64s(b array.Builder, row, round int) {
	edges := []float64{0, math.Copysign(0, -1), math.MaxFloat64, math.SmallestNonzeroFloat64, math.Inf(1), math.Inf(-1), math.NaN(), 0.1}
	values(b.(*array.Float64Builder), row, round, edges, func(r *rand.Rand) float64 { return r.Float64()*1e12 - 5e11 })
}

func texts(b array.Builder, row, round int) {
	edges := []string{"", " ", "a\x00b", "日本語", "\U0001f6eb", "line\nbreak", strings.Repeat("long ", 300)}
	values(b.(*array.StringBuilder), row, round, edges, func(r *rand.Rand) string {
		return strings.Repeat(string(rune('a'+r.IntN(26))), r.IntN(40)) + fmt.Sprint(r.Uint32())
	})
}

func binaries(b array.Builder, row, round int) {
	edges := [][]byte{{}, {0}, {0xff, 0xfe}, bytes.Repeat([]byte{0}, 100)}
	values(b.(*array.BinaryBuilder), row, round, edges, func(r *rand.Rand) []byte { return noise(r, r.IntN(60)) })
}

func timestamps(b array.Builder, row, round int) {
	edges := []arrow.Timestamp{0, -1, 1, 1_000_000_000_000_000_000, -1_000_000_000_000_000}
	values(b.(*array.TimestampBuilder), row, round, edges, func(r *rand.Rand) arrow.Timestamp { return arrow.Timestamp(r.Int64N(1e15)) })
}

func days(b array.Builder, row, round int) {
	values(b.(*array.Date32Builder), row, round, []arrow.Date32{0, -1, 11_016, -719_162, 2_932_896}, func(r *rand.Rand) arrow.Date32 {
		return arrow.Date32(r.IntN(40_000) - 10_000)
	})
}

func largeTexts(b array.Builder, row, round int) {
	values(b.(*array.StringBuilder), row, round, []string{"", strings.Repeat("x", 1<<20)}, func(r *rand.Rand) string {
		return strings.Repeat(fmt.Sprint(r.Uint64()), r.IntN(3000))
	})
}

func largeBinary(b array.Builder, row, round int) {
	values(b.(*array.BinaryBuilder), row, round, [][]byte{{}}, func(r *rand.Rand) []byte { return noise(r, r.IntN(50_000)) })
}

func nulls(b array.Builder, _, _ int) { b.AppendNull() }

func constant(b array.Builder, _, _ int) { b.(*array.StringBuilder).Append("always") }

// dense is the column without its nulls.
func dense(f appendFunc) appendFunc {
	return func(b array.Builder, row, round int) { f(b, row*nullEvery+1, round) }
}

// nullEvery: every such row of a nullable column is null.
const nullEvery = 5

type appender[T any] interface {
	Append(T)
	AppendNull()
}

func values[T any](b appender[T], row, round int, edges []T, random func(*rand.Rand) T) {
	if row%nullEvery == 0 {
		b.AppendNull()
		return
	}
	if n := row / nullEvery; round == 0 && n < len(edges) {
		b.Append(edges[n])
		return
	}
	b.Append(random(rand.New(rand.NewPCG(uint64(row), uint64(round)))))
}

func noise(r *rand.Rand, n int) []byte {
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	return data
}
