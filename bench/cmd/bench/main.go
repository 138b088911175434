// Command bench measures Foldline beside its peers and writes the figures to a
// summary file. See package bench for what is measured.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/foldline/foldline/bench"
	"github.com/foldline/foldline/bench/cmd/internal/program"
)

type flags struct {
	Dir      string        `help:"Where logs and tables of the runs are; on the disk that is to be measured." default:"build/bench"`
	Summary  string        `help:"Summary file to record figures in; empty records nothing." default:"bench/results/summary.jsonl"`
	Ack      bool          `help:"Acks beside the bare loop and JetStream."`
	Pipeline bool          `help:"Rows from producer to heads."`
	Publish  bool          `help:"Object requests of a publish."`
	S3       bool          `name:"s3" help:"Publishes on an S3 server that holds up each request."`
	Reopen   bool          `help:"Opening a log with a million unreleased rows beside Pebble's open."`
	Failover bool          `help:"Time from the kill of the active folder to the first publish of its standby, as processes of their own."`
	Space    bool          `help:"Disk use of a log after releases; writes 10 GB, and is measured only when it is chosen."`
	InFlight []int         `help:"Messages in flight of the ack measurement." default:"1,16,256"`
	Only     []string      `help:"Parts of the ack measurement: acks, open, ndjson, arrow; all of them by default."`
	Side     string        `help:"One side of the ack measurement alone, without figures, for a profile." enum:",ours,bare,JetStream" default:""`
	Turns    int           `help:"Rounds of the ack measurement, in which the sides take turns." default:"11"`
	For      time.Duration `help:"Length of one turn of the ack measurement." default:"500ms"`
	Rounds   int           `help:"Rounds of the reopen and failover measurements." default:"5"`
	Rows     int           `help:"Rows of the pipeline measurement, and of the table of the failover." default:"500000"`
	Profile  string        `help:"Write a CPU profile of the run to this file." placeholder:"FILE"`
}

func main() {
	var f flags
	program.Main("bench", "Measures Foldline beside its peers. Without a choice, everything but --space is measured.", &f, func(ctx context.Context) error { return f.profiled(ctx) })
}

// part is one measurement that can be chosen.
type part struct {
	chosen bool
	name   string
	run    func(ctx context.Context, dir string) ([]bench.Figure, error)
}

func (f flags) parts() []part {
	return []part{
		{f.Ack, "ack", func(ctx context.Context, dir string) ([]bench.Figure, error) {
			return bench.Acks(ctx, bench.AckConfig{Dir: dir, Rounds: f.Turns, For: f.For, InFlight: f.InFlight, Only: f.Only, Side: f.Side, Progress: program.Progress})
		}},
		{f.Pipeline, "pipeline", func(ctx context.Context, dir string) ([]bench.Figure, error) {
			return bench.Pipeline(ctx, bench.PipelineConfig{Dir: dir, Rows: f.Rows, Progress: program.Progress})
		}},
		{f.Publish, "publish", func(ctx context.Context, dir string) ([]bench.Figure, error) {
			return bench.Requests(ctx, bench.PublishConfig{Dir: dir, Progress: program.Progress})
		}},
		{f.S3, "s3", func(ctx context.Context, dir string) ([]bench.Figure, error) {
			return bench.S3Publish(ctx, bench.S3Config{Dir: dir, Progress: program.Progress})
		}},
		{f.Reopen, "reopen", func(ctx context.Context, dir string) ([]bench.Figure, error) {
			return bench.Reopen(ctx, bench.ReopenConfig{Dir: dir, Rounds: f.Rounds, Progress: program.Progress})
		}},
		{f.Failover, "failover", func(ctx context.Context, dir string) ([]bench.Figure, error) {
			return bench.Failover(ctx, bench.FailoverConfig{Dir: dir, Rows: f.Rows, Rounds: f.Rounds, Progress: program.Progress})
		}},
		{f.Space, "space", func(ctx context.Context, dir string) ([]bench.Figure, error) {
			return bench.Space(ctx, bench.SpaceConfig{Dir: dir, Progress: program.Progress})
		}},
	}
}

// profiled runs under the CPU profiler when the flag names a file.
func (f flags) profiled(ctx context.Context) error {
	if f.Profile == "" {
		return f.run(ctx)
	}
	out, err := os.Create(f.Profile)
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(out); err != nil {
		return errors.Join(err, out.Close())
	}
	err = f.run(ctx)
	pprof.StopCPUProfile()
	return errors.Join(err, out.Close())
}

func (f flags) run(ctx context.Context) error {
	all := !f.Ack && !f.Pipeline && !f.Publish && !f.S3 && !f.Reopen && !f.Failover && !f.Space
	var figures []bench.Figure
	for _, p := range f.parts() {
		if !p.chosen && (!all || p.name == "space") {
			continue
		}
		found, err := p.run(ctx, filepath.Join(f.Dir, p.name))
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		figures = append(figures, found...)
	}
	return program.Report(ctx, figures, strings.TrimSpace("go run ./bench/cmd/bench "+strings.Join(os.Args[1:], " ")), f.Summary)
}
