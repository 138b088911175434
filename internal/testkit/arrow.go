package testkit

import (
	"fmt"
	"os"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/stretchr/testify/require"
)

// NumberedRecord is one column id, a string not null, of "F" and the numbers from and up to to.
func NumberedRecord(from, to int) arrow.Record {
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.BinaryTypes.String}}, nil))
	defer b.Release()
	for i := from; i < to; i++ {
		b.Field(0).(*array.StringBuilder).Append(fmt.Sprint("F", i))
	}
	return b.NewRecord()
}

// WriteArrow makes an Arrow IPC file of records, at least one, and releases them.
func WriteArrow(t testing.TB, path string, records ...arrow.Record) {
	t.Helper()
	f, err := os.Create(path)
	require.NoError(t, err)
	w, err := ipc.NewFileWriter(f, ipc.WithSchema(records[0].Schema()))
	require.NoError(t, err)
	for _, rec := range records {
		require.NoError(t, w.Write(rec))
		rec.Release()
	}
	require.NoError(t, w.Close())
	require.NoError(t, f.Close())
}
