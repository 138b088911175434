package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/countstore"
)

// PublishConfig is the count of object requests of a fold with its publish.
type PublishConfig struct {
	Dir      string // emptied and used
	Tables   []int  // tables that a fold touches; default 1, 3, 8
	Folds    int    // folds that are counted after one that is not; default 5
	Rows     int    // rows for each table and fold; default 100
	Progress func(string)
}

func (c *PublishConfig) ensureDefaults() {
	if len(c.Tables) == 0 {
		c.Tables = []int{1, 3, 8}
	}
	if c.Folds == 0 {
		c.Folds = 5
	}
	if c.Rows == 0 {
		c.Rows = 100
	}
	if c.Progress == nil {
		c.Progress = func(string) {}
	}
}

// Requests counts exactly, so one run is enough; half of the rows of each fold
// replace earlier ones.
func Requests(ctx context.Context, c PublishConfig) (figures []Figure, err error) {
	c.ensureDefaults()
	for _, tables := range c.Tables {
		f, err := c.count(ctx, tables)
		if err != nil {
			return nil, fmt.Errorf("%d tables: %w", tables, err)
		}
		figures = append(figures, f...)
	}
	return figures, nil
}

func (c PublishConfig) count(ctx context.Context, tables int) (figures []Figure, err error) {
	if err := os.RemoveAll(c.Dir); err != nil {
		return nil, err
	}
	var counters []*countstore.Store
	l, err := StartLine(ctx, LineConfig{Dir: c.Dir, Tables: tables, Wrap: func(s objstore.Store) objstore.Store {
		counters = append(counters, countstore.New(s))
		return counters[len(counters)-1]
	}})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	var sum countstore.Counts
	for fold := range c.Folds + 1 {
		if err := c.foldOnce(ctx, l, fold); err != nil {
			return nil, err
		}
		for _, s := range counters {
			if fold > 0 {
				sum = add(sum, s.Counts())
			}
			s.Reset()
		}
	}
	n := float64(c.Folds)
	what := fmt.Sprintf("of a fold with its publish, %d tables touched, %d rows each, half of them replacing rows", tables, c.Rows)
	id := func(name string) string { return fmt.Sprintf("publish-%s-%d", name, tables) }
	figures = []Figure{
		Report(id("writes"), "write requests "+what, float64(sum.Writes())/n, "requests"),
		Report(id("lists"), "LIST requests "+what, float64(sum.List)/n, "requests"),
		Report(id("reads"), "read requests "+what, float64(sum.Reads()-sum.List)/n, "requests"),
		Report(id("bytes"), "bytes written "+what, float64(sum.WrittenBytes)/n, "B"),
	}
	texts := make([]string, len(figures))
	for i, f := range figures {
		texts[i] = fmt.Sprintf("%.4g %s", f.Ours, strings.Split(f.ID, "-")[1])
	}
	c.Progress(fmt.Sprintf("publish of %d tables: %s", tables, strings.Join(texts, ", ")))
	return figures, nil
}

// foldOnce writes to every table and folds.
func (c PublishConfig) foldOnce(ctx context.Context, l *Line, fold int) error {
	if err := c.write(ctx, l, fold); err != nil {
		return err
	}
	report, err := l.FoldOnce(ctx)
	if err == nil && report.Tables != len(l.Tables) {
		err = fmt.Errorf("%d of %d tables committed", report.Tables, len(l.Tables))
	}
	return err
}

// write sends one message to every table; half of its rows replace earlier ones.
func (c PublishConfig) write(ctx context.Context, l *Line, fold int) error {
	key := func(i int) int { return i - fold*c.Rows/2 }
	load := Load{
		Conn: l.producer, InFlight: 1, Check: durable, Count: len(l.Tables),
		Request: func(i int) *nats.Msg { return l.message(l.Tables[i], fold*c.Rows, c.Rows, key) },
	}
	_, err := load.Run(ctx)
	return err
}

func add(a, b countstore.Counts) countstore.Counts {
	return countstore.Counts{
		Get: a.Get + b.Get, GetRange: a.GetRange + b.GetRange, GetTail: a.GetTail + b.GetTail, Put: a.Put + b.Put,
		PutIfAbsent: a.PutIfAbsent + b.PutIfAbsent, Upload: a.Upload + b.Upload, List: a.List + b.List, Stat: a.Stat + b.Stat,
		Delete: a.Delete + b.Delete, ReadBytes: a.ReadBytes + b.ReadBytes, WrittenBytes: a.WrittenBytes + b.WrittenBytes,
	}
}
