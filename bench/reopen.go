package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/foldline/foldline/wal"
)

// ReopenConfig is the measurement of opening a log with a backlog.
type ReopenConfig struct {
	Dir      string // emptied and used
	Rows     int    // unreleased; default 1,000,000
	Rounds   int    // default 5
	Progress func(string)
}

// Reopen opens copies of one log, ours and with bare Pebble in turns.
func Reopen(ctx context.Context, c ReopenConfig) (figures []Figure, err error) {
	if c.Rows == 0 {
		c.Rows = 1_000_000
	}
	if c.Rounds == 0 {
		c.Rounds = 5
	}
	for _, kind := range []struct {
		id, what string
		rows     int
	}{
		{"reopen-1m", "messages of 100 rows with message ids", 100},
		{"reopen-1m-ids", "messages of one row, a million message ids in the window", 1},
	} {
		ours, bare, err := c.measure(ctx, filepath.Join(c.Dir, kind.id), kind.rows)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", kind.id, err)
		}
		f := Report(kind.id, fmt.Sprintf("opening a log with %d unreleased rows, %s; peer: Pebble's open of the same files", c.Rows, kind.what),
			ours, "ms").Beside(bare)
		if kind.rows > 1 {
			f = f.AtMost(1.25)
		}
		if c.Progress != nil {
			c.Progress(fmt.Sprintf("%s: ours %.0f ms, bare %.0f ms", kind.id, ours, bare))
		}
		figures = append(figures, f)
	}
	return figures, nil
}

func (c ReopenConfig) measure(ctx context.Context, dir string, rows int) (ours, bare float64, err error) {
	image := filepath.Join(dir, "image")
	if err := os.RemoveAll(dir); err != nil {
		return 0, 0, err
	}
	if err := c.backlog(ctx, image, rows); err != nil {
		return 0, 0, err
	}
	opens := []func(dir string) (io.Closer, error){
		func(dir string) (io.Closer, error) { return wal.Open(ctx, wal.Options{Dir: dir, Graph: graphName}) },
		func(dir string) (io.Closer, error) { return openPebble(filepath.Join(dir, "log")) },
	}
	took := make([][]float64, len(opens))
	for range c.Rounds {
		for i, open := range opens {
			d, err := timed(image, filepath.Join(dir, "copy"), open)
			if err != nil {
				return 0, 0, err
			}
			took[i] = append(took[i], float64(d.Microseconds())/1000)
		}
	}
	return median(took[0]), median(took[1]), os.RemoveAll(dir)
}

// backlog fills a log and closes it. Pebble flushes nothing at its close, so that an open replays as much as after a kill.
func (c ReopenConfig) backlog(ctx context.Context, dir string, rows int) error {
	l, err := startLog(ctx, dir)
	if err != nil {
		return err
	}
	err = l.fill(ctx, rows, true, func(st wal.Status) bool { return st.Rows >= int64(c.Rows) })
	return errors.Join(err, l.close())
}

// timed opens a copy of a directory and tells how long the open took.
func timed(image, dir string, open func(string) (io.Closer, error)) (time.Duration, error) {
	if err := errors.Join(os.RemoveAll(dir), os.CopyFS(dir, os.DirFS(image))); err != nil {
		return 0, err
	}
	start := time.Now()
	opened, err := open(dir)
	took := time.Since(start)
	if err != nil {
		return 0, err
	}
	return took, opened.Close()
}
