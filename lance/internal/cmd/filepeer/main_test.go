package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/internal/testkit"
)

func TestEveryRequestHasOneAnswer(t *testing.T) {
	dir := t.TempDir()
	input, output := filepath.Join(dir, "in.arrow"), filepath.Join(dir, "out.lance")
	testkit.WriteArrow(t, input, testkit.NumberedRecord(0, 10_000), testkit.NumberedRecord(10_000, 20_000))
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
