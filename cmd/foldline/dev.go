package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/foldline/foldline/cmd/internal/feed"
	"github.com/foldline/foldline/cmd/internal/run"
)

type devCmd struct {
	Port    int          `help:"Port of the embedded NATS server, on 127.0.0.1. 0: 4222 when it is free, else any." default:"0"`
	Input   []string     `help:"NDJSON file to send, with its table: TABLE=FILE; or FILE, and its table by --table." placeholder:"[TABLE=]FILE" sep:"none"`
	Table   []string     `help:"Table of the next --input without one. Its columns come from the settings, from the graph, or from the whole file." placeholder:"TABLE" sep:"none"`
	Sample  bool         `help:"Send the sample: airports, routes and flights."`
	OnError feed.OnError `enum:"stop,skip" default:"stop" help:"What a refused row leads to: ${enum}."`
	Once    bool         `help:"End when every row is visible. Exit code 0 says that all are."`
}

func (c *devCmd) Run(ctx context.Context, e *env) error {
	if c.Port < 0 || c.Port > 65535 {
		return usage("--port must be within 0 to 65535")
	}
	inputs, err := c.pairs()
	if err != nil {
		return err
	}
	e.cfg.Root = e.root()
	if err := e.declare(ctx, inputs, c.OnError); err != nil {
		return err
	}
	t, shutdown, err := e.telemetry(ctx)
	if err != nil {
		return err
	}
	job := &devJob{env: e, cmd: c, inputs: inputs}
	err = run.Dev(ctx, e.cfg, run.DevOptions{Data: e.data, Port: c.Port}, run.Deps{Telemetry: t}, job.run)
	flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
	defer cancel()
	if stopped := shutdown(flush); err == nil {
		err = stopped
	}
	if err == nil && !job.done && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return err
}

// devJob is what the development line is for: the inputs, and serving.
type devJob struct {
	*env
	cmd    *devCmd
	inputs []feed.Input
	// done tells that nothing was cut short: an interrupt after it is a clean end.
	done bool
}

func (j *devJob) run(ctx context.Context, line *run.Line) error {
	if _, err := fmt.Fprintf(j.stdout, "NATS at %s, graph at %s\n", line.URL, j.cfg.Root); err != nil {
		return err
	}
	if len(j.inputs) > 0 {
		if err := j.feed(ctx, line); err != nil {
			return err
		}
	}
	j.done = true
	if j.cmd.Once {
		return nil
	}
	if err := j.printHelp(line); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

func (j *devJob) feed(ctx context.Context, line *run.Line) error {
	wake, err := run.Published(line.Conn, line.Subjects)
	if err != nil {
		return err
	}
	f, err := feedThrough(line.Conn, j.cfg.Prefix, j.cfg.Graph, feed.Options{
		Resolve: line.Resolve, Published: wake, OnError: j.cmd.OnError, Report: j.reportRow,
	})
	if err != nil {
		return err
	}
	start := time.Now()
	view := newProgressView(j.stderr, func() progress { return progress{f.Progress(), line.Counts()} })
	stop := view.start(ctx)
	err = f.Run(ctx, j.inputs)
	stop()
	summary := summary{elapsed: time.Since(start), progress: progress{f.Progress(), line.Counts()}, latencies: f.Latencies()}
	if printed := summary.print(j.stdout); err == nil {
		err = printed
	}
	if errors.Is(err, feed.ErrRefused) && !j.cmd.Once {
		// Each row was named already, and the line is there to be used.
		_, err = fmt.Fprintln(j.stderr, err)
		return err
	}
	return err
}

const help = `
Serving until Ctrl-C. From another terminal (go install ./cmd/foldline puts the program on the path):
  foldline%[1]s heads
  foldline%[1]s scan %[2]s --limit 5
  foldline%[1]s status
Anything that speaks NATS can write:
  nats --server %[3]s request %[4]s '%[5]s'
  python3 -c 'import asyncio, nats
async def main():
  nc = await nats.connect("%[3]s")
  print((await nc.request("%[4]s", rb"""%[5]s""")).data.decode())
asyncio.run(main())'
`

// printHelp tells how to read and to write.
func (j *devJob) printHelp(line *run.Line) error {
	table, key := "node:Airport", []string{run.DefaultKey}
	if len(j.inputs) > 0 {
		table, key = j.inputs[0].Table, j.inputs[0].Key
	} else if len(j.cfg.Tables) > 0 {
		table, key = j.cfg.Tables[0].Table, j.cfg.Tables[0].KeyColumns()
	}
	members := make([]string, len(key))
	for i, k := range key {
		members[i] = fmt.Sprintf("%q:%q", k, "XXX")
	}
	flags := ""
	if j.data != "data" {
		flags = " --data " + string(j.data)
	}
	_, err := fmt.Fprintf(j.stdout, help, flags, table, line.URL, line.Subjects.WriteTable(table), "{"+strings.Join(members, ",")+"}")
	return err
}
