package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// FilesConfig says how data files are measured beside the engine.
type FilesConfig struct {
	// Dir is where inputs and data files are made.
	Dir string
	// Ours is the program of lance/internal/cmd/filepeer, Python an interpreter that
	// has pylance, Script the path of filepeer.py.
	Ours, Python, Script string
	// Rounds that count; one more goes before them, which warms caches. Zero is 7.
	Rounds int
	// Progress is told what goes on, when it is set.
	Progress func(string)
}

// Files measures how fast data files of version 2.1 are written and scanned, and
// how large they are, beside pylance. Each side is one process on one processor
// with one thread of work; they take turns, and who goes first changes from round
// to round. Both write the same batches from memory without a sync, and both scan
// all columns of both files, ours and the engine's, from the page cache.
func Files(ctx context.Context, c FilesConfig) (figures []Figure, err error) {
	if c.Rounds <= 0 {
		c.Rounds = 7
	}
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return nil, err
	}
	ours, err := startProgram(ctx, oneThread, "ours", c.Ours)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, ours.stop()) }()
	engine, err := startProgram(ctx, oneThread, "pylance", c.Python, c.Script)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, engine.stop()) }()
	for _, makeInput := range []struct {
		name string
		make func(path string) (fileInput, error)
	}{{"flights", flightInput}, {"vectors", vectorInput}, {"ids", idInput}} {
		in, err := makeInput.make(filepath.Join(c.Dir, makeInput.name+".arrow"))
		if err != nil {
			return nil, err
		}
		t := &fileTest{c: c, in: in, sides: []*fileSide{{peer: ours}, {peer: engine}}}
		if err := t.run(); err != nil {
			return nil, err
		}
		figures = append(figures, t.figures()...)
	}
	return figures, nil
}

// fileTest is the measurement of one input.
type fileTest struct {
	c     FilesConfig
	in    fileInput
	sides []*fileSide // ours and the engine's
}

// fileSide is what one side took, in seconds by round, and its file.
type fileSide struct {
	peer         *program
	path         string
	size         int64
	writes, scan []float64
}

func (t *fileTest) run() error {
	for _, s := range t.sides {
		s.path = filepath.Join(t.c.Dir, t.in.name+"-"+s.peer.name+".lance")
		if rows, _, err := s.peer.do("load", t.in.path); err != nil || rows != t.in.rows {
			return errors.Join(err, fmt.Errorf("bench: %s loaded %d rows of %d", s.peer.name, rows, t.in.rows))
		}
	}
	for round := range t.c.Rounds + 1 {
		for i := range t.sides {
			if err := t.sides[(i+round)%2].write(round > 0); err != nil {
				return err
			}
		}
		for i := range t.sides {
			if err := t.scan(t.sides[(i+round)%2], round > 0); err != nil {
				return err
			}
		}
		if t.c.Progress != nil {
			t.c.Progress(fmt.Sprintf("%s: round %d of %d", t.in.name, round, t.c.Rounds))
		}
	}
	return nil
}

func (s *fileSide) write(counts bool) error {
	if err := os.RemoveAll(s.path); err != nil {
		return err
	}
	_, took, err := s.peer.do("write", s.path)
	if err != nil {
		return err
	}
	info, err := os.Stat(s.path)
	if err != nil {
		return err
	}
	s.size = info.Size()
	if counts {
		s.writes = append(s.writes, took.Seconds())
	}
	return nil
}

// scan has one side read both files.
func (t *fileTest) scan(s *fileSide, counts bool) error {
	var took time.Duration
	for _, written := range t.sides {
		rows, one, err := s.peer.do("scan", written.path)
		if err != nil {
			return err
		}
		if rows != t.in.rows {
			return fmt.Errorf("bench: %s read %d rows of %d in %s", s.peer.name, rows, t.in.rows, written.path)
		}
		took += one
	}
	if counts {
		s.scan = append(s.scan, took.Seconds())
	}
	return nil
}

func (t *fileTest) figures() []Figure {
	ours, engine := t.sides[0], t.sides[1]
	size := Report("size-"+t.in.name, fmt.Sprintf("a file of %d rows of %s", t.in.rows, t.in.name), float64(ours.size), "bytes").
		Beside(float64(engine.size)).AtMost(1.15)
	if t.in.name == "ids" {
		return []Figure{size}
	}
	figures := []Figure{
		t.speed("scan", "scanning all columns of two files, ours and pylance's", 2, ours.scan, engine.scan),
		t.speed("write", "writing a file", 1, ours.writes, engine.writes),
	}
	if t.in.name == "vectors" { // noise has no other size
		return figures
	}
	return append(figures, size)
}

// speed makes a figure of rows a second; files is how many files of rows one time stands for.
func (t *fileTest) speed(verb, what string, files int64, ours, engine []float64) Figure {
	megabytes := float64(files*t.in.bytes) / 1e6
	what = fmt.Sprintf("%s of %d rows of %s, one thread; in values as of Arrow %.0f MB/s, pylance %.0f MB/s",
		what, t.in.rows, t.in.name, megabytes/median(ours), megabytes/median(engine))
	rows := float64(files * t.in.rows)
	return Report(verb+"-"+t.in.name, what, rows/median(ours), "rows/s").Beside(rows / median(engine)).AtLeast(0.7)
}
