// Package program is what the measuring programs share: the command line, Ctrl-C, and where figures go.
package program

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/alecthomas/kong"

	"github.com/foldline/foldline/bench"
)

// Main parses the command line into flags, a pointer to kong's struct, and runs the program until it is done or Ctrl-C ends its context. An error goes
// to standard error behind the program's name, and the process ends with 1.
func Main(name, description string, flags any, run func(ctx context.Context) error) {
	kong.Parse(flags, kong.Description(description))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, name+":", err)
		os.Exit(1)
	}
}

// Progress shows what a measurement is at.
func Progress(text string) { fmt.Fprintln(os.Stderr, text) }

// Report fills in the conditions of the figures, command among them, prints them, and puts them into the summary file unless its name is empty.
func Report(ctx context.Context, figures []bench.Figure, command, summary string) error {
	bench.Conditions(ctx, figures, command)
	for _, figure := range figures {
		fmt.Println(figure)
	}
	if summary == "" {
		return nil
	}
	return bench.Record(summary, figures)
}
