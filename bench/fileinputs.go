package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"time"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/foldline/foldline/examples/flights"
)

const (
	// inputBatchRows is the length of the batches that both sides write.
	inputBatchRows = 8192
	// flightRepeats makes about a million rows of the sample's 5,000 flights.
	flightRepeats = 200
	vectorRows    = 60_000
	vectorLength  = 384
	idRows        = 200_000
)

// fileInput is data to write and scan: an Arrow IPC file that both sides load.
type fileInput struct {
	name, path string
	rows       int64
	bytes      int64 // of the Arrow values in memory
}

// makeInput writes rows to an Arrow IPC file; appendRow appends the i-th.
func makeInput(path, name string, s *arrow.Schema, rows int, appendRow func(b *array.RecordBuilder, i int)) (in fileInput, err error) {
	f, err := os.Create(path)
	if err != nil {
		return in, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w, err := ipc.NewFileWriter(f, ipc.WithSchema(s))
	if err != nil {
		return in, err
	}
	in = fileInput{name: name, path: path, rows: int64(rows)}
	b := array.NewRecordBuilder(memory.DefaultAllocator, s)
	defer b.Release()
	for from := 0; from < rows; from += inputBatchRows {
		for i := from; i < min(from+inputBatchRows, rows); i++ {
			appendRow(b, i)
		}
		rec := b.NewRecord()
		for _, column := range rec.Columns() {
			in.bytes += valueBytes(column.Data())
		}
		err := w.Write(rec)
		rec.Release()
		if err != nil {
			return in, err
		}
	}
	return in, w.Close()
}

// valueBytes counts the values and offsets of an array, not its validity, which
// not every side keeps.
func valueBytes(data arrow.ArrayData) (n int64) {
	for _, buffer := range data.Buffers()[1:] {
		n += int64(buffer.Len())
	}
	for _, child := range data.Children() {
		n += valueBytes(child)
	}
	return n
}

var flightSchema = arrow.NewSchema([]arrow.Field{
	{Name: "id", Type: arrow.BinaryTypes.String},
	{Name: "src", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "dst", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "departed", Type: arrow.FixedWidthTypes.Timestamp_us, Nullable: true},
	{Name: "delay", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "distance", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
}, nil)

// flightInput is the sample's flights again and again, each with an id of its own.
func flightInput(path string) (fileInput, error) {
	sample, err := readFlights()
	if err != nil {
		return fileInput{}, err
	}
	return makeInput(path, "flights", flightSchema, flightRepeats*len(sample), func(b *array.RecordBuilder, i int) {
		sample[i%len(sample)].append(b, i)
	})
}

// changedFlightInput is flights for a table of flightInput's: half of them have ids that are there, spread evenly, and another delay.
func changedFlightInput(path string, rows int) (fileInput, error) {
	sample, err := readFlights()
	if err != nil {
		return fileInput{}, err
	}
	there := flightRepeats * len(sample)
	return makeInput(path, "changes", flightSchema, rows, func(b *array.RecordBuilder, i int) {
		id := there + i/2
		if i%2 == 0 {
			id = i * (there / rows)
		}
		f := sample[id%len(sample)]
		f.Delay += 1000
		f.append(b, id)
	})
}

func (f flight) append(b *array.RecordBuilder, id int) {
	b.Field(0).(*array.StringBuilder).Append(fmt.Sprintf("F%07d", id))
	b.Field(1).(*array.StringBuilder).Append(f.Src)
	b.Field(2).(*array.StringBuilder).Append(f.Dst)
	b.Field(3).(*array.TimestampBuilder).Append(arrow.Timestamp(f.Departed.UnixMicro()))
	b.Field(4).(*array.Int64Builder).Append(f.Delay)
	b.Field(5).(*array.Int64Builder).Append(f.Distance)
}

type flight struct {
	Src, Dst        string
	Departed        time.Time
	Delay, Distance int64
}

func readFlights() (out []flight, err error) {
	for _, f := range flights.Files() {
		if f.Table != "edge:Flight" {
			continue
		}
		data, err := f.Read()
		if err != nil {
			return nil, err
		}
		d := json.NewDecoder(bytes.NewReader(data))
		for {
			var row flight
			if err := d.Decode(&row); errors.Is(err, io.EOF) {
				return out, nil
			} else if err != nil {
				return nil, fmt.Errorf("%s: %w", f.Name, err)
			}
			out = append(out, row)
		}
	}
	return nil, errors.New("bench: the sample has no flights")
}

// vectorInput is vectors of noise, which nothing compresses.
func vectorInput(path string) (fileInput, error) {
	s := arrow.NewSchema([]arrow.Field{{Name: "vector", Type: arrow.FixedSizeListOf(vectorLength, arrow.PrimitiveTypes.Float32), Nullable: true}}, nil)
	rng := rand.New(rand.NewPCG(3, 384))
	return makeInput(path, "vectors", s, vectorRows, func(b *array.RecordBuilder, _ int) {
		list := b.Field(0).(*array.FixedSizeListBuilder)
		list.Append(true)
		items := list.ValueBuilder().(*array.Float32Builder)
		for range vectorLength {
			items.Append(rng.Float32())
		}
	})
}

// idInput is strings such as systems make for ids: a kind, a number, and noise.
func idInput(path string) (fileInput, error) {
	s := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.BinaryTypes.String}}, nil)
	kinds := []string{"customer", "order", "device", "session"}
	return makeInput(path, "ids", s, idRows, func(b *array.RecordBuilder, i int) {
		id := fmt.Sprintf("%s:%08d-%08x", kinds[spread(uint64(i))%4], i, uint32(spread(uint64(i))>>32))
		b.Field(0).(*array.StringBuilder).Append(id)
	})
}
