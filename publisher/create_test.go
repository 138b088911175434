package publisher

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/objstore"
)

// What cannot be kept is refused at creation, and changes nothing.
func TestCreateTableRefuses(t *testing.T) {
	columns := []heads.Column{{Name: "id", Type: "string"}, {Name: "n", Type: "int64"}, {Name: "f", Type: "double"}, {Name: "maybe", Type: "string", Nullable: true}}
	for name, change := range map[string]func(*TableSpec){
		"order column":       func(s *TableSpec) { s.Order = "n" },
		"float key":          func(s *TableSpec) { s.PrimaryKey = []string{"f"} },
		"nullable key":       func(s *TableSpec) { s.PrimaryKey = []string{"maybe"} },
		"unknown key column": func(s *TableSpec) { s.PrimaryKey = []string{"missing"} },
		"repeated key":       func(s *TableSpec) { s.PrimaryKey = []string{"id", "id"} },
		"other lane columns": func(s *TableSpec) { s.LaneColumns = []string{"n"} },
		"no kind in the key": func(s *TableSpec) { s.Key = "Plain" },
		"unknown type":       func(s *TableSpec) { s.Columns = append(s.Columns, heads.Column{Name: "x", Type: "int3"}) },
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			store := objstore.NewMemory()
			p := newGraph(t, store)
			before, err := p.Refresh(ctx)
			require.NoError(t, err)
			spec := TableSpec{Key: "node:Other", Columns: append([]heads.Column(nil), columns...)}
			change(&spec)
			_, err = p.CreateTable(ctx, spec)
			require.ErrorIs(t, err, ErrInvalid)
			after, err := p.Refresh(ctx)
			require.NoError(t, err)
			require.Equal(t, before.Version, after.Version)
		})
	}
}

// TestLaneEpochIsAboveTheLogs: a graph restored from an older copy knows a lower epoch than the log has used; no number is given twice.
func TestLaneEpochIsAboveTheLogs(t *testing.T) {
	ctx := context.Background()
	store := objstore.NewMemory()
	_, err := Init(ctx, options(store), InitSpec{Graph: testGraph})
	require.NoError(t, err)
	for _, c := range []struct{ above, want uint64 }{{0, 1}, {7, 8}, {3, 9}} {
		epoch, err := ClaimLane(ctx, options(store), LaneClaim{Incarnation: testIncarnation, Above: c.above})
		require.NoError(t, err)
		require.Equal(t, c.want, epoch)
	}
}
