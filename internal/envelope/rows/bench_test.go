package rows

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/stretchr/testify/require"
)

func BenchmarkDecode(b *testing.B) {
	table, err := NewTable(Spec{Table: "edge:Flight", Key: []string{"id"}, Arrow: arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.BinaryTypes.String},
		{Name: "src", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "dst", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "distance", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "delay", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
		{Name: "departed", Type: arrow.FixedWidthTypes.Timestamp_us, Nullable: true},
	}, nil)})
	require.NoError(b, err)
	for _, rows := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) {
			var body bytes.Buffer
			for i := range rows {
				fmt.Fprintf(&body, `{"id":"flight-%08d","src":"ARN","dst":"GOT","distance":%d,"delay":%d.25,"departed":"2026-03-29T02:30:00.%06dZ"}`+"\n", i, 392+i, i%60, i)
			}
			d := NewDecoder(nil, Limits{})
			m := Message{Table: "edge:Flight", Body: body.Bytes()}
			b.SetBytes(int64(body.Len()))
			b.ReportAllocs()
			for b.Loop() {
				r, err := decodeOne(d, m, lookupOf(table))
				if err != nil {
					b.Fatal(err)
				}
				r.Release()
			}
			b.ReportMetric(float64(rows*b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
