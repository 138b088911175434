package rowfmt

import (
	"bytes"
	"math"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/stretchr/testify/require"
)

func sample(t *testing.T) arrow.Record {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	t.Cleanup(func() { mem.AssertSize(t, 0) })
	b := array.NewRecordBuilder(mem, arrow.NewSchema([]arrow.Field{
		{Name: "s,x", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "u", Type: arrow.PrimitiveTypes.Uint64},
		{Name: "f", Type: arrow.PrimitiveTypes.Float64},
		{Name: "t", Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}},
	}, nil))
	defer b.Release()
	b.Field(0).(*array.StringBuilder).AppendValues([]string{"a\"b\n,é", "", ""}, []bool{true, true, false})
	b.Field(1).(*array.Uint64Builder).AppendValues([]uint64{math.MaxUint64, 0, 1}, nil)
	b.Field(2).(*array.Float64Builder).AppendValues([]float64{math.NaN(), 31.95376472, math.Inf(-1)}, nil)
	b.Field(3).(*array.TimestampBuilder).AppendValues([]arrow.Timestamp{978310020000001, -1000000, 0}, nil)
	rec := b.NewRecord()
	t.Cleanup(rec.Release)
	return rec
}

func write(t *testing.T, format string, rec arrow.Record) string {
	var out bytes.Buffer
	w, err := New(&out, format, rec.Schema())
	require.NoError(t, err)
	require.NoError(t, w.Write(rec))
	require.NoError(t, w.Close())
	return out.String()
}

func TestJSON(t *testing.T) {
	require.Equal(t, `{"s,x":"a\"b\n,é","u":18446744073709551615,"f":"NaN","t":"2001-01-01T00:47:00.000001Z"}
{"s,x":"","u":0,"f":31.95376472,"t":"1969-12-31T23:59:59.000000Z"}
{"s,x":null,"u":1,"f":"-Inf","t":"1970-01-01T00:00:00.000000Z"}
`, write(t, "json", sample(t)))
}

func TestCSVTellsNullFromEmpty(t *testing.T) {
	require.Equal(t, "\"s,x\",u,f,t\n"+
		"\"a\"\"b\n,é\",18446744073709551615,NaN,2001-01-01T00:47:00.000001Z\n"+
		"\"\",0,31.95376472,1969-12-31T23:59:59.000000Z\n"+
		",1,-Inf,1970-01-01T00:00:00.000000Z\n", write(t, "csv", sample(t)))
}

func TestArrowStreamReadsBack(t *testing.T) {
	rec := sample(t)
	r, err := ipc.NewReader(bytes.NewReader([]byte(write(t, "arrow", rec))))
	require.NoError(t, err)
	defer r.Release()
	require.True(t, r.Next())
	// RecordEqual holds NaN unequal to itself, so the column with it is compared by bits.
	for _, c := range []int{0, 1, 3} {
		require.True(t, array.Equal(rec.Column(c), r.Record().Column(c)))
	}
	require.True(t, math.IsNaN(r.Record().Column(2).(*array.Float64).Value(0)))
}

func TestRefusals(t *testing.T) {
	_, err := New(&bytes.Buffer{}, "xml", arrow.NewSchema(nil, nil))
	require.ErrorContains(t, err, `format "xml"`)
}
