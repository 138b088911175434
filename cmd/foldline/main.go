// Command foldline is the operator's tool: it runs a whole development line in one process and shows what a graph, its
// log and its dead letters hold. `foldline --help` lists the commands; exit codes stand in the README.
package main

import (
	"context"
	"io"
	"os"

	"github.com/alecthomas/kong"

	"github.com/foldline/foldline/cmd/internal/exit"
	"github.com/foldline/foldline/cmd/internal/run"
)

const description = "Writes from NATS, durable in a log, folded into fenced Lance commits and published as one."

// cli is the command line.
type cli struct {
	run.Config `embed:""`
	ConfigFile string      `name:"config" help:"Settings file." placeholder:"FILE" default:"foldline.yaml"`
	Data       run.DataDir `help:"Directory of a development line; gives --root and --nats-url their defaults." default:"data"`

	Dev     devCmd     `cmd:"" help:"Run the whole line in one process, on one directory, with an embedded NATS server."`
	Heads   headsCmd   `cmd:"" help:"Show what is current, or was: tables, versions, cuts."`
	Log     logCmd     `cmd:"" help:"Show the graph's commits, newest first." name:"log"`
	Scan    scanCmd    `cmd:"" help:"Print the rows of a table at its head, or as they were."`
	Rejects rejectsCmd `cmd:"" help:"Print the dead letters, or play them again."`
	Status  statusCmd  `cmd:"" help:"Show the folder, held tables, and the lanes' logs beside the published cuts. Exit code 5 when no folder is active or a lane does not serve."`
	Adopt   adoptCmd   `cmd:"" help:"Publish now what other writers have committed."`
	Pause   pauseCmd   `cmd:"" help:"Keep folds off a table for a while, so that another writer has it for itself."`
	Resume  resumeCmd  `cmd:"" help:"Take a suspended, replaced or paused table back: what it missed is replayed, then it takes new rows."`
	Compact compactCmd `cmd:"" help:"Join the small fragments of a table and drop its deleted rows, now."`
	Lanes   lanesCmd   `cmd:"" name:"lanes" help:"Show the lane count, or change it: writes are answered busy until every lane is sealed and folded, then the ingesters go on with new logs."`
	Put     putCmd     `cmd:"" help:"Send rows of a file to a table."`
	WAL     walCmd     `cmd:"" name:"wal" help:"Look into a lane's log, of a running ingester or in a stopped directory."`
	Version versionCmd `cmd:"" help:"Print the version of this program."`
}

// env is what a command works with.
type env struct {
	cfg            run.Config
	data           run.DataDir
	stdout, stderr io.Writer
}

func main() {
	ctx, stop := exit.Signals(os.Stderr)
	code := execute(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// execute runs one command line and returns its exit code.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	c := &cli{}
	parsed, err := run.Parse("foldline", description, c, &c.Config, args, kong.Writers(stdout, stderr))
	if err == nil {
		parsed.BindTo(ctx, (*context.Context)(nil))
		err = parsed.Run(&env{cfg: c.Config, data: c.Data, stdout: stdout, stderr: stderr})
	}
	return exit.Report(stderr, "foldline", err)
}
