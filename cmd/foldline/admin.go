package main

import (
	"context"
	"fmt"
	"time"

	"github.com/foldline/foldline/cmd/internal/run"
	"github.com/foldline/foldline/internal/envelope"
)

// admin is what the commands that ask the active folder share.
type admin struct {
	Timeout time.Duration `help:"How long to wait for the folder; what it has begun it goes on with." default:"1m"`
	JSON    bool          `help:"The folder's reply as one JSON object."`
}

func (a admin) check() error {
	if a.Timeout <= 0 {
		return usage("--timeout must be positive")
	}
	return nil
}

// ask sends a request to the folder of the graph.
func (a admin) ask(ctx context.Context, e *env, verb string, request envelope.AdminRequest) (envelope.AdminReply, error) {
	if err := a.check(); err != nil {
		return envelope.AdminReply{}, err
	}
	_, s, err := e.graph(ctx)
	if err != nil {
		return envelope.AdminReply{}, err
	}
	nc, subjects, err := e.dial(ctx, s.Graph)
	if err != nil {
		return envelope.AdminReply{}, err
	}
	defer nc.Close()
	ctx, cancel := context.WithTimeout(ctx, a.Timeout)
	defer cancel()
	return run.Admin(ctx, nc, subjects, verb, request)
}

// answer asks the folder and prints its reply as JSON, or the line that says the same.
func (a admin) answer(ctx context.Context, e *env, verb string, request envelope.AdminRequest, line func(envelope.AdminReply) string) error {
	reply, err := a.ask(ctx, e, verb, request)
	if err != nil {
		return err
	}
	if a.JSON {
		return writeJSON(e.stdout, reply)
	}
	_, err = fmt.Fprintln(e.stdout, line(reply))
	return err
}

type adoptCmd struct {
	Table string `arg:"" optional:"" help:"Table key; all tables by default."`
	admin
}

func (c *adoptCmd) Run(ctx context.Context, e *env) error {
	return c.answer(ctx, e, envelope.AdminAdopt, envelope.AdminRequest{Table: c.Table}, func(reply envelope.AdminReply) string {
		line := fmt.Sprintf("heads are at manifest version %d, commit %s", reply.Version, reply.Commit)
		if reply.Table != nil {
			line += "; " + describeTable(*reply.Table)
		}
		return line
	})
}

type pauseCmd struct {
	Table  string        `arg:"" help:"Table key."`
	For    time.Duration `help:"How long; a second pause moves the end." default:"10m"`
	Reason string        `help:"What for; status shows it." default:"paused by an operator"`
	End    bool          `help:"End the pause now, as resume does."`
	admin
}

func (c *pauseCmd) Run(ctx context.Context, e *env) error {
	if c.End {
		return (&resumeCmd{Table: c.Table, admin: c.admin}).Run(ctx, e)
	}
	if c.For < time.Second {
		return usage("--for must be at least a second")
	}
	return c.answer(ctx, e, envelope.AdminPause, envelope.AdminRequest{Table: c.Table, ForMs: c.For.Milliseconds(), Reason: c.Reason},
		func(reply envelope.AdminReply) string { return describeTable(*reply.Table) })
}

type resumeCmd struct {
	Table string `arg:"" help:"Table key."`
	admin
}

func (c *resumeCmd) Run(ctx context.Context, e *env) error {
	return c.answer(ctx, e, envelope.AdminResume, envelope.AdminRequest{Table: c.Table}, func(reply envelope.AdminReply) string {
		return fmt.Sprintf("%s; %d rows replayed, %d rejected", describeTable(*reply.Table), reply.Replayed, reply.Rejected)
	})
}

type compactCmd struct {
	Table string `arg:"" help:"Table key."`
	admin
}

func (c *compactCmd) Run(ctx context.Context, e *env) error {
	return c.answer(ctx, e, envelope.AdminCompact, envelope.AdminRequest{Table: c.Table}, func(reply envelope.AdminReply) string {
		line := "; nothing is worth it"
		if d := reply.Compacted; d != nil && d.Commits > 0 {
			line = fmt.Sprintf("; %d fragments became %d, %d rows were written anew in %d commits", d.Before, d.After, d.Rows, d.Commits)
		}
		return describeTable(*reply.Table) + line
	})
}

// describeTable says in one line what state a table is in, since when and why.
func describeTable(t envelope.AdminTable) string {
	text := fmt.Sprintf("table %s is %s at version %d", t.Table, t.State, t.Version)
	if t.Until != nil {
		text += " until " + t.Until.Format(time.RFC3339)
	}
	if t.Since != nil {
		text += ", since " + t.Since.Format(time.RFC3339)
	}
	if t.Reason != "" {
		text += ": " + t.Reason
	}
	return text
}
