// Command files measures data files beside pylance and writes the figures to a
// summary file. `make bench-files` installs what it needs and runs it.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/alecthomas/kong"

	"github.com/foldline/foldline/bench"
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
	kong.Parse(&f, kong.Description("Measures data files beside pylance."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := f.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "files:", err)
		os.Exit(1)
	}
}

func (f flags) run(ctx context.Context) error {
	figures, err := bench.Files(ctx, bench.FilesConfig{
		Dir: f.Dir, Ours: f.Ours, Python: f.Python, Script: f.Script, Rounds: f.Rounds,
		Progress: func(text string) { fmt.Fprintln(os.Stderr, text) },
	})
	if err != nil {
		return err
	}
	bench.Conditions(ctx, figures, "make bench-files")
	for _, figure := range figures {
		fmt.Println(figure)
	}
	if f.Summary == "" {
		return nil
	}
	return bench.Record(f.Summary, figures)
}
