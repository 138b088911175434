package main

import (
	"context"
	"fmt"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/envelope"
)

type rejectsCmd struct {
	List   rejectsListCmd   `cmd:"" default:"withargs" help:"Print them."`
	Replay rejectsReplayCmd `cmd:"" help:"Play dead letters of a table again, in the order in which they were written, as if they were written now."`
}

type rejectsListCmd struct {
	Format string `enum:"json,csv,arrow" default:"json" help:"json (a line per row), csv or arrow (IPC stream)."`
	JSON   bool   `help:"The same as --format json."`
	Limit  limit  `help:"Rows to print; 0 for all." default:"0"`
}

func (c *rejectsListCmd) Run(ctx context.Context, e *env) error {
	scan := scanCmd{Table: heads.RejectsKey, Format: c.Format, JSON: c.JSON, Limit: c.Limit}
	return scan.Run(ctx, e)
}

type rejectsReplayCmd struct {
	Table string   `arg:"" help:"Table key."`
	ID    []string `name:"id" help:"Only these, as foldline rejects names them; all of the table by default." placeholder:"ID,…"`
	admin
}

func (c *rejectsReplayCmd) Run(ctx context.Context, e *env) error {
	return c.answer(ctx, e, envelope.AdminReplay, envelope.AdminRequest{Table: c.Table, IDs: c.ID}, func(reply envelope.AdminReply) string {
		return fmt.Sprintf("%d rows replayed, %d rejected again", reply.Replayed, reply.Rejected)
	})
}
