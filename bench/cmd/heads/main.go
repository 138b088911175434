// Command heads counts and times publishes and cold resolves at several depths of history, and writes figures to a summary file and all that was
// seen to a page. See package bench for what is measured.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/foldline/foldline/bench"
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
	kong.Parse(&f, kong.Description("Measures publishes and cold resolves at several depths of history."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := f.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "heads:", err)
		os.Exit(1)
	}
}

func (f flags) run(ctx context.Context) error {
	c := bench.HeadsConfig{Dir: f.Dir, Build: f.Build, Tables: f.Tables, Depths: f.Depths, Touched: f.Touched, Window: f.Window, Rounds: f.Rounds, Keep: f.Keep,
		Progress: func(text string) { fmt.Fprintln(os.Stderr, text) }}
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
	bench.Conditions(ctx, figures, command(os.Args[1:]))
	for _, figure := range figures {
		fmt.Println(figure)
	}
	if f.Page != "" {
		first := figures[0]
		page := bench.HeadsTable(c, cells, fmt.Sprintf("`%s`, commit %s, %s.", first.Command, first.Commit, first.Machine))
		if err := os.WriteFile(f.Page, []byte(page), 0o644); err != nil {
			return err
		}
	}
	if f.Summary == "" {
		return nil
	}
	return bench.Record(f.Summary, figures)
}

// command is what repeats the run: the target of the Makefile, whose build directory has another name each time, or this program.
func command(args []string) string {
	if len(args) == 2 && args[0] == "--build" {
		return "make bench-heads"
	}
	return strings.TrimSpace("go run ./bench/cmd/heads " + strings.Join(args, " "))
}
