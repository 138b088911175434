package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/internal/envelope"
)

// A lane moves to an empty directory. With the old one at hand, a retry of what it acknowledged is answered with its receipt, also when the answer has
// to be visible and after another start; without it the retry is applied again, and the receipt says so.
func TestSuccessorOnAnotherDirectory(t *testing.T) {
	for _, reached := range []bool{true, false} {
		t.Run(map[bool]string{true: "reached", false: "gone"}[reached], func(t *testing.T) {
			data, old := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "old")
			var first envelope.Receipt
			t.Run("predecessor", func(t *testing.T) {
				servingIn(t, data, "--input", "node:T="+write(t, `{"id":"a","n":1}`))
				first = sendOnce(t, data)
				require.False(t, first.Duplicate)
			})
			require.NoError(t, os.Rename(filepath.Join(data, "wal", "0"), old))
			args := []string{"--accept-loss"}
			if reached {
				args = append(args, "--predecessor", old)
			}
			t.Run("successor", func(t *testing.T) {
				servingIn(t, data, args...)
				requireAnswer(t, first, sendOnce(t, data), reached)
			})
			t.Run("started again", func(t *testing.T) {
				servingIn(t, data)
				again := sendOnce(t, data)
				require.True(t, again.Duplicate)
				require.Equal(t, reached, again.DedupeSince.IsZero())
			})
		})
	}
}

func requireAnswer(t *testing.T, first, got envelope.Receipt, reached bool) {
	t.Helper()
	if !reached {
		require.False(t, got.Duplicate)
		require.False(t, got.DedupeSince.IsZero())
		return
	}
	first.Duplicate = true
	require.Equal(t, first, got)
}

// sendOnce sends one message, always the same, and gives its receipt when it is visible.
func sendOnce(t *testing.T, data string) envelope.Receipt {
	t.Helper()
	return askVisible(t, data, "node:T", `{"id":"b","n":2}`, envelope.HeaderMsgID, "order-17")
}
