package ipcstream_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/internal/envelope/ipcstream"
)

var limits = ipcstream.Limits{Rows: 10_000, Columns: 64, Nesting: 8, Bytes: 8 << 20}

// everything is a schema of all accepted types.
func everything() *arrow.Schema {
	var fields []arrow.Field
	for i, t := range []arrow.DataType{
		arrow.FixedWidthTypes.Boolean, arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
		arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Uint64,
		arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64, arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.Binary,
		arrow.BinaryTypes.LargeBinary, &arrow.FixedSizeBinaryType{ByteWidth: 3}, &arrow.Decimal128Type{Precision: 10, Scale: 2},
		arrow.FixedWidthTypes.Date32, arrow.FixedWidthTypes.Date64, arrow.FixedWidthTypes.Time32s, arrow.FixedWidthTypes.Time64ns,
		arrow.FixedWidthTypes.Timestamp_us, &arrow.TimestampType{Unit: arrow.Second}, arrow.FixedWidthTypes.Duration_ms, arrow.Null,
		arrow.ListOf(arrow.BinaryTypes.String), arrow.LargeListOf(arrow.PrimitiveTypes.Int64), arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float32),
		arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, arrow.Field{Name: "b", Type: arrow.ListOf(arrow.FixedWidthTypes.Boolean), Nullable: true}),
	} {
		fields = append(fields, arrow.Field{Name: fmt.Sprintf("c%d", i), Type: t, Nullable: true})
	}
	return arrow.NewSchema(fields, nil)
}

// sample is a record of the schema with nulls in it; rows differ.
func sample(s *arrow.Schema, rows int) arrow.Record {
	b := array.NewRecordBuilder(memory.NewGoAllocator(), s)
	for row := range rows {
		for i := range s.NumFields() {
			appendSample(b.Field(i), row+i)
		}
	}
	return b.NewRecord()
}

func appendSample(b array.Builder, n int) {
	if n%4 == 3 {
		b.AppendNull()
		return
	}
	switch b := b.(type) {
	case *array.StructBuilder:
		b.Append(true)
		for i := range b.NumField() {
			appendSample(b.FieldBuilder(i), n+i)
		}
	case *array.FixedSizeListBuilder:
		b.Append(true)
		appendSample(b.ValueBuilder(), n)
		appendSample(b.ValueBuilder(), n+1)
	case array.VarLenListLikeBuilder:
		b.Append(true)
		for j := range n % 3 {
			appendSample(b.ValueBuilder(), n+j)
		}
	case *array.StringBuilder:
		b.Append(strings.Repeat("é", n%5))
	case *array.LargeStringBuilder:
		b.Append(fmt.Sprint(n))
	case *array.BinaryBuilder:
		b.Append([]byte{0xff, byte(n)})
	case *array.BinaryDictionaryBuilder:
		if err := b.AppendString(fmt.Sprint("v", n%7)); err != nil {
			panic(err)
		}
	case *array.FixedSizeBinaryBuilder:
		b.Append([]byte{1, 2, byte(n)})
	case *array.NullBuilder:
		b.AppendNull()
	default:
		text := map[arrow.Type]string{arrow.BOOL: "true", arrow.DATE32: "2026-03-29", arrow.DATE64: "2026-03-29", arrow.TIME32: "01:02:03", arrow.TIME64: "01:02:03",
			arrow.TIMESTAMP: "2026-03-29T02:30:00", arrow.DECIMAL128: "1.25"}[b.Type().ID()]
		if text == "" {
			text = fmt.Sprint(n % 100)
		}
		if b.Type().ID() == arrow.DURATION {
			text = fmt.Sprint(n, "ms")
		}
		if err := b.AppendValueFromString(text); err != nil {
			panic(fmt.Sprint(b.Type(), ": ", err))
		}
	}
}

