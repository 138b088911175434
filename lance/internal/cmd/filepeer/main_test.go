package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/stretchr/testify/require"
)

func writeArrow(t *testing.T, path string, rows int) {
	t.Helper()
	s := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.BinaryTypes.String}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, s)
	defer b.Release()
	for i := range rows {
		b.Field(0).(*array.StringBuilder).Append(fmt.Sprint("F", i))
	}
	rec := b.NewRecord()
	defer rec.Release()
	f, err := os.Create(path)
	require.NoError(t, err)
	w, err := ipc.NewFileWriter(f, ipc.WithSchema(s))
	require.NoError(t, err)
	require.NoError(t, w.Write(rec))
	require.NoError(t, w.Write(rec))
	require.NoError(t, w.Close())
	require.NoError(t, f.Close())
}

func TestEveryRequestHasOneAnswer(t *testing.T) {
	dir := t.TempDir()
	input, output := filepath.Join(dir, "in.arrow"), filepath.Join(dir, "out.lance")
	writeArrow(t, input, 10_000)
	requests := []string{"load " + input, "write " + output, "scan " + output, "scan " + input, "dance", "scan " + dir + "/none"}
	var out bytes.Buffer
	require.NoError(t, serve(strings.NewReader(strings.Join(requests, "\n")), &out))
	answers := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	require.Len(t, answers, len(requests))

	info, err := os.Stat(output)
	require.NoError(t, err)
	require.Equal(t, []string{"=20000", fmt.Sprint("=", info.Size()), "=20000"}, answers[:3])
	for _, fault := range answers[3:] {
		require.Equal(t, byte('!'), fault[0], fault)
	}
}
