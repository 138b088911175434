package rows

import (
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/foldline/foldline/internal/envelope"
)

// nestedTable has each kind of builder that a refusal can leave half filled.
func nestedTable(t testing.TB) *Table {
	t.Helper()
	point := arrow.StructOf(
		arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int32, Nullable: true}, arrow.Field{Name: "y", Type: arrow.BinaryTypes.String, Nullable: true})
	table, err := NewTable(Spec{Table: "node:N", ID: 8, Key: []string{"id"}, Arrow: arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.BinaryTypes.String},
		{Name: "p", Type: point, Nullable: true},
		{Name: "l", Type: arrow.ListOf(point), Nullable: true},
		{Name: "v", Type: arrow.FixedSizeListOf(3, arrow.PrimitiveTypes.Float32), Nullable: true},
		{Name: "vv", Type: arrow.ListOf(arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Int8)), Nullable: true},
		{Name: "b", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
	}, nil)})
	require.NoError(t, err)
	return table
}

// batchBodies are messages for the tables of the test, good ones and ones that are refused at every depth.
var batchBodies = []Message{
	{Table: "node:N", Body: []byte(`{"id":"a","p":{"x":1,"y":"é"},"l":[{"x":2},{"y":"z"}],"v":[1,2,3],"vv":[[1,2],[3,4]],"b":true}`)},
	{Table: "node:N", Body: []byte("{\"id\":\"b\"}\n{\"id\":\"c\",\"b\":false,\"v\":null}\n{\"id\":\"d\",\"l\":[]}")},
	{Table: "node:N", Op: envelope.OpDelete, Body: []byte(`{"id":"e"}`)},
	{Table: "node:N", Body: []byte("{\"id\":\"f\"}\n{\"id\":\"g\",\"p\":{\"x\":1,\"y\":2}}")},
	{Table: "node:N", Body: []byte(`{"id":"h","l":[{"x":1},{"y":"u","x":"u"}]}`)},
	{Table: "node:N", Body: []byte(`{"id":"i","v":[1,2]}`)},
	{Table: "node:N", Body: []byte(`{"id":"j","v":[1,2,3,4]}`)},
	{Table: "node:N", Body: []byte(`{"id":"k","vv":[[1,2],[3]]}`)},
	{Table: "node:N", Body: []byte(`{"b":true}`)},
	{Table: "node:N", Body: []byte(`{"id":"l","b":true`)},
	{Table: "node:N", Body: []byte(`{"id":"m","l":[{"x":1}`)},
	{Table: "node:Airport", Body: []byte(`{"id":"n","name":"m","n":5}`)},
	{Table: "node:Airport", Body: []byte(`{"id":"o","name":"m","n":"x"}`)},
	{Body: []byte("{\"table\":\"node:N\",\"row\":{\"id\":\"p\",\"b\":true}}\n{\"table\":\"node:Airport\",\"op\":\"delete\",\"row\":{\"id\":\"q\"}}\n{\"table\":\"node:N\",\"op\":\"insert\",\"row\":{\"id\":\"r\"}}")},
	{Body: []byte("{\"table\":\"node:N\",\"row\":{\"id\":\"s\",\"b\":true}}\n{\"table\":\"node:Airport\",\"row\":{\"id\":\"t\"}}")},
	{Body: []byte("{\"table\":\"node:N\",\"row\":{\"id\":\"u\",\"b\":true}}\n{\"table\":\"node:No\",\"row\":{\"id\":\"v\"}}")},
	{Table: "node:N", ContentType: envelope.ContentArrow, Body: []byte("no stream")},
}

// TestMessagesOfABatchAreIndependent: whatever is added beside it, a message gives the rows or the refusal that it gives alone.
func TestMessagesOfABatchAreIndependent(t *testing.T) {
	tables := lookupOf(nestedTable(t), airport(t, nil))
	rapid.Check(t, func(rt *rapid.T) {
		d, batch := newTestDecoder(t, Limits{}), &Batch{}
		for range rapid.IntRange(1, 3).Draw(rt, "batches") {
			messages := rapid.SliceOfN(rapid.SampledFrom(batchBodies), 1, 12).Draw(rt, "messages")
			added := make([]Added, len(messages))
			refusals := make([]error, len(messages))
			for i, m := range messages {
				added[i], refusals[i] = d.Add(m, tables)
			}
			d.Take(batch)
			for i, m := range messages {
				requireAlone(t, m, tables, batch, added[i], refusals[i])
			}
			batch.Release()
		}
	})
}

func requireAlone(t *testing.T, m Message, tables Lookup, batch *Batch, added Added, refusal error) {
	t.Helper()
	want, err := decodeOne(newTestDecoder(t, Limits{}), m, tables)
	require.Equal(t, err, refusal)
	if err != nil {
		return
	}
	defer want.Release()
	got := cutOut(batch, added)
	require.Equal(t, want.Rows, got.Rows)
	require.Len(t, got.Tables, len(want.Tables))
	for i := range want.Tables {
		require.True(t, array.RecordEqual(want.Tables[i].Record, got.Tables[i].Record), "%s", m.Body)
		require.Equal(t, want.Tables[i].Ops, got.Tables[i].Ops)
		require.Equal(t, want.Tables[i].Lines, got.Tables[i].Lines)
		got.Tables[i].Record.Release()
	}
}

// TestLargeRecordsOfABatchAreCut: what shares a record is bounded, refused rows included.
func TestLargeRecordsOfABatchAreCut(t *testing.T) {
	wide := airport(t, func(s *Spec) {
		s.Arrow = arrow.NewSchema(append(s.Arrow.Fields(), arrow.Field{
			Name: "vector", Type: arrow.FixedSizeListOf(4096, arrow.PrimitiveTypes.Float32), Nullable: true}), nil)
	})
	d := newTestDecoder(t, Limits{})
	good, bad := Message{Table: "node:Airport", Body: []byte(`{"id":"a","name":"b"}`)}, Message{Table: "node:Airport", Body: []byte(`{"id":"a","name":1}`)}
	for range 1000 {
		_, err := d.Add(good, lookupOf(wide))
		require.NoError(t, err)
		_, err = d.Add(bad, lookupOf(wide))
		require.Error(t, err)
	}
	batch := &Batch{}
	d.Take(batch)
	defer batch.Release()
	for _, r := range batch.records {
		require.LessOrEqual(t, int(r.NumRows())*wide.width, maxRecordBytes+wide.width)
	}
	require.Equal(t, 1000, batch.Len())
}

// TestAddAllocations: one row of a batch costs no allocation of its own, so that the ack path cannot come to pay for a
// record a message again.
func TestAddAllocations(t *testing.T) {
	const messages = 256
	d := NewDecoder(nil, Limits{})
	defer d.Close()
	m := Message{Table: "node:Airport", Body: []byte(`{"id":"flight-00000001","name":"Arlanda","n":9007199254740993,"city":"Stockholm"}`)}
	lookup := lookupOf(airport(t, nil))
	var batch Batch
	perBatch := testing.AllocsPerRun(20, func() {
		for range messages {
			if _, err := d.Add(m, lookup); err != nil {
				panic(err)
			}
		}
		d.Take(&batch)
		batch.Release()
	})
	require.Less(t, perBatch/messages, 0.5, "allocations per message")
}