// stream is what Arrow's own writer makes of records.
func stream(t testing.TB, records []arrow.Record, options ...ipc.Option) []byte {
	t.Helper()
	var out bytes.Buffer
	w := ipc.NewWriter(&out, append([]ipc.Option{ipc.WithSchema(records[0].Schema())}, options...)...)
	for _, r := range records {
		require.NoError(t, w.Write(r))
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

// read reads a stream by a reader of its own.
func read(data []byte, limits ipcstream.Limits) (*arrow.Schema, []arrow.Record, error) {
	r := ipcstream.Reader{Limits: limits}
	return r.Read(data)
}

func TestReadsWhatArrowWrites(t *testing.T) {
	s := everything()
	whole := sample(s, 40)
	records := []arrow.Record{whole, whole.NewSlice(3, 30), sample(s, 0), sample(s, 1), whole.NewSlice(8, 9)}
	for name, options := range map[string][]ipc.Option{
		"plain": nil, "zstd": {ipc.WithZstd()}, "lz4": {ipc.WithLZ4()}, "min space": {ipc.WithZstd(), ipc.WithMinSpaceSavings(0.9)},
	} {
		t.Run(name, func(t *testing.T) {
			schema, got, err := read(stream(t, records, options...), limits)
			require.NoError(t, err)
			require.True(t, s.Equal(schema), "%v", schema)
			require.Len(t, got, len(records))
			for i := range records {
				require.True(t, array.RecordEqual(records[i], got[i]), "record %d: %v", i, got[i])
			}
		})
	}
}

// C96: dictionaries that are extended or replaced, and shared ones, show the strings that they stood for.
func TestDictionariesAreExpanded(t *testing.T) {
	dict := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}
	s := arrow.NewSchema([]arrow.Field{{Name: "d", Type: dict, Nullable: true}, {Name: "l", Type: arrow.ListOf(dict), Nullable: true}}, nil)
	b := array.NewRecordBuilder(memory.NewGoAllocator(), s)
	var records []arrow.Record
	for _, words := range [][]string{{"a", "b"}, {"x", "y", ""}, {"z", "a"}} {
		l := b.Field(1).(*array.ListBuilder)
		for _, w := range words {
			require.NoError(t, b.Field(0).(*array.BinaryDictionaryBuilder).AppendString(w))
			l.Append(true)
			require.NoError(t, l.ValueBuilder().(*array.BinaryDictionaryBuilder).AppendString(w+w))
			l.ValueBuilder().AppendNull()
		}
		b.Field(0).AppendNull()
		b.Field(1).AppendNull()
		records = append(records, b.NewRecord())
	}
	want := "[a b (null) x y  (null) z a (null)]"
	wantLists := `[["aa",null] ["bb",null] (null) ["xx",null] ["yy",null] ["",null] (null) ["zz",null] ["aa",null] (null)]`
	for _, deltas := range []bool{false, true} {
		schema, got, err := read(stream(t, records, ipc.WithDictionaryDeltas(deltas)), limits)
		require.NoError(t, err)
		require.Equal(t, arrow.STRING, schema.Field(0).Type.ID())
		var text, lists []string
		for _, r := range got {
			for i := range int(r.NumRows()) {
				text = append(text, r.Column(0).ValueStr(i))
				lists = append(lists, r.Column(1).ValueStr(i))
			}
		}
		require.Equal(t, want, fmt.Sprint(text))
		require.Equal(t, wantLists, fmt.Sprint(lists))
	}
}

func TestRefusals(t *testing.T) {
	good := stream(t, []arrow.Record{sample(everything(), 10)})
	end := []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}
	view := stream(t, []arrow.Record{sample(arrow.NewSchema([]arrow.Field{{Name: "m", Type: arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64), Nullable: true}}, nil), 0)})
	for name, data := range map[string][]byte{
		"empty": nil, "end only": end, "no end mark": good[:len(good)-8], "behind the end": append(bytes.Clone(good), 0),
		"second stream": append(bytes.Clone(good), good...), "file magic": []byte("ARROW1\x00\x00"), "huge metadata": {0xff, 0xff, 0xff, 0xff, 0xf8, 0xff, 0xff, 0x7f},
		"negative metadata": {0xff, 0xff, 0xff, 0xff, 0xf8, 0xff, 0xff, 0xff}, "type": view, "zeroes": make([]byte, 4096),
	} {
		_, _, err := read(data, limits)
		var e *ipcstream.Error
		require.ErrorAs(t, err, &e, name)
	}
	for n := range len(good) {
		_, _, err := read(good[:n], limits)
		require.Error(t, err, "cut at %d", n)
	}
}

func TestLimits(t *testing.T) {
	record := sample(everything(), 100)
	for name, change := range map[string]func(*ipcstream.Limits){
		"rows": func(l *ipcstream.Limits) { l.Rows = 99 }, "columns": func(l *ipcstream.Limits) { l.Columns = 20 },
		"nesting": func(l *ipcstream.Limits) { l.Nesting = 1 }, "bytes": func(l *ipcstream.Limits) { l.Bytes = 1000 },
	} {
		for _, options := range [][]ipc.Option{nil, {ipc.WithZstd()}, {ipc.WithLZ4()}} {
			l := limits
			change(&l)
			_, _, err := read(stream(t, []arrow.Record{record}, options...), l)
			require.Error(t, err, name)
		}
	}
}

