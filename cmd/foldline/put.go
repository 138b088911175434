package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/foldline/foldline/client"
	"github.com/foldline/foldline/cmd/internal/feed"
	"github.com/foldline/foldline/cmd/internal/run"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/envelope"
)

// closeLimit bounds the wait for a client's last answers.
const closeLimit = 5 * time.Second

type putCmd struct {
	Table   string       `arg:"" help:"Table key, such as node:Airport."`
	File    string       `arg:"" optional:"" default:"-" help:"NDJSON file; - for standard input."`
	Op      string       `enum:"upsert,insert,delete" default:"upsert" help:"${enum}."`
	OnError feed.OnError `enum:"stop,skip" default:"stop" help:"What a refused row leads to: ${enum}."`
	Wait    bool         `help:"Return when the rows are visible, not only durable."`
	JSON    bool         `help:"The result as one JSON object."`
}

type putView struct {
	Sent    int64 `json:"sent"`
	Acked   int64 `json:"acked"`
	Visible int64 `json:"visible"`
	Refused int64 `json:"refused"`
	// Unconfirmed rows have no receipt: they shared a message with a refused one, or its answer was busy or lost.
	Unconfirmed int64 `json:"unconfirmed"`
}

func (c *putCmd) Run(ctx context.Context, e *env) error {
	store, s, err := e.graph(ctx)
	if err != nil {
		return err
	}
	table, ok := s.Table(c.Table)
	if !ok {
		return fmt.Errorf("%w: table %q; foldline heads lists the tables", heads.ErrNotFound, c.Table)
	}
	op, ok := envelope.ParseOp(c.Op)
	if !ok {
		return usage("operation %q", c.Op)
	}
	nc, err := e.connect(ctx)
	if err != nil {
		return err
	}
	defer nc.Close()
	o := feed.Options{Op: op, OnError: c.OnError, Report: e.reportRow}
	if c.Wait {
		subjects, err := envelope.NewSubjects(e.cfg.Prefix, s.Graph)
		if err != nil {
			return err
		}
		if o.Published, err = run.Published(nc, subjects); err != nil {
			return err
		}
		o.Resolve = func(ctx context.Context) (*heads.Snapshot, error) { return heads.Current(ctx, store, "") }
	}
	f, err := feedThrough(nc, e.cfg.Prefix, s.Graph, o)
	if err != nil {
		return err
	}
	err = f.Run(ctx, []feed.Input{feed.File(c.Table, c.File, table.PrimaryKey...)})
	return errors.Join(err, c.report(e, f.Progress()))
}

func (c *putCmd) report(e *env, p feed.Progress) error {
	unconfirmed := p.Sent - p.Acked - p.Refused
	if c.JSON {
		return writeJSON(e.stdout, putView{Sent: p.Sent, Acked: p.Acked, Visible: p.Visible, Refused: p.Refused, Unconfirmed: unconfirmed})
	}
	visible := ""
	if c.Wait {
		visible = fmt.Sprintf(", %d visible", p.Visible)
	}
	rest := ""
	if unconfirmed > 0 {
		rest = fmt.Sprintf(", %d without a receipt", unconfirmed)
	}
	_, err := fmt.Fprintf(e.stdout, "%d rows sent, %d durable%s, %d refused%s\n", p.Sent, p.Acked, visible, p.Refused, rest)
	return err
}

// reportRow prints a refused row in one line.
func (e *env) reportRow(r *feed.RowError) { _, _ = fmt.Fprintf(e.stderr, "refused: %v\n", r) }

// session is a feed on a client of its own.
type session struct {
	*feed.Feed
	client *client.Client
}

func feedThrough(nc *nats.Conn, prefix, graph string, o feed.Options) (*session, error) {
	c, err := client.New(nc, graph, client.WithPrefix(prefix))
	if err != nil {
		return nil, err
	}
	o.Client = c
	return &session{feed.New(o), c}, nil
}

// Run runs the feed and closes the client.
func (s *session) Run(ctx context.Context, inputs []feed.Input) error {
	err := s.Feed.Run(ctx, inputs)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
	defer cancel()
	if closed := s.client.Close(closing); err == nil {
		err = closed
	}
	return err
}
