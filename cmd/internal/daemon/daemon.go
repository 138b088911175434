package daemon

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"time"

	"github.com/alecthomas/kong"

	"github.com/foldline/foldline/cmd/internal/exit"
	"github.com/foldline/foldline/cmd/internal/run"
	"github.com/foldline/foldline/internal/telemetry"
)

// flushLimit bounds the last export of telemetry.
const flushLimit = 5 * time.Second

// Program is what one of the programs is.
type Program struct {
	// Name is its file name, Description the first line of its help.
	Name, Description string
	// Serve works until the context ends; an error is why it stopped on its own.
	Serve func(context.Context, run.Config, run.Deps) error
}

// Ingester and Folder are the two programs.
var (
	Ingester = Program{
		Name: "ingester", Description: "Takes writes from NATS into the log of one lane and answers when they are durable.", Serve: run.Ingester,
	}
	Folder = Program{
		Name: "folder", Description: "Folds the lanes of a graph into its Lance tables and publishes them as one.", Serve: run.Folder,
	}
)

// Main runs the program on this process's arguments and exits with its code.
func Main(p Program) {
	ctx, stop := exit.Signals(os.Stderr)
	code := exit.Report(os.Stderr, p.Name, p.execute(ctx, os.Args[1:], os.Stdout, os.Stderr))
	stop()
	os.Exit(code)
}

type cli struct {
	run.Config `embed:""`
	ConfigFile string           `name:"config" help:"Settings file." placeholder:"FILE" default:"foldline.yaml"`
	Version    kong.VersionFlag `help:"Print the version of this program."`
}

func (p Program) execute(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	c := &cli{}
	_, err := run.Parse(p.Name, p.Description, c, &c.Config, args, kong.Writers(stdout, stderr), kong.Vars{"version": run.Version()})
	if err != nil {
		return err
	}
	t, shutdown, err := telemetry.Setup(ctx, telemetry.Options{
		Service: "foldline-" + p.Name, Version: run.Version(), LogLevel: cmp.Or(c.Log.Level, "info"), LogFormat: c.Log.Format,
		LogOutput: stderr, OTLPEndpoint: c.OTLP.Endpoint,
	})
	if err != nil {
		return err
	}
	err = p.Serve(ctx, c.Config, run.Deps{Telemetry: t})
	flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushLimit)
	defer cancel()
	return errors.Join(err, shutdown(flush))
}