// C152: a little that expands to a lot is refused by what it declares, and by what comes out when it lies.
func TestBombs(t *testing.T) {
	s := arrow.NewSchema([]arrow.Field{{Name: "b", Type: arrow.BinaryTypes.Binary}}, nil)
	b := array.NewRecordBuilder(memory.NewGoAllocator(), s)
	b.Field(0).(*array.BinaryBuilder).Append(make([]byte, 64<<20))
	record := b.NewRecord()
	for _, option := range []ipc.Option{ipc.WithZstd(), ipc.WithLZ4()} {
		data := stream(t, []arrow.Record{record}, option)
		require.Less(t, len(data), 1<<20)
		_, _, err := read(data, limits)
		require.Error(t, err)
		// The same with a declared size that is within the limit.
		at := bytes.Index(data, binary.LittleEndian.AppendUint64(nil, 64<<20))
		require.Positive(t, at)
		binary.LittleEndian.PutUint64(data[at:], 1<<20)
		_, _, err = read(data, limits)
		require.Error(t, err)
	}
}

// Every bit of a stream flipped: no panic, no large allocation, and what is accepted can be used to the last value.
func TestBitFlips(t *testing.T) {
	dict := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Uint16, ValueType: arrow.BinaryTypes.String}
	small := arrow.NewSchema([]arrow.Field{
		{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true}, {Name: "n", Type: arrow.PrimitiveTypes.Int64}, {Name: "d", Type: dict, Nullable: true},
		{Name: "l", Type: arrow.ListOf(arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int32, Nullable: true})), Nullable: true},
	}, nil)
	for _, options := range [][]ipc.Option{nil, {ipc.WithZstd()}, {ipc.WithLZ4()}} {
		data := stream(t, []arrow.Record{sample(small, 5)}, options...)
		// Flips inside of compressed data meet the decompressor again and again: every seventh bit meets all of the rest.
		step := 1
		if options != nil {
			step = 7
		}
		accepted := 0
		for bit := 0; bit < len(data)*8; bit += step {
			data[bit/8] ^= 1 << (bit % 8)
			if _, records, err := read(data, limits); err == nil {
				accepted++
				use(records)
			}
			data[bit/8] ^= 1 << (bit % 8)
		}
		t.Logf("%d bits, %d flips accepted as other values", len(data)*8, accepted)
	}
}

// use touches every value.
func use(records []arrow.Record) {
	for _, r := range records {
		for _, c := range r.Columns() {
			for i := range c.Len() {
				_ = c.ValueStr(i)
			}
		}
	}
}

func FuzzRead(f *testing.F) {
	s := everything()
	dict := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.Binary}
	for _, options := range [][]ipc.Option{nil, {ipc.WithZstd()}, {ipc.WithLZ4()}} {
		f.Add(stream(f, []arrow.Record{sample(s, 3), sample(s, 9)}, options...))
	}
	f.Add(stream(f, []arrow.Record{sample(arrow.NewSchema([]arrow.Field{{Name: "d", Type: dict, Nullable: true}}, nil), 9)}, ipc.WithDictionaryDeltas(true)))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		schema, records, err := read(data, limits)
		if err != nil {
			return
		}
		use(records)
		// What was accepted is a record like any other: it survives a round trip.
		for _, r := range records {
			_, again, err := read(stream(t, []arrow.Record{r}), ipcstream.Limits{Rows: 1 << 20, Columns: 128, Nesting: 16, Bytes: 1 << 28})
			require.NoError(t, err)
			require.True(t, schema.Equal(r.Schema()))
			require.Len(t, again, 1)
		}
	})
}

// TestReaderRemembersTheSchema: a reader that is used again reads every stream as a new one does, whatever it read before.
func TestReaderRemembersTheSchema(t *testing.T) {
	limits := ipcstream.Limits{Rows: 1 << 20, Columns: 128, Nesting: 16, Bytes: 1 << 28}
	one := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	two := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil)
	again := ipcstream.Reader{Limits: limits}
	for i, c := range []*arrow.Schema{one, one, two, everything(), one} {
		data := stream(t, []arrow.Record{sample(c, 3+i)})
		wantSchema, want, err := read(data, limits)
		require.NoError(t, err)
		gotSchema, got, err := again.Read(data)
		require.NoError(t, err)
		require.True(t, wantSchema.Equal(gotSchema))
		require.True(t, array.RecordEqual(want[0], got[0]))
		_, _, err = again.Read(data[:len(data)-8])
		require.Error(t, err)
	}
}
