// Command tables measures the table layer: merges beside pylance, and the requests
// of an open and a commit. `make bench-tables` installs what it needs and runs it.
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
	Dir     string `help:"Where inputs and tables are made; a file system in memory leaves syncs out." default:"build/bench/tables"`
	Ours    string `help:"The program that works on tables with our package." default:"build/bin/tablepeer"`
	Python  string `help:"A Python that has pylance." required:""`
	Script  string `help:"The script that works on tables with pylance." default:"bench/tablepeer.py"`
	Summary string `help:"Summary file to record figures in; empty records nothing." default:"bench/results/summary.jsonl"`
	Rounds  int    `help:"Rounds that count." default:"7"`
}

func main() {
	var f flags
	kong.Parse(&f, kong.Description("Measures the table layer beside pylance."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := f.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "tables:", err)
		os.Exit(1)
	}
}

func (f flags) run(ctx context.Context) error {
	figures, err := bench.TableRequests(ctx)
	if err != nil {
		return err
	}
	merges, err := bench.Merge(ctx, bench.MergeConfig{
		Dir: f.Dir, Ours: f.Ours, Python: f.Python, Script: f.Script, Rounds: f.Rounds,
		Progress: func(text string) { fmt.Fprintln(os.Stderr, text) },
	})
	if err != nil {
		return err
	}
	figures = append(figures, merges...)
	bench.Conditions(ctx, figures, "make bench-tables")
	for _, figure := range figures {
		fmt.Println(figure)
	}
	if f.Summary == "" {
		return nil
	}
	return bench.Record(f.Summary, figures)
}
