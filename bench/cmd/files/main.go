// Command files measures data files beside pylance and writes the figures to a
// summary file. `make bench-files` installs what it needs and runs it.
package main

import (
	"context"

	"github.com/foldline/foldline/bench"
	"github.com/foldline/foldline/bench/cmd/internal/program"
)

type flags struct {
	Dir     string `help:"Where inputs and data files are made." default:"build/bench/files"`
	Ours    string `help:"The program that works with our files." default:"build/bin/filepeer"`
	Python  string `help:"A Python that has pylance." required:""`
	Script  string `help:"The script that works with pylance's files." default:"bench/filepeer.py"`
	Summary string `help:"Summary file to record figures in; empty records nothing." default:"bench/results/summary.jsonl"`
	Rounds  int    `help:"Rounds that count." default:"7"`
}

func main() {
	var f flags
	program.Main("files", "Measures data files beside pylance.", &f, func(ctx context.Context) error { return f.run(ctx) })
}

func (f flags) run(ctx context.Context) error {
	figures, err := bench.Files(ctx, bench.FilesConfig{
		Dir: f.Dir, Ours: f.Ours, Python: f.Python, Script: f.Script, Rounds: f.Rounds,
		Progress: program.Progress,
	})
	if err != nil {
		return err
	}
	return program.Report(ctx, figures, "make bench-files", f.Summary)
}
