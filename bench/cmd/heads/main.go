// Command heads measures publishes and cold resolves at several depths of history.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/pprof"

	"github.com/alecthomas/kong"

	"github.com/foldline/foldline/bench"
)

type flags struct {
	Dir     string `help:"Where the graphs are when they are measured." default:"build/bench/heads"`
	Build   string `help:"Where depth is built; a directory in memory saves the syncs." placeholder:"DIR"`
	Tables  []int
	Depths  []int
	Touched int
	Window  int
	Rounds  int
	Keep    uint64
	Profile string
}

func main() {
	var f flags
	kong.Parse(&f)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if f.Profile != "" {
		out, err := os.Create(f.Profile)
		if err != nil {
			panic(err)
		}
		_ = pprof.StartCPUProfile(out)
		defer pprof.StopCPUProfile()
	}
	_, err := bench.Heads(ctx, bench.HeadsConfig{Dir: f.Dir, Build: f.Build, Tables: f.Tables, Depths: f.Depths, Touched: f.Touched,
		Window: f.Window, Rounds: f.Rounds, Keep: f.Keep, Progress: func(s string) { fmt.Fprintln(os.Stderr, s) }})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
