package bench

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/internal/peer"
)

// TestTableRequests: an open and a commit ask for the least that the format allows.
func TestTableRequests(t *testing.T) {
	figures, err := TableRequests(t.Context())
	require.NoError(t, err)
	require.Len(t, figures, 2)
	for _, f := range figures {
		require.True(t, *f.Met, f)
		require.EqualValues(t, 1, *f.Ratio, f)
	}
}

// TestChangedFlights: half of the rows that are merged have ids that are there, and none comes twice.
func TestChangedFlights(t *testing.T) {
	path := filepath.Join(t.TempDir(), "changes.arrow")
	in, err := changedFlightInput(path, 100)
	require.NoError(t, err)
	require.EqualValues(t, 100, in.rows)
	var b peer.Batches
	rows, err := b.Load(path)
	require.NoError(t, err)
	require.EqualValues(t, 100, rows)
	ids, there := map[string]bool{}, 0
	for i := range 100 {
		id := b.Records[0].Column(0).ValueStr(i)
		ids[id] = true
		if id < "F1000000" {
			there++
		}
	}
	require.Len(t, ids, 100)
	require.Equal(t, 50, there)
	require.NoError(t, os.Remove(path))
}
