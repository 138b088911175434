package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/foldline/foldline/client"
	"github.com/foldline/foldline/cmd/internal/exit"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/envelope"
	"github.com/foldline/foldline/publisher"
	"github.com/foldline/foldline/wal"
)

// walReplayCmd writes again what a lost and found log holds above its cut: the log of an incarnation that was closed with its loss accepted.
type walReplayCmd struct {
	Dir  string `required:"" help:"Directory of the stopped log, which is only read." placeholder:"DIR"`
	JSON bool   `help:"The result as one JSON object."`
}

type walReplayView struct {
	Lane        uint32  `json:"lane"`
	Incarnation string  `json:"incarnation"`
	After       wal.Seq `json:"after,string"` // the published cut of the incarnation
	Entries     int     `json:"entries"`
	Rows        int     `json:"rows"`
	// Duplicates are entries that an earlier replay had written.
	Duplicates int `json:"duplicates"`
}

func (c *walReplayCmd) Run(ctx context.Context, e *env) error {
	return walTarget{Dir: c.Dir}.inspect(ctx, e, func(log *inspected, s wal.Status) error {
		log.readHeads(ctx, e)
		if log.heads == nil || log.heads.Graph != s.Graph {
			return fmt.Errorf("%w: the log is of graph %q, which is not at the root", heads.ErrNotFound, s.Graph)
		}
		cut, _ := log.heads.Cut(s.Lane, s.Incarnation)
		if cut.Open {
			return fmt.Errorf("%w: incarnation %s of lane %d is open: its ingester serves it, and its entries are folded", publisher.ErrIncarnation, s.Incarnation, s.Lane)
		}
		v := walReplayView{Lane: s.Lane, Incarnation: s.Incarnation, After: wal.Seq(cut.Through)}
		err := v.replay(ctx, e, log, s)
		if c.JSON {
			return errors.Join(err, writeJSON(e.stdout, v))
		}
		_, printed := fmt.Fprintf(e.stdout, "lane %d, incarnation %s: %d entries above %d with %d rows are durable again, %d of them were before\n",
			v.Lane, v.Incarnation, v.Entries, v.After, v.Rows, v.Duplicates)
		return errors.Join(err, printed)
	})
}

// replay sends the entries one after another. Their message ids are their places in the log, so that a replay that is repeated within the lane's
// window writes nothing twice.
func (v *walReplayView) replay(ctx context.Context, e *env, log *inspected, s wal.Status) error {
	nc, err := e.connect(ctx)
	if err != nil {
		return err
	}
	defer nc.Close()
	d := &dumper{cmd: &walDumpCmd{Rows: true}, heads: log.heads}
	for b, err := range unreleased(ctx, log, s, v.After) {
		if err != nil {
			return fmt.Errorf("replay lane %d: %w", s.Lane, err)
		}
		views, err := d.views(b)
		b.Release()
		if err != nil {
			return err
		}
		for _, entry := range views {
			if entry.Seq <= v.After {
				continue
			}
			id := fmt.Sprintf("replay-%s-%d", s.Incarnation, entry.Seq)
			c, err := client.New(nc, s.Graph, client.WithPrefix(e.cfg.Prefix), client.WithMessageIDPrefix(id))
			if err != nil {
				return err
			}
			if err := v.write(ctx, c, entry); err != nil {
				return fmt.Errorf("replay of entry %d: %w", entry.Seq, err)
			}
		}
	}
	return nil
}

// write writes one entry and closes the client.
func (v *walReplayView) write(ctx context.Context, c *client.Client, entry entryView) error {
	rows := make([]client.Row, len(entry.Rows))
	for i, r := range entry.Rows {
		op, ok := envelope.ParseOp(r.Op)
		if !ok || r.Table == "" {
			return fmt.Errorf("%w: row %d is of table %d (%q), operation %q", exit.ErrUsage, i, r.ID, r.Table, r.Op)
		}
		rows[i] = client.Row{Table: r.Table, Op: op, Value: r.Row}
	}
	receipt, err := c.Write(ctx, rows...)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
	defer cancel()
	if err = errors.Join(err, c.Close(closing)); err != nil {
		return err
	}
	v.Entries++
	v.Rows += len(rows)
	if receipt.Duplicate {
		v.Duplicates++
	}
	return nil
}
