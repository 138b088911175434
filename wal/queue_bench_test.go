package wal

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkReleaseSpace fills and releases the log round after round and reports
// what is on disk beside what is unreleased, and how often bytes were written.
func BenchmarkReleaseSpace(b *testing.B) {
	for _, ids := range []bool{false, true} {
		b.Run(fmt.Sprintf("ids=%v", ids), func(b *testing.B) { benchmarkReleaseSpace(b, ids) })
	}
}

func benchmarkReleaseSpace(b *testing.B, ids bool) {
	const roundBytes = 100 << 20
	r := openLog(b, Options{Dir: b.TempDir(), Graph: "bench", MaxBytes: 1 << 40, MinFreeBytes: -1})
	rec := airportRows(1, 100)
	defer rec.Release()
	slots := make(chan struct{}, 256)
	var over, user int64
	n := 0
	for range b.N {
		target := user + roundBytes
		for user < target {
			slots <- struct{}{}
			e := Entry{Rows: []Rows{{Table: 1, Record: rec, Ops: []Op{OpUpsert}}}}
			if n++; ids {
				e.MsgID = fmt.Sprintf("producer-1-message-%012d", n)
			}
			require.NoError(b, r.Append(context.Background(), e, func(Receipt, error) { <-slots }))
			user += 2000
		}
		for range cap(slots) {
			slots <- struct{}{}
		}
		require.NoError(b, r.Release(context.Background(), Seq(r.synced.Load())))
		for range cap(slots) {
			<-slots
		}
		m := r.db.Metrics()
		over = max(over, int64(m.DiskSpaceUsage()))
	}
	m := r.db.Metrics()
	written := int64(m.WAL.BytesWritten)
	for _, level := range m.Levels {
		written += int64(level.TableBytesFlushed + level.TableBytesCompacted)
	}
	b.ReportMetric(float64(over)/(1<<20), "MiB-after-release")
	b.ReportMetric(float64(written)/float64(user), "written/user")
	b.ReportMetric(float64(m.Compact.Count)/float64(b.N), "compactions/round")
	require.NoError(b, r.stop())
}
