package fold

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/bitutil"
	"github.com/apache/arrow/go/v17/arrow/memory"
)

// rowRef names one retained row: the chunk (one record of one stored value)
// and the row within it.
type rowRef struct{ chunk, row uint32 }

// run is a stretch of consecutive rows of one chunk.
type run struct {
	chunk   uint32
	from, n int
}

// runsOf joins neighbouring references, so that a column copies stretches and
// not rows. It is computed once per output record and shared by its columns.
func runsOf(rows []rowRef) []run {
	var runs []run
	for _, r := range rows {
		if k := len(runs) - 1; k >= 0 && runs[k].chunk == r.chunk && runs[k].from+runs[k].n == int(r.row) {
			runs[k].n++
			continue
		}
		runs = append(runs, run{chunk: r.chunk, from: int(r.row), n: 1})
	}
	return runs
}

// gatherer copies chosen rows of many source arrays into one array. A nil
// source is a column that the chunk does not have: its rows are null. All other
// sources have exactly the type dt. The result is the caller's to release.
type gatherer struct {
	mem  memory.Allocator
	runs []run
	n    int
}

func newGatherer(mem memory.Allocator, rows []rowRef) gatherer {
	return gatherer{mem: mem, runs: runsOf(rows), n: len(rows)}
}

// column gathers one column. Fixed-width and binary layouts are copied by run;
// any other (nested) layout is sliced and concatenated, which costs one slice
// per run.
func (g gatherer) column(dt arrow.DataType, sources []arrow.Array) (arrow.Array, error) {
	switch t := dt.(type) {
	case *arrow.BooleanType:
		return g.bools(dt, sources), nil
	case *arrow.StringType, *arrow.BinaryType:
		return gatherBinary[int32](g, dt, sources, math.MaxInt32)
	case *arrow.LargeStringType, *arrow.LargeBinaryType:
		return gatherBinary[int64](g, dt, sources, math.MaxInt64)
	case *arrow.FixedSizeListType, *arrow.DictionaryType:
		return g.nested(dt, sources)
	case arrow.FixedWidthDataType:
		return g.fixed(dt, t.Bytes(), sources), nil
	}
	return g.nested(dt, sources)
}

// buffer allocates a zeroed buffer of n bytes.
func (g gatherer) buffer(n int) *memory.Buffer {
	b := memory.NewResizableBuffer(g.mem)
	b.Resize(n)
	clear(b.Bytes())
	return b
}

// validity builds the validity bitmap, or nil when nothing is null.
func (g gatherer) validity(sources []arrow.Array) (bitmap *memory.Buffer, nulls int) {
	for _, r := range g.runs {
		if src := sources[r.chunk]; src == nil || src.NullN() > 0 {
			bitmap = g.buffer(int(bitutil.BytesForBits(int64(g.n))))
			break
		}
	}
	if bitmap == nil {
		return nil, 0
	}
	bits, at := bitmap.Bytes(), 0
	for _, r := range g.runs {
		src := sources[r.chunk]
		switch {
		case src == nil:
		case src.NullN() == 0:
			bitutil.SetBitsTo(bits, int64(at), int64(r.n), true)
		default:
			bitutil.CopyBitmap(src.NullBitmapBytes(), src.Data().Offset()+r.from, r.n, bits, at)
		}
		at += r.n
	}
	return bitmap, g.n - bitutil.CountSetBits(bits, 0, g.n)
}

// build takes over the buffers.
func (g gatherer) build(dt arrow.DataType, nulls int, buffers ...*memory.Buffer) arrow.Array {
	data := array.NewData(dt, g.n, buffers, nil, nulls, 0)
	defer data.Release()
	for _, b := range buffers {
		if b != nil {
			b.Release()
		}
	}
	return array.MakeFromData(data)
}

func (g gatherer) fixed(dt arrow.DataType, width int, sources []arrow.Array) arrow.Array {
	values := g.buffer(g.n * width)
	dst, at := values.Bytes(), 0
	for _, r := range g.runs {
		if src := sources[r.chunk]; src != nil {
			from := (src.Data().Offset() + r.from) * width
			copy(dst[at:at+r.n*width], src.Data().Buffers()[1].Bytes()[from:from+r.n*width])
		}
		at += r.n * width
	}
	bitmap, nulls := g.validity(sources)
	return g.build(dt, nulls, bitmap, values)
}

func (g gatherer) bools(dt arrow.DataType, sources []arrow.Array) arrow.Array {
	values := g.buffer(int(bitutil.BytesForBits(int64(g.n))))
	dst, at := values.Bytes(), 0
	for _, r := range g.runs {
		if src := sources[r.chunk]; src != nil {
			bitutil.CopyBitmap(src.Data().Buffers()[1].Bytes(), src.Data().Offset()+r.from, r.n, dst, at)
		}
		at += r.n
	}
	bitmap, nulls := g.validity(sources)
	return g.build(dt, nulls, bitmap, values)
}

// gatherBinary gathers a column of values of various length, whose offsets are of type O. A column that its offsets cannot
// reach the end of is an error, never a wrapped offset.
func gatherBinary[O int32 | int64](g gatherer, dt arrow.DataType, sources []arrow.Array, limit int64) (arrow.Array, error) {
	var total int64
	for _, r := range g.runs {
		if src := sources[r.chunk]; src != nil {
			off := offsetsOf[O](src, r)
			total += int64(off[r.n]) - int64(off[0])
		}
	}
	if total > limit {
		return nil, fmt.Errorf("fold: %d bytes in one %s column of one record", total, dt)
	}
	offsets, values := g.buffer((g.n+1)*binary.Size(O(0))), g.buffer(int(total))
	dstOff, dst := arrow.GetData[O](offsets.Bytes()), values.Bytes()
	row, at := 0, O(0)
	for _, r := range g.runs {
		src := sources[r.chunk]
		if src == nil {
			for range r.n {
				row++
				dstOff[row] = at
			}
			continue
		}
		off := offsetsOf[O](src, r)
		for i := range r.n {
			row++
			dstOff[row] = at + off[i+1] - off[0]
		}
		at += O(copy(dst[at:], valueBytes(src)[off[0]:off[r.n]]))
	}
	bitmap, nulls := g.validity(sources)
	return g.build(dt, nulls, bitmap, offsets, values), nil
}

// offsetsOf is the n+1 offsets of a run.
func offsetsOf[O int32 | int64](src arrow.Array, r run) []O {
	from := src.Data().Offset() + r.from
	return arrow.GetData[O](src.Data().Buffers()[1].Bytes())[from : from+r.n+1]
}

func valueBytes(src arrow.Array) []byte {
	if b := src.Data().Buffers()[2]; b != nil {
		return b.Bytes()
	}
	return nil
}

func (g gatherer) nested(dt arrow.DataType, sources []arrow.Array) (arrow.Array, error) {
	slices := make([]arrow.Array, 0, len(g.runs))
	defer func() {
		for _, s := range slices {
			s.Release()
		}
	}()
	for _, r := range g.runs {
		if src := sources[r.chunk]; src != nil {
			slices = append(slices, array.NewSlice(src, int64(r.from), int64(r.from+r.n)))
		} else {
			slices = append(slices, array.MakeArrayOfNull(g.mem, dt, r.n))
		}
	}
	if len(slices) == 0 {
		return array.MakeArrayOfNull(g.mem, dt, 0), nil
	}
	return array.Concatenate(slices, g.mem)
}
