package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go"
)

// PipelineConfig is the measurement of rows from a producer to the heads.
type PipelineConfig struct {
	Dir      string // emptied and used
	Rows     int    // default 500,000
	PerMsg   int    // rows of a message; default 100
	InFlight int    // messages; default 64
	Progress func(string)
}

func (c *PipelineConfig) ensureDefaults() {
	if c.Rows == 0 {
		c.Rows = 500_000
	}
	if c.PerMsg == 0 {
		c.PerMsg = 100
	}
	if c.InFlight == 0 {
		c.InFlight = 64
	}
	if c.Progress == nil {
		c.Progress = func(string) {}
	}
}

// Pipeline measures rows a second made durable, and rows a second from the first
// send until all are published: into an empty table, then half of them
// replacing rows of the first part. It also times one large fold alone.
func Pipeline(ctx context.Context, c PipelineConfig) (figures []Figure, err error) {
	c.ensureDefaults()
	insert, err := c.measure(ctx, "insert", same)
	if err != nil {
		return nil, fmt.Errorf("insert: %w", err)
	}
	half := c.Rows / 2
	mixed, err := c.measure(ctx, "mixed", func(i int) int {
		if i < half {
			return i
		}
		return i - half/2 // the last quarter of the keys is new, the one before it exists
	})
	if err != nil {
		return nil, fmt.Errorf("mixed: %w", err)
	}
	fold, err := c.foldAlone(ctx)
	if err != nil {
		return nil, fmt.Errorf("fold alone: %w", err)
	}
	what := fmt.Sprintf("%d rows of 200 B in NDJSON messages of %d", c.Rows, c.PerMsg)
	return []Figure{
		Report("pipeline-durable", "rows made durable while the folder works: "+what, insert.durable, "rows/s"),
		Report("pipeline-insert", "rows from first send to published, new keys, folder through NATS: "+what, insert.visible, "rows/s"),
		Report("pipeline-mixed", "rows from first send to published, a quarter replaces earlier rows: "+what, mixed.visible, "rows/s"),
		Report("pipeline-lag", "time from the last ack until all is published, new keys: "+what, insert.lag.Seconds()*1000, "ms"),
		Report("fold-rows", "rows of one cut folded and published, log read in turn through NATS: "+what, fold, "rows/s"),
	}, nil
}

type pipelineRun struct {
	durable, visible float64
	lag              time.Duration
}

func (c PipelineConfig) measure(ctx context.Context, name string, key func(int) int) (r pipelineRun, err error) {
	l, err := c.start(ctx, name, true)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	start := time.Now()
	if err := c.send(ctx, l, key); err != nil {
		return r, err
	}
	acked := time.Now()
	if err := l.WaitVisible(ctx); err != nil {
		return r, err
	}
	visible := time.Now()
	r.durable = float64(c.Rows) / acked.Sub(start).Seconds()
	r.visible = float64(c.Rows) / visible.Sub(start).Seconds()
	r.lag = visible.Sub(acked)
	c.Progress(fmt.Sprintf("%s: %.0f rows/s durable, %.0f rows/s visible", name, r.durable, r.visible))
	return r, nil
}

// foldAlone fills the log first and folds afterwards.
func (c PipelineConfig) foldAlone(ctx context.Context) (rate float64, err error) {
	l, err := c.start(ctx, "fold", false)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	if err := c.send(ctx, l, same); err != nil {
		return 0, err
	}
	start, rows := time.Now(), 0
	for rows < c.Rows {
		report, err := l.FoldOnce(ctx)
		if err != nil {
			return 0, err
		}
		if report.Empty() {
			return 0, fmt.Errorf("%d rows folded of %d", rows, c.Rows)
		}
		rows += report.Rows
	}
	rate = float64(rows) / time.Since(start).Seconds()
	c.Progress(fmt.Sprintf("fold alone: %.0f rows/s", rate))
	return rate, nil
}

func (c PipelineConfig) start(ctx context.Context, name string, fold bool) (*Line, error) {
	dir := filepath.Join(c.Dir, name)
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	l, err := StartLine(ctx, LineConfig{Dir: dir, Tables: 1, Fold: fold})
	if err != nil {
		return nil, err
	}
	return l, nil
}

// send sends all rows and waits for their acks. The messages are made
// beforehand: what is measured is the line, not the making of JSON.
func (c PipelineConfig) send(ctx context.Context, l *Line, key func(int) int) error {
	msgs := make([]*nats.Msg, 0, c.Rows/c.PerMsg)
	for i := range c.Rows / c.PerMsg {
		msgs = append(msgs, l.message("node:T0", i*c.PerMsg, c.PerMsg, key))
	}
	load := Load{
		Conn: l.producer, InFlight: c.InFlight, Check: durable, Count: len(msgs),
		Request: func(i int) *nats.Msg { return msgs[i] },
	}
	m, err := load.Run(ctx)
	if err == nil && m.Acks != len(msgs) {
		err = fmt.Errorf("%d of %d messages acked", m.Acks, len(msgs))
	}
	return err
}
