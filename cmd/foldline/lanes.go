package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/foldline/foldline/cmd/internal/run"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/objstore"
)

type lanesCmd struct {
	Count uint32 `arg:"" optional:"" help:"The new lane count; without it the present one is shown."`
	admin
}

// lanesView is the lane count of a graph and what a change of it waits for.
type lanesView struct {
	Graph      string   `json:"graph"`
	Lanes      uint32   `json:"lanes"`
	Generation uint32   `json:"generation"`
	Target     uint32   `json:"target,omitempty"` // of a change under way
	Waiting    []string `json:"waiting,omitempty"`
}

// Run changes the lane count of a running line, or goes on waiting for a change that an earlier call has begun.
func (c *lanesCmd) Run(ctx context.Context, e *env) error {
	if err := c.check(); err != nil {
		return err
	}
	store, s, err := e.graph(ctx)
	if err != nil {
		return err
	}
	if c.Count > 0 {
		if s, err = c.change(ctx, e, store, s.Graph); err != nil {
			return err
		}
	}
	v := lanesView{Graph: s.Graph, Lanes: s.LaneCount, Generation: s.LaneGeneration, Target: s.LaneTarget, Waiting: run.LanesWaitedFor(s)}
	if c.JSON {
		return writeJSON(e.stdout, v)
	}
	line := fmt.Sprintf("graph %s has %d lanes, generation %d", v.Graph, v.Lanes, v.Generation)
	if v.Target > 0 {
		line += fmt.Sprintf("; they are being changed to %d: %s", v.Target, strings.Join(append(v.Waiting, "the folder makes the change when all are drained"), "; "))
	}
	_, err = fmt.Fprintln(e.stdout, line)
	return err
}

func (c *lanesCmd) change(ctx context.Context, e *env, store objstore.Store, graph string) (*heads.Snapshot, error) {
	nc, subjects, err := e.dial(ctx, graph)
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	return run.LaneChange{Conn: nc, Subjects: subjects, Store: store, Count: c.Count, Timeout: c.Timeout}.Run(ctx)
}
