package bench

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFigureGoals(t *testing.T) {
	f := Report("x", "a thing", 70.004, "rows/s").Beside(100)
	require.InDelta(t, 0.7, *f.Ratio, 1e-9)
	require.True(t, *f.AtLeast(0.7).Met)
	require.False(t, *f.AtLeast(0.71).Met)
	require.True(t, *f.AtMost(0.7).Met)
	require.False(t, *f.AtMost(0.5).Met)
	require.True(t, *f.Above(70).Met)
	require.False(t, *f.Above(71).Met)
	require.True(t, *f.Below(70).Met)
	require.False(t, *f.Below(69).Met)
	require.Nil(t, f.Met)
	both := f.Above(70).AtLeast(0.71)
	require.False(t, *both.Met, "of two goals both are met, or none")
	require.Equal(t, "at least 70 rows/s and at least 0.71 x the peer", both.Goal)
	require.False(t, *f.Above(71).AtLeast(0.7).Met)
}

// TestRecord: a line replaces the older one of its id, and other lines stay.
func TestRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results", "summary.jsonl")
	require.NoError(t, Record(path, []Figure{Report("b", "", 1, "s"), Report("a", "", 2, "s")}))
	require.NoError(t, Record(path, []Figure{Report("b", "", 3, "s")}))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	require.Len(t, lines, 2)
	var got Figure
	require.NoError(t, json.Unmarshal([]byte(lines[1]), &got))
	require.Equal(t, "b", got.ID)
	require.Equal(t, 3.0, got.Ours)
	for _, name := range []string{"id", "what", "ours", "peer", "unit", "ratio", "goal", "met", "command", "commit", "machine"} {
		require.Contains(t, lines[1], `"`+name+`":`)
	}
}

func TestMedian(t *testing.T) {
	require.Equal(t, 2.0, median([]float64{3, 1, 2}))
	require.Equal(t, 2.0, median([]float64{4, 3, 1, 2}))
}
