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
		took, err := c.measure(ctx, filepath.Join(c.Dir, kind.id), kind.rows)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", kind.id, err)
		}
		figures = append(figures,
			Report(kind.id, fmt.Sprintf("opening a log with %d unreleased rows, %s; peer: Pebble's open of the same files", c.Rows, kind.what),
				took.ours, "ms").Beside(took.bare).AtMost(1.25),
			// Between the open and this the owner claims the lane, beside which the window is loaded; here nothing is.
			Report(kind.id+"-begun", fmt.Sprintf("the same log from its open until it takes entries under a new epoch, %s; peer: Pebble's open of the same files", kind.what),
				took.begun, "ms").Beside(took.bare))
		if c.Progress != nil {
			c.Progress(fmt.Sprintf("%s: open %.0f ms, until begun %.0f ms, bare %.0f ms", kind.id, took.ours, took.begun, took.bare))
		}
	}
	return figures, nil
}

// reopened are the medians of the rounds, in milliseconds.
type reopened struct{ ours, begun, bare float64 }

func (c ReopenConfig) measure(ctx context.Context, dir string, rows int) (r reopened, err error) {
	image := filepath.Join(dir, "image")
	if err := os.RemoveAll(dir); err != nil {
		return r, err
	}
	if err := c.backlog(ctx, image, rows); err != nil {
		return r, err
	}
	opens := []func(dir string) (io.Closer, error){
		func(dir string) (io.Closer, error) { return wal.Open(ctx, wal.Options{Dir: dir, Graph: graphName}) },
		func(dir string) (io.Closer, error) { return openPebble(filepath.Join(dir, "log")) },
		func(dir string) (io.Closer, error) { return openAndBegin(ctx, dir) },
	}
	took := make([][]float64, len(opens))
	for range c.Rounds {
		for i, open := range opens {
			d, err := timed(image, filepath.Join(dir, "copy"), open)
			if err != nil {
				return r, err
			}
			took[i] = append(took[i], float64(d.Microseconds())/1000)
		}
	}
	return reopened{ours: median(took[0]), bare: median(took[1]), begun: median(took[2])}, os.RemoveAll(dir)
}

func openAndBegin(ctx context.Context, dir string) (io.Closer, error) {
	l, err := wal.Open(ctx, wal.Options{Dir: dir, Graph: graphName})
	if err != nil {
		return nil, err
	}
	return l, l.Begin(wal.MaxEpoch)
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
