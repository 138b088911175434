// Command tables measures the table layer: merges beside pylance, and the requests
// of an open and a commit. `make bench-tables` installs what it needs and runs it.
package main

import (
	"context"

	"github.com/foldline/foldline/bench"
	"github.com/foldline/foldline/bench/cmd/internal/program"
)

type flags struct {
	Dir     string `help:"Where inputs and tables are made; a file system in memory leaves syncs out." default:"build/bench/tables"`
	Ours    string `help:"The program that works on tables with our package." default:"build/bin/tablepeer"`
	Python  string `help:"A Python that has pylance." required:""`
	Script  string `help:"The script that works on tables with pylance." default:"bench/tablepeer.py"`
	Summary string `help:"Summary file to record figures in; empty records nothing." default:"bench/results/summary.jsonl"`
	Rounds  int    `help:"Rounds that count." default:"7"`
}

func main() {
	var f flags
	program.Main("tables", "Measures the table layer beside pylance.", &f, func(ctx context.Context) error { return f.run(ctx) })
}

func (f flags) run(ctx context.Context) error {
	figures, err := bench.TableRequests(ctx)
	if err != nil {
		return err
	}
	merges, err := bench.Merge(ctx, bench.MergeConfig{
		Dir: f.Dir, Ours: f.Ours, Python: f.Python, Script: f.Script, Rounds: f.Rounds,
		Progress: program.Progress,
	})
	if err != nil {
		return err
	}
	figures = append(figures, merges...)
	return program.Report(ctx, figures, "make bench-tables", f.Summary)
}
