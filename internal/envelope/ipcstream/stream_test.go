package ipcstream_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/internal/envelope/ipcstream"
	"github.com/foldline/foldline/internal/testkit"
)

var limits = ipcstream.Limits{Rows: 10_000, Columns: 64, Nesting: 8, Bytes: 8 << 20}

// read reads a stream by a reader of its own.
func read(data []byte, limits ipcstream.Limits) (*arrow.Schema, []arrow.Record, error) {
	r := ipcstream.Reader{Limits: limits}
	return readBy(&r, data)
}

func readBy(r *ipcstream.Reader, data []byte) (*arrow.Schema, []arrow.Record, error) {
	schema, batches, err := r.Read(data)
	var records []arrow.Record
	for _, b := range batches {
		columns := make([]arrow.Array, len(b.Columns))
		for i, c := range b.Columns {
			columns[i] = array.MakeFromData(c)
		}
		records = append(records, array.NewRecord(schema, columns, int64(b.Rows)))
	}
	return schema, records, err
}

func TestReadsWhatArrowWrites(t *testing.T) {
	s := testkit.AllTypes()
	whole := testkit.SampleRecord(s, 40)
	records := []arrow.Record{whole, whole.NewSlice(3, 30), testkit.SampleRecord(s, 0), testkit.SampleRecord(s, 1), whole.NewSlice(8, 9)}
	for name, options := range map[string][]ipc.Option{
		"plain": nil, "zstd": {ipc.WithZstd()}, "lz4": {ipc.WithLZ4()}, "min space": {ipc.WithZstd(), ipc.WithMinSpaceSavings(0.9)},
	} {
		t.Run(name, func(t *testing.T) {
			schema, got, err := read(testkit.ArrowStream(t, records, options...), limits)
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
		schema, got, err := read(testkit.ArrowStream(t, records, ipc.WithDictionaryDeltas(deltas)), limits)
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
	good := testkit.ArrowStream(t, []arrow.Record{testkit.SampleRecord(testkit.AllTypes(), 10)})
	end := []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}
	view := testkit.ArrowStream(t, []arrow.Record{testkit.SampleRecord(arrow.NewSchema([]arrow.Field{{Name: "m", Type: arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64), Nullable: true}}, nil), 0)})
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
	record := testkit.SampleRecord(testkit.AllTypes(), 100)
	for name, change := range map[string]func(*ipcstream.Limits){
		"rows": func(l *ipcstream.Limits) { l.Rows = 99 }, "columns": func(l *ipcstream.Limits) { l.Columns = 20 },
		"nesting": func(l *ipcstream.Limits) { l.Nesting = 1 }, "bytes": func(l *ipcstream.Limits) { l.Bytes = 1000 },
	} {
		for _, options := range [][]ipc.Option{nil, {ipc.WithZstd()}, {ipc.WithLZ4()}} {
			l := limits
			change(&l)
			_, _, err := read(testkit.ArrowStream(t, []arrow.Record{record}, options...), l)
			want := ipcstream.ErrTooLarge
			if name == "nesting" {
				want = ipcstream.ErrTooDeep
			}
			require.ErrorIs(t, err, want, name)
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
		data := testkit.ArrowStream(t, []arrow.Record{record}, option)
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

// Report C152, issue 6: the damaged bodies of the corpus, every bit of a small one among them. No panic, no allocation beyond what the limit on bytes
// and the decompressors' own buffers explain, and what is accepted can be used to the last value.
func TestDamagedStreams(t *testing.T) {
	dict := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Uint16, ValueType: arrow.BinaryTypes.String}
	small := arrow.NewSchema([]arrow.Field{
		{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true}, {Name: "n", Type: arrow.PrimitiveTypes.Int64}, {Name: "d", Type: dict, Nullable: true},
		{Name: "l", Type: arrow.ListOf(arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int32, Nullable: true})), Nullable: true},
	}, nil)
	limits := ipcstream.Limits{Rows: 10_000, Columns: 64, Nesting: 8, Bytes: 256 << 10}
	bodies := append(testkit.ArrowBodies(t, small), testkit.ArrowBodies(t, testkit.AllTypes())...)
	for i, b := range bodies {
		step := 499
		if i == 0 {
			step = 3
		}
		testkit.RequireBoundedDecode(t, b, step, limits.Bytes, func(data []byte) error {
			_, records, err := read(data, limits)
			use(records)
			var e *ipcstream.Error
			if err != nil && !errors.As(err, &e) {
				t.Fatalf("%s: not typed: %v", b.Name, err)
			}
			return err
		})
	}
}

// use touches every value. The text of a timestamp needs the time zone, whose name is the schema's to check: a stream of another zone than the table's
// is of another type. The number is what the stream holds.
func use(records []arrow.Record) {
	for _, r := range records {
		for _, c := range r.Columns() {
			for i := range c.Len() {
				if at, ok := c.(*array.Timestamp); ok {
					_ = at.Value(i)
					continue
				}
				_ = c.ValueStr(i)
			}
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, b := range testkit.ArrowBodies(f, testkit.AllTypes()) {
		for data := range testkit.Seeds(b) {
			f.Add(data)
		}
	}
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		schema, records, err := read(data, limits)
		if err != nil {
			return
		}
		use(records)
		// What was accepted is a record like any other: it survives a round trip.
		for _, r := range records {
			_, again, err := read(testkit.ArrowStream(t, []arrow.Record{r}), ipcstream.Limits{Rows: 1 << 20, Columns: 128, Nesting: 16, Bytes: 1 << 28})
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
	for i, c := range []*arrow.Schema{one, one, two, testkit.AllTypes(), one} {
		data := testkit.ArrowStream(t, []arrow.Record{testkit.SampleRecord(c, 3+i)})
		wantSchema, want, err := read(data, limits)
		require.NoError(t, err)
		gotSchema, got, err := readBy(&again, data)
		require.NoError(t, err)
		require.True(t, wantSchema.Equal(gotSchema))
		require.True(t, array.RecordEqual(want[0], got[0]))
		_, _, err = again.Read(data[:len(data)-8])
		require.Error(t, err)
	}
}
