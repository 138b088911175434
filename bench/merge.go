package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// MergeConfig says how merges are measured beside the engine.
type MergeConfig struct {
	// Dir is where inputs and tables are made.
	Dir string
	// Ours is the program of bench/cmd/tablepeer, Python an interpreter that has
	// pylance, Script the path of tablepeer.py.
	Ours, Python, Script string
	// Rows that are merged; zero is 10,000.
	Rows int
	// Rounds that count; one more goes before them, which warms caches. Zero is 7.
	Rounds int
	// Progress is told what goes on, when it is set.
	Progress func(string)
}

// Merge measures an upsert into a table of 1,000,000 flights without an index,
// half of it rows that are there. Each side is one process on one processor with
// one thread of work; they take turns. Both merge into a fresh copy of either's
// table, open included. Ours syncs what it writes, the engine does not: with Dir
// on a file system in memory that costs nothing, and the work is compared.
func Merge(ctx context.Context, c MergeConfig) (figures []Figure, err error) {
	if c.Rounds <= 0 {
		c.Rounds = 7
	}
	if c.Rows <= 0 {
		c.Rows = 10_000
	}
	if err := errors.Join(os.RemoveAll(c.Dir), os.MkdirAll(c.Dir, 0o755)); err != nil {
		return nil, err
	}
	m := &mergeTest{c: c}
	for _, side := range [][]string{{"ours", c.Ours}, {"pylance", c.Python, c.Script}} {
		p, err := startProgram(ctx, twoReads, side[0], side[1:]...)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, p.stop()) }()
		m.sides = append(m.sides, &mergeSide{peer: p, table: filepath.Join(c.Dir, p.name+".lance")})
	}
	if err := m.makeTables(); err != nil {
		return nil, err
	}
	for round := range c.Rounds + 1 {
		for i := range m.sides {
			if err := m.merge(m.sides[(i+round)%2], round > 0); err != nil {
				return nil, err
			}
		}
		if c.Progress != nil {
			c.Progress(fmt.Sprintf("merge: round %d of %d", round, c.Rounds))
		}
	}
	return m.figures(), nil
}

// mergeTest is the measurement.
type mergeTest struct {
	c     MergeConfig
	there fileInput
	sides []*mergeSide // ours and the engine's
}

// mergeSide is one side, its table, and what its merges took, in seconds by round.
type mergeSide struct {
	peer  *program
	table string
	took  []float64
}

// makeTables has each side make its table and hold the rows to merge.
func (m *mergeTest) makeTables() error {
	flights, err := flightInput(filepath.Join(m.c.Dir, "flights.arrow"))
	if err != nil {
		return err
	}
	changes, err := changedFlightInput(filepath.Join(m.c.Dir, "changes.arrow"), m.c.Rows)
	if err != nil {
		return err
	}
	m.there = flights
	for _, s := range m.sides {
		for _, step := range [][2]string{{"load", flights.path}, {"create", s.table}, {"load", changes.path}} {
			if _, _, err := s.peer.do(step[0], step[1]); err != nil {
				return err
			}
		}
	}
	return nil
}

// merge has one side merge into a copy of each table.
func (m *mergeTest) merge(s *mergeSide, counts bool) error {
	sum := 0.0
	for _, into := range m.sides {
		target := filepath.Join(m.c.Dir, "merged.lance")
		if err := errors.Join(os.RemoveAll(target), os.CopyFS(target, os.DirFS(into.table))); err != nil {
			return err
		}
		inserted, took, err := s.peer.do("merge", target)
		if err != nil {
			return err
		}
		if want := int64(m.c.Rows / 2); inserted != want {
			return fmt.Errorf("bench: %s inserted %d rows, want %d", s.peer.name, inserted, want)
		}
		sum += took.Seconds()
	}
	if counts {
		s.took = append(s.took, sum)
	}
	return nil
}

func (m *mergeTest) figures() []Figure {
	ours, engine := median(m.sides[0].took), median(m.sides[1].took)
	what := fmt.Sprintf("upserting %d rows, half of them there, into a table of %d flights without an index, one thread, on a file system in memory so that nobody waits for syncs; ours %.0f ms, pylance %.0f ms",
		m.c.Rows, m.there.rows, ours/2*1000, engine/2*1000)
	rows := float64(2 * m.c.Rows)
	return []Figure{Report("merge-vs-lancedb-1e6", what, rows/ours, "rows/s").Beside(rows / engine).AtLeast(1)}
}
