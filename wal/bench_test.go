package wal

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

// BenchmarkAck is one entry of one row, from Append to its receipt, on the
// disk of b.TempDir with a fixed number in flight, beside bare Pebble: the same
// number of goroutines, each a synced Set of a value as large as the row.
func BenchmarkAck(b *testing.B) {
	for _, inFlight := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("wal/inflight=%d", inFlight), func(b *testing.B) { benchmarkLog(b, inFlight, "") })
		b.Run(fmt.Sprintf("wal-msgid/inflight=%d", inFlight), func(b *testing.B) { benchmarkLog(b, inFlight, "message-id-") })
		b.Run(fmt.Sprintf("bare/inflight=%d", inFlight), func(b *testing.B) { benchmarkBare(b, inFlight) })
	}
}

func benchmarkLog(b *testing.B, inFlight int, msgID string) {
	r := openLog(b, Options{Dir: b.TempDir(), Graph: "bench"})
	rec := airportRows(1, 1)
	defer rec.Release()
	slots := make(chan struct{}, inFlight)
	var failed atomic.Int64
	ops := []Op{OpUpsert}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		slots <- struct{}{}
		e := Entry{Rows: []Rows{{Table: 1, Record: rec, Ops: ops}}}
		if msgID != "" {
			e.MsgID = fmt.Sprint(msgID, i)
		}
		err := r.Append(context.Background(), e, func(_ Receipt, err error) {
			if err != nil {
				failed.Add(1)
			}
			<-slots
		})
		require.NoError(b, err)
	}
	for range inFlight {
		slots <- struct{}{}
	}
	b.StopTimer()
	require.Zero(b, failed.Load())
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "acks/s")
	b.ReportMetric(float64(r.syncs.Load())*1000/float64(b.N), "syncs/1000")
	require.NoError(b, r.stop())
}

func benchmarkBare(b *testing.B, inFlight int) {
	db := openBare(b)
	var next atomic.Int64
	var wg sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	for range inFlight {
		wg.Go(func() {
			key, value := make([]byte, 8), make([]byte, 200)
			for {
				n := next.Add(1)
				if n > int64(b.N) {
					return
				}
				binary.BigEndian.PutUint64(key, uint64(n))
				if err := db.Set(key, value, pebble.Sync); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "acks/s")
	require.NoError(b, db.Close())
}

// openBare opens Pebble with the log's own settings.
func openBare(b *testing.B) *pebble.DB {
	l := &Log{opts: Options{FS: vfs.Default}}
	l.opts.EnsureDefaults()
	opts := l.pebbleOptions()
	opts.EventListener = nil
	db, err := pebble.Open(b.TempDir(), opts)
	require.NoError(b, err)
	return db
}

// BenchmarkBulk is an entry of many rows: what the columns cost.
func BenchmarkBulk(b *testing.B) {
	for _, rows := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) {
			r := openLog(b, Options{Dir: b.TempDir(), Graph: "bench", MaxBytes: 1 << 40})
			rec := airportRows(1, rows)
			defer rec.Release()
			slots := make(chan struct{}, 64)
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				slots <- struct{}{}
				e := Entry{Rows: []Rows{{Table: 1, Record: rec, Ops: []Op{OpUpsert}}}}
				require.NoError(b, r.Append(context.Background(), e, func(Receipt, error) { <-slots }))
			}
			for range cap(slots) {
				slots <- struct{}{}
			}
			b.StopTimer()
			b.ReportMetric(float64(b.N*rows)/b.Elapsed().Seconds(), "rows/s")
			require.NoError(b, r.stop())
		})
	}
}
