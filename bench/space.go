package bench

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/foldline/foldline/wal"
)

// SpaceConfig is the measurement of what a log leaves on disk when it is filled and released again and again.
type SpaceConfig struct {
	Dir        string // emptied and used
	Rounds     int    // default 10
	RoundBytes int64  // default 1 GB
	// Settle is how long disk use has to stay the same to be taken; default 2 s. Files are deleted when nobody reads them
	// any more.
	Settle   time.Duration
	Progress func(string)
}

// Space fills and releases a log, in messages of 100 rows with message ids.
func Space(ctx context.Context, c SpaceConfig) ([]Figure, error) {
	if c.Rounds == 0 {
		c.Rounds = 10
	}
	if c.RoundBytes == 0 {
		c.RoundBytes = 1e9
	}
	if c.Settle == 0 {
		c.Settle = 2 * time.Second
	}
	if err := os.RemoveAll(c.Dir); err != nil {
		return nil, err
	}
	l, err := startLog(ctx, c.Dir)
	if err != nil {
		return nil, err
	}
	filled, released, err := l.rounds(ctx, c)
	if err = errors.Join(err, l.close(), os.RemoveAll(c.Dir)); err != nil {
		return nil, err
	}
	what := fmt.Sprintf("disk use of a log beyond its unreleased bytes, the most of %d rounds of %d MB in and released", c.Rounds, c.RoundBytes/1e6)
	return []Figure{
		Report("release-space", what+", after each release", released, "MB").Below(300),
		Report("release-space-full", what+", before each release", filled, "MB"),
	}, nil
}

// rounds gives the most that was on disk beyond the unreleased bytes, in MB, with a full log and after its release.
func (o *openLog) rounds(ctx context.Context, c SpaceConfig) (filled, released float64, err error) {
	for round := range c.Rounds {
		if err := o.fill(ctx, 100, true, func(st wal.Status) bool { return st.Bytes >= c.RoundBytes }); err != nil {
			return 0, 0, err
		}
		full, err := o.beyond(ctx, c.Dir)
		if err != nil {
			return 0, 0, err
		}
		st, err := o.Status(ctx)
		if err != nil {
			return 0, 0, err
		}
		if err := o.Release(ctx, st.SyncedThrough); err != nil {
			return 0, 0, err
		}
		empty, err := o.settled(ctx, c.Dir, c.Settle)
		if err != nil {
			return 0, 0, err
		}
		filled, released = max(filled, full), max(released, empty)
		if c.Progress != nil {
			c.Progress(fmt.Sprintf("round %d: %.0f MB beyond the unreleased before the release, %.0f MB after it", round+1, full, empty))
		}
	}
	return filled, released, nil
}

// settled is beyond once it falls no more: Pebble deletes files on a goroutine of its own.
func (o *openLog) settled(ctx context.Context, dir string, wait time.Duration) (float64, error) {
	last := math.Inf(1)
	for {
		now, err := o.beyond(ctx, dir)
		if err != nil || now >= last {
			return now, err
		}
		last = now
		if err := pause(ctx, wait); err != nil {
			return 0, err
		}
	}
}

// beyond is what the directory holds beside the unreleased bytes, in MB.
func (o *openLog) beyond(ctx context.Context, dir string) (float64, error) {
	st, err := o.Status(ctx)
	if err != nil {
		return 0, err
	}
	total := -st.Bytes
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return gone(err)
		}
		info, err := d.Info()
		if err == nil {
			total += info.Size()
		}
		return gone(err)
	})
	return float64(total) / 1e6, err
}

// gone makes no fault of a file that was deleted under our eyes.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
