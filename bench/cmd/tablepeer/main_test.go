package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/internal/testkit"
)

func TestEveryRequestHasOneAnswer(t *testing.T) {
	dir := t.TempDir()
	there, changes, table := filepath.Join(dir, "there.arrow"), filepath.Join(dir, "changes.arrow"), filepath.Join(dir, "t.lance")
	testkit.WriteArrow(t, there, testkit.NumberedRecord(0, 500), testkit.NumberedRecord(500, 1000))
	testkit.WriteArrow(t, changes, testkit.NumberedRecord(900, 1050))
	requests := []string{
		"load " + there, "create " + table, "load " + changes, "merge " + table, "merge " + table,
		"create " + table, "merge " + dir + "/none.lance", "dance " + table, "load " + dir + "/none",
	}
	var out bytes.Buffer
	require.NoError(t, serve(strings.NewReader(strings.Join(requests, "\n")), &out))
	answers := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	require.Len(t, answers, len(requests))
	require.Equal(t, []string{"=1000", "=1000", "=150", "=50", "=0"}, answers[:5])
	for _, fault := range answers[5:] {
		require.Equal(t, byte('!'), fault[0], fault)
	}
}
