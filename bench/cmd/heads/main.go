// Command heads counts and times publishes and cold resolves at several depths of history, and writes figures to a summary file and all that was
// seen to a page. See package bench for what is measured.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/foldline/foldline/bench"
	"github.com/foldline/foldline/bench/cmd/internal/program"
)

type flags struct {
	Dir     string `help:"Where the graphs are when they are measured; on the disk that is to be measured." default:"build/bench/heads"`
	Build   string `help:"Where depth is built; a directory in memory saves the syncs." placeholder:"DIR"`
	Summary string `help:"Summary file to record figures in; empty records nothing." default:"bench/results/summary.jsonl"`
	Page    string `help:"File for the tables of all cells; empty writes none." default:"bench/results/heads.md"`
	Tables  []int  `help:"Tables of each cell." placeholder:"N,…"`
	Depths  []int  `help:"Publishes around which windows lie." placeholder:"N,…"`
	Touched int    `help:"Tables that a publish moves."`
	Window  int    `help:"Publishes of a window."`
	Rounds  int    `help:"Publishes of each graph that are timed in turn."`
	Keep    uint64 `help:"Versions of the manifest that are kept."`
}

func main() {
	var f flags
	program.Main("heads", "Measures publishes and cold resolves at several depths of history.", &f, func(ctx context.Context) error { return f.run(ctx) })
}

func (f flags) run(ctx context.Context) error {
	c := bench.HeadsConfig{Dir: f.Dir, Build: f.Build, Tables: f.Tables, Depths: f.Depths, Touched: f.Touched, Window: f.Window, Rounds: f.Rounds, Keep: f.Keep,
		Progress: program.Progress}
	cells, err := bench.Heads(ctx, c)
	if err != nil {
		return err
	}
	figures := bench.HeadsFigures(cells)
	disjoint, err := bench.Disjoint(ctx)
	if err != nil {
		return err
	}
	figures = append(figures, disjoint)
	if err := program.Report(ctx, figures, command(os.Args[1:]), f.Summary); err != nil {
		return err
	}
	if f.Page == "" {
		return nil
	}
	first := figures[0]
	page := bench.HeadsTable(c, cells, fmt.Sprintf("`%s`, commit %s, %s.", first.Command, first.Commit, first.Machine))
	return os.WriteFile(f.Page, []byte(page), 0o644)
}

// command is what repeats the run: the target of the Makefile, whose build directory has another name each time, or this program.
func command(args []string) string {
	if len(args) == 2 && args[0] == "--build" {
		return "make bench-heads"
	}
	return strings.TrimSpace("go run ./bench/cmd/heads " + strings.Join(args, " "))
}
