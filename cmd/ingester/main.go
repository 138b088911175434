package main

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

type cli struct {
	run.Config `embed:""`
	ConfigFile string           `name:"config" help:"Settings file." placeholder:"FILE" default:"foldline.yaml"`
	Version    kong.VersionFlag `help:"Print the version of this program."`
}

func main() {
	ctx, stop := exit.Signals(os.Stderr)
	code := exit.Report(os.Stderr, "ingester", execute(ctx, os.Args[1:], os.Stdout, os.Stderr))
	stop()
	os.Exit(code)
}

func execute(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	c := &cli{}
	_, err := run.Parse("ingester", description, c, &c.Config, args, kong.Writers(stdout, stderr), kong.Vars{"version": run.Version()})
	if err != nil {
		return err
	}
	t, shutdown, err := telemetry.Setup(ctx, telemetry.Options{
		Service: "foldline-ingester", Version: run.Version(), LogLevel: cmp.Or(c.Log.Level, "info"), LogFormat: c.Log.Format,
		LogOutput: stderr, OTLPEndpoint: c.OTLP.Endpoint,
	})
	if err != nil {
		return err
	}
	err = run.Ingester(ctx, c.Config, run.Deps{Telemetry: t})
	flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushLimit)
	defer cancel()
	return errors.Join(err, shutdown(flush))
}
