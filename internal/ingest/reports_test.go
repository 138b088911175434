package ingest_test

import (
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/foldline/foldline/internal/envelope"
	"github.com/foldline/foldline/internal/ingest"
	"github.com/foldline/foldline/wal"
)

// TestReportC100TypesComeFromTheTable: a first message whose numbers are all null and whose times are text is taken under the table's types, and so is the next, with numbers.
func TestReportC100TypesComeFromTheTable(t *testing.T) {
	l := newLine(t, settings{})
	l.ack(message("node:Airport", `{"id":"a","name":"x","n":null}`+"\n"+`{"id":"b","name":"x"}`))
	l.ack(message("edge:Flight", `{"src":"a","num":1,"at":"2026-03-29T02:30:00Z"}`+"\n"+`{"src":"a","num":2,"at":null}`))
	l.ack(message("node:Airport", `{"id":"c","name":"x","n":9007199254740993}`))
	e := l.refusal(message("node:Airport", `{"id":"d","name":"x","n":"seven"}`))
	require.Equal(t, [2]string{"n", string(envelope.CodeBadValue)}, [2]string{e.Field, string(e.Code)})
	schemas := map[wal.TableID]map[wal.SchemaID]bool{}
	status, err := l.log.Status(t.Context())
	require.NoError(t, err)
	for b, err := range l.log.Read(t.Context(), wal.ReadRequest{Incarnation: status.Incarnation, Epoch: status.Epoch}) {
		require.NoError(t, err)
		for _, table := range b.Tables {
			if schemas[table.Table] == nil {
				schemas[table.Table] = map[wal.SchemaID]bool{}
			}
			schemas[table.Table][table.Schema] = true
		}
		b.Release()
	}
	require.Len(t, schemas, 2)
	for id, of := range schemas {
		require.Len(t, of, 1, "table %d", id)
	}
}

// TestReportC108OneProducerOfAnotherType: a producer that sends times without a zone to a column with one is refused, row and field named, each time; the other one's rows land
// and the fold goes on.
func TestReportC108OneProducerOfAnotherType(t *testing.T) {
	l := newLine(t, settings{})
	for i := range 10 {
		l.ack(message("edge:Flight", fmt.Sprintf(`{"src":"a","num":%d,"at":"2026-03-29T02:30:00Z"}`, i)))
		e := l.refusal(message("edge:Flight", fmt.Sprintf(`{"src":"b","num":%d,"at":"2026-03-29T02:30:00"}`, i)))
		require.Equal(t, [2]string{"at", string(envelope.CodeBadValue)}, [2]string{e.Field, string(e.Code)})
	}
	require.Equal(t, 10, l.fold().Inserted)
}

// TestReportC161MetricsStayBounded: neither tables nor errors nor ids make series: after thousands of different bad messages there are no more than states, classes and codes.
func TestReportC161MetricsStayBounded(t *testing.T) {
	reader := metric.NewManualReader()
	l := newLine(t, settings{options: func(o *ingest.Options) {
		o.Meter = metric.NewMeterProvider(metric.WithReader(reader)).Meter("ingest")
	}})
	send := func(i int) {
		for _, m := range []*nats.Msg{
			message(fmt.Sprintf("node:T%d", i), `{"id":"a"}`),
			message("node:Airport", fmt.Sprintf(`{"id":"a","name":"x","field%d":1}`, i)),
			message("node:Airport", fmt.Sprintf(`{"id":"a","name":"x","n":"text %d"}`, i)),
			message("node:Airport", fmt.Sprintf(`{"id":"%d"`, i)),
		} {
			require.NotEmpty(t, l.refusal(m).Code)
		}
		l.ack(message("node:Airport", fmt.Sprintf(`{"id":"id-%d","name":"x"}`, i), envelope.HeaderMsgID, fmt.Sprint("m", i)))
	}
	count := func() (n int) {
		var all metricdata.ResourceMetrics
		require.NoError(t, reader.Collect(t.Context(), &all))
		for _, scope := range all.ScopeMetrics {
			for _, m := range scope.Metrics {
				switch data := m.Data.(type) {
				case metricdata.Sum[int64]:
					n += len(data.DataPoints)
				case metricdata.Gauge[int64]:
					n += len(data.DataPoints)
				case metricdata.Histogram[float64]:
					n += len(data.DataPoints)
				}
			}
		}
		return n
	}
	for i := range 1000 {
		send(i)
	}
	require.Greater(t, count(), 8)
	require.LessOrEqual(t, count(), 30)
}
