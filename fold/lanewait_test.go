package fold

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/wal"
)

// lateSource does something when its lane is asked how far it is.
type lateSource struct {
	wal.Source
	asked func() error
}

func (s *lateSource) Status(ctx context.Context) (wal.Status, error) {
	if err := s.asked(); err != nil {
		return wal.Status{}, err
	}
	return s.Source.Status(ctx)
}

// lanesWorld has nodes in lane 0 and edges in lane 1; asked comes before each look at a lane, one lane after the other.
func lanesWorld(t *testing.T, asked func(w *world, lane uint32) error) *world {
	w := newWorld(t, objstore.NewMemory(), 2, noteTable("node:A"), edgeTable("edge:E"))
	w.opts.Parallel, w.clock = 1, &manualClock{}
	w.setReferences("edge:E", to("node:A", "src"))
	w.folder.opts.Lanes = func(lane uint32) wal.Source {
		return &lateSource{w.lanes[lane].log, func() error { return asked(w, lane) }}
	}
	return w
}

func (w *world) node(id string) {
	w.append(w.lanes[0], wal.Entry{Rows: []wal.Rows{w.lanes[0].rowsOf(w, "node:A", upsert(id, 1))}})
}

func (w *world) edge(id, src string) {
	w.append(w.lanes[1], wal.Entry{Rows: []wal.Rows{w.lanes[1].rowsOf(w, "edge:E", upsert(id, src))}})
}

// once folds once, in whatever lanes answer.
func (w *world) once() Report {
	w.t.Helper()
	r, err := w.folder.FoldOnce(w.ctx)
	require.NoError(w.t, err)
	return r
}

// TestRaceR12NodeOfAnotherLane: a node is acknowledged in one lane before the edge to it is sent to another, and the folder has asked the lanes in between. The
// edge waits for the next cut. One whose node has not come by then is a dead letter, and rows of other tables do not wait.
func TestRaceR12NodeOfAnotherLane(t *testing.T) {
	written := false
	w := lanesWorld(t, func(w *world, lane uint32) error {
		if lane == 1 && !written {
			written = true
			w.node("n")
			w.edge("e", "n")
			w.edge("x", "x")
		}
		return nil
	})
	defer w.close()
	require.True(t, w.once().Empty())
	require.Empty(t, w.scan("edge:E"))
	require.Equal(t, 3, w.once().Rows)
	require.Equal(t, []string{"e=n=(null)"}, w.scan("edge:E"))
	require.Equal(t, []string{missing("upsert", "x", "x")}, w.rejects())

	w.edge("f", "n")
	w.edge("y", "y")
	w.edge("g", "n")
	require.Equal(t, 1, w.once().Rows, "the cut ends before what waits")
	require.Equal(t, 2, w.once().Rows)
	require.Equal(t, []string{"e=n=(null)", "f=n=(null)", "g=n=(null)"}, w.scan("edge:E"))
	require.Len(t, w.rejects(), 2)
}

// TestRaceR12NodeBehindTheCut: a lane that is behind has a node that was acknowledged long before the edge to it.
func TestRaceR12NodeBehindTheCut(t *testing.T) {
	w := lanesWorld(t, func(*world, uint32) error { return nil })
	defer w.close()
	w.folder.opts.MaxRows = 4 // two for each lane
	for i := range 9 {
		w.node(fmt.Sprint("n", i))
	}
	w.edge("e", "n8")
	for w.once().More {
		require.Empty(t, w.rejects())
	}
	for range 2 {
		w.once()
	}
	require.Equal(t, []string{"e=n8=(null)"}, w.scan("edge:E"))
	require.Empty(t, w.rejects())
}

// TestRaceR12NodeOfALaneThatIsAway: an edge waits as long for a lane that does not answer as for a table that takes no rows, and the lane of the edge serves
// what comes before it.
func TestRaceR12NodeOfALaneThatIsAway(t *testing.T) {
	away := true
	w := lanesWorld(t, func(_ *world, lane uint32) error {
		if lane == 0 && away {
			return errors.New("away")
		}
		return nil
	})
	defer w.close()
	w.node("n")
	w.append(w.lanes[1], wal.Entry{Rows: []wal.Rows{w.lanes[1].rowsOf(w, "edge:E", upsert("free"))}})
	w.edge("e", "n")
	for range 3 {
		w.once()
		w.clock.seconds.Add(9)
	}
	require.Empty(t, w.rejects())
	away = false
	w.once()
	w.once()
	require.Contains(t, w.scan("edge:E"), "e=n=(null)")
	w.node("m")
	away = true
	w.edge("f", "m")
	w.once()
	require.Empty(t, w.rejects())
	w.clock.seconds.Add(31)
	require.Equal(t, 1, w.once().Rows)
	require.Contains(t, w.rejects(), missing("upsert", "f", "m"))
}
