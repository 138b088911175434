package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/foldline/foldline/heads"
)

type logCmd struct {
	Limit limit `default:"20" help:"Commits to show; 0 for all."`
	JSON  bool  `help:"One JSON object a line."`
}

type commitView struct {
	Commit    string        `json:"commit"`
	Parent    string        `json:"parent,omitempty"`
	Version   uint64        `json:"version"`
	CreatedAt time.Time     `json:"created_at"`
	Kind      string        `json:"kind"`
	Fold      uint64        `json:"fold,omitempty"`
	Actor     string        `json:"actor,omitempty"`
	Tables    []versionView `json:"tables"`
	Cuts      []cutView     `json:"cuts"`
}

type versionView struct {
	Table   string `json:"table"`
	Version uint64 `json:"version"`
	Rows    uint64 `json:"rows"`
	State   string `json:"state"`
}

func (c *logCmd) Run(ctx context.Context, e *env) error {
	store, err := e.store(ctx)
	if err != nil {
		return err
	}
	commits, err := heads.Log(ctx, store, "", int(c.Limit))
	if err != nil {
		return fmt.Errorf("root %s: %w", e.root(), err)
	}
	if c.JSON {
		for _, g := range commits {
			if err := writeJSON(e.stdout, newCommitView(g)); err != nil {
				return err
			}
		}
		return nil
	}
	p := newPrinter(e.stdout)
	p.linef("VERSION\tCOMMIT\tCREATED\tKIND\tFOLD\tTABLES")
	for _, g := range commits {
		v := newCommitView(g)
		p.linef("%d\t%s\t%s\t%s\t%d\t%s", v.Version, v.Commit, v.CreatedAt.Format(time.RFC3339Nano), v.Kind, v.Fold, v.moved())
	}
	return p.flush()
}

func newCommitView(g heads.GraphCommit) commitView {
	v := commitView{
		Commit: g.ID, Parent: g.Parent, Version: g.Version, CreatedAt: g.CreatedAt.UTC(), Kind: g.Kind, Fold: g.Fold,
		Actor: g.Actor, Tables: []versionView{}, Cuts: newCutViews(g.Cuts),
	}
	for _, t := range g.Tables {
		v.Tables = append(v.Tables, versionView{Table: t.Key, Version: t.Version, Rows: t.Rows, State: string(t.State)})
	}
	return v
}

func (v commitView) moved() string {
	var moved []string
	for _, t := range v.Tables {
		moved = append(moved, fmt.Sprintf("%s@%d", t.Table, t.Version))
	}
	return strings.Join(moved, " ")
}
