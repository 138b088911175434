package lance

import (
	"math"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/bitutil"
	"github.com/apache/arrow/go/v17/arrow/memory"
)

// run is a stretch of rows [from, to).
type run struct{ from, to int }

// gather returns the rows of the runs, in their order, as one array that the caller releases. Columns of plain values and of
// text or bytes are copied here; Arrow's own concatenation takes over for the others, at an allocation per run.
func gather(a arrow.Array, runs []run, mem memory.Allocator) (arrow.Array, error) {
	if len(runs) == 1 {
		return array.NewSlice(a, int64(runs[0].from), int64(runs[0].to)), nil
	}
	g := gatherer{data: a.Data(), runs: runs, mem: mem}
	for _, r := range runs {
		g.rows += r.to - r.from
	}
	defer g.release()
	switch t := a.DataType().(type) {
	case *arrow.StringType, *arrow.BinaryType:
		if g.variable32() {
			return g.array(a), nil
		}
	case *arrow.BooleanType:
		g.add(g.bits(1))
		return g.array(a), nil
	case *arrow.FixedSizeListType, *arrow.DictionaryType, arrow.ExtensionType:
	case arrow.FixedWidthDataType:
		g.fixed(t.BitWidth() / 8)
		return g.array(a), nil
	}
	slices := make([]arrow.Array, len(runs))
	for i, r := range runs {
		slices[i] = array.NewSlice(a, int64(r.from), int64(r.to))
	}
	defer releaseAll(slices)
	return array.Concatenate(slices, mem)
}

// gatherer copies the buffers of one array.
type gatherer struct {
	data    arrow.ArrayData
	runs    []run
	rows    int
	mem     memory.Allocator
	buffers []*memory.Buffer // those behind the validity bitmap
}

func (g *gatherer) add(b *memory.Buffer) { g.buffers = append(g.buffers, b) }

func (g *gatherer) release() {
	for _, b := range g.buffers {
		b.Release()
	}
}

func (g *gatherer) allocate(bytes int) *memory.Buffer {
	b := memory.NewResizableBuffer(g.mem)
	b.Resize(bytes)
	return b
}

// array puts the buffers together, with the bits of the validity bitmap when there are nulls.
func (g *gatherer) array(a arrow.Array) arrow.Array {
	buffers := append([]*memory.Buffer{nil}, g.buffers...)
	nulls := 0
	if a.NullN() > 0 {
		buffers[0] = g.bits(0)
		defer buffers[0].Release()
		nulls = g.rows - bitutil.CountSetBits(buffers[0].Bytes(), 0, g.rows)
	}
	data := array.NewData(a.DataType(), g.rows, buffers, nil, nulls, 0)
	defer data.Release()
	return array.MakeFromData(data)
}

// bits copies the runs of a bitmap.
func (g *gatherer) bits(buffer int) *memory.Buffer {
	out := g.allocate(int(bitutil.BytesForBits(int64(g.rows))))
	clear(out.Bytes())
	src, at := g.data.Buffers()[buffer].Bytes(), 0
	for _, r := range g.runs {
		bitutil.CopyBitmap(src, g.data.Offset()+r.from, r.to-r.from, out.Bytes(), at)
		at += r.to - r.from
	}
	return out
}

// fixed copies the runs of values of width bytes.
func (g *gatherer) fixed(width int) {
	out := g.allocate(g.rows * width)
	g.add(out)
	src, dst := g.data.Buffers()[1].Bytes()[g.data.Offset()*width:], out.Bytes()
	for _, r := range g.runs {
		n := copy(dst, src[r.from*width:r.to*width])
		dst = dst[n:]
	}
}

// variable32 copies the runs of text or bytes with 32-bit offsets; false when they would not fit, which repeats in the runs can
// cause.
func (g *gatherer) variable32() bool {
	offsets := arrow.Int32Traits.CastFromBytes(g.data.Buffers()[1].Bytes())[g.data.Offset():]
	total := int64(0)
	for _, r := range g.runs {
		total += int64(offsets[r.to]) - int64(offsets[r.from])
	}
	if total > math.MaxInt32 {
		return false
	}
	g.add(g.allocate(arrow.Int32Traits.BytesRequired(g.rows + 1)))
	g.add(g.allocate(int(total)))
	to := arrow.Int32Traits.CastFromBytes(g.buffers[0].Bytes())
	var src []byte
	if b := g.data.Buffers()[2]; b != nil {
		src = b.Bytes()
	}
	dst := g.buffers[1].Bytes()
	row, end := 0, int32(0)
	to[0] = 0
	for _, r := range g.runs {
		copy(dst[end:], src[offsets[r.from]:offsets[r.to]])
		for i := r.from; i < r.to; i++ {
			end += offsets[i+1] - offsets[i]
			row++
			to[row] = end
		}
	}
	return true
}
