package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/foldline/foldline/cmd/internal/run"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/envelope"
	"github.com/foldline/foldline/wal"
)

type statusCmd struct {
	JSON bool `help:"One JSON object."`
}

type statusView struct {
	Graph     string     `json:"graph"`
	Version   uint64     `json:"version"`
	Fold      uint64     `json:"fold"`
	Published time.Time  `json:"published"`
	Tables    int        `json:"tables"`
	Rows      uint64     `json:"rows"`
	Rejects   uint64     `json:"rejects"`
	Folder    folderView `json:"folder"`
	Held      []heldView `json:"held"` // tables that take no rows
	// Repeated are the tables with keys of more than one live row.
	Repeated []repeatedView `json:"duplicate_keys"`
	Lanes    []laneView     `json:"lanes"`
	// LaneTarget is the lane count that the graph is changing to, 0 when it is not.
	LaneTarget uint32 `json:"lane_target,omitempty"`
}

// The states of the folder as status tells them.
const (
	folderActive      = "active"
	folderNone        = "no folder"
	folderSilent      = "silent" // there is one, and it does not answer
	folderUnreachable = "unreachable"
)

// folderView is the active folder, or the last one that the heads know.
type folderView struct {
	State string `json:"state"`
	Fault string `json:"fault,omitempty"`
	Epoch uint64 `json:"epoch"`
	Owner string `json:"owner"`
	// PublishedAt is when this folder last published something, nil before that.
	PublishedAt *time.Time `json:"published_at,omitempty"`
	AgeSeconds  float64    `json:"age_seconds"` // of the newest graph commit
}

type heldView struct {
	Table  string     `json:"table"`
	State  string     `json:"state"`
	Reason string     `json:"reason"`
	Since  time.Time  `json:"since"`
	Until  *time.Time `json:"until,omitempty"`
}

// repeatedView says how many keys of a table have more than one live row. Stale: counted at an earlier version, or only some were.
type repeatedView struct {
	Table  string `json:"table"`
	Keys   uint64 `json:"keys"`
	Stale  bool   `json:"stale,omitempty"`
	Sample string `json:"sample,omitempty"` // some of the keys
}

// The states of a lane as status tells them.
const (
	laneReady       = "ready"
	laneNotReady    = "not_ready"
	laneUnknown     = "unknown_log" // the graph does not know the log that answers
	laneUnreachable = "unreachable"
)

type laneView struct {
	Lane  uint32 `json:"lane"`
	State string `json:"state"`
	Fault string `json:"fault,omitempty"`
	Cut   uint64 `json:"cut,string"`
	// Pending tells that the log holds synced entries above the published cut.
	Pending bool        `json:"pending"`
	Log     *wal.Status `json:"log,omitempty"`
}

var errLanes = fmt.Errorf("%w: not every lane serves", wal.ErrUnavailable)

func (c *statusCmd) Run(ctx context.Context, e *env) error {
	_, s, err := e.graph(ctx)
	if err != nil {
		return err
	}
	v := newStatusView(s)
	if err := v.askAll(ctx, e, s); err != nil {
		return err
	}
	if c.JSON {
		err = writeJSON(e.stdout, v)
	} else {
		err = v.print(e)
	}
	if v.Folder.State != folderActive {
		err = errors.Join(err, run.ErrNoFolder)
	}
	for _, l := range v.Lanes {
		if l.State != laneReady {
			return errors.Join(err, errLanes)
		}
	}
	return err
}

func newStatusView(s *heads.Snapshot) statusView {
	v := statusView{Graph: s.Graph, Version: s.Version, Fold: s.Fold, Published: s.Commit.CreatedAt.UTC(), Held: []heldView{}, Repeated: []repeatedView{}, LaneTarget: s.LaneTarget}
	v.Folder = folderView{Epoch: s.FolderEpoch, Owner: s.FolderOwner, AgeSeconds: time.Since(s.Commit.CreatedAt).Seconds()}
	for _, t := range s.Tables {
		if t.Head.State.Held() {
			v.Held = append(v.Held, newHeldView(t))
		}
		if t.Head.Duplicates.Keys > 0 {
			v.Repeated = append(v.Repeated, newRepeatedView(t))
		}
		switch {
		case t.Key == heads.RejectsKey:
			v.Rejects = t.Head.Rows
		case !t.System:
			v.Tables++
			v.Rows += t.Head.Rows
		}
	}
	return v
}

func newHeldView(t heads.Table) heldView {
	h := heldView{Table: t.Key, State: string(t.Head.State), Reason: t.Head.Hold.Reason, Since: t.Head.Hold.Since}
	if until := t.Head.Hold.Until; !until.IsZero() {
		h.Until = &until
	}
	return h
}

func newRepeatedView(t heads.Table) repeatedView {
	d := t.Head.Duplicates
	return repeatedView{Table: t.Key, Keys: d.Keys, Stale: d.Stale, Sample: d.Sample}
}

// askAll asks the folder and the owner of every lane; one that is not there is a line of the answer, not an error.
func (v *statusView) askAll(ctx context.Context, e *env, s *heads.Snapshot) error {
	subjects, err := envelope.NewSubjects(e.cfg.Prefix, s.Graph)
	if err != nil {
		return err
	}
	v.Lanes = make([]laneView, s.LaneCount)
	for lane := range s.LaneCount {
		v.Lanes[lane] = laneView{Lane: lane, State: laneUnreachable}
	}
	nc, err := e.connect(ctx)
	if err != nil {
		v.Folder.State, v.Folder.Fault = folderUnreachable, err.Error()
		for i := range v.Lanes {
			v.Lanes[i].Fault = err.Error()
		}
		return nil
	}
	defer nc.Close()
	v.Folder.ask(ctx, nc, subjects)
	for i := range v.Lanes {
		v.Lanes[i].ask(ctx, nc, subjects, s)
	}
	return nil
}

func (v *folderView) ask(ctx context.Context, nc *nats.Conn, subjects envelope.Subjects) {
	ctx, cancel := context.WithTimeout(ctx, run.LaneAnswerLimit)
	defer cancel()
	reply, err := run.Admin(ctx, nc, subjects, envelope.AdminStatus, envelope.AdminRequest{})
	switch {
	case err == nil:
		v.State, v.Epoch, v.Owner = folderActive, reply.Epoch, reply.Owner
		if !reply.PublishedAt.IsZero() {
			v.PublishedAt = &reply.PublishedAt
		}
	case errors.Is(err, run.ErrNoFolder):
		v.State = folderNone
	default:
		v.State, v.Fault = folderSilent, err.Error()
	}
}

func (v *laneView) ask(ctx context.Context, nc *nats.Conn, subjects envelope.Subjects, s *heads.Snapshot) {
	status, err := run.LaneStatus(ctx, nc, subjects, v.Lane)
	if err != nil {
		v.Fault = err.Error()
		return
	}
	v.Log = &status
	cut, known := s.Cut(v.Lane, status.Incarnation)
	v.Cut = cut.Through
	v.Pending = uint64(status.SyncedThrough) > cut.Through
	switch {
	case !known:
		v.State = laneUnknown
	case status.Fault != "" || !status.Ready:
		v.State, v.Fault = laneNotReady, status.Fault
	default:
		v.State = laneReady
	}
}

func (v *statusView) print(e *env) error {
	p := newPrinter(e.stdout)
	p.linef("graph %s  manifest version %d  fold %d  published %s", v.Graph, v.Version, v.Fold, v.Published.Format(time.RFC3339Nano))
	p.linef("%d tables  %d rows  %d rejects", v.Tables, v.Rows, v.Rejects)
	v.Folder.print(p)
	printHeld(p, v.Held)
	for _, r := range v.Repeated {
		p.linef("table %s is %s: %s\n", r.Table, heads.StateDuplicateKeys, heads.Duplicates{Keys: r.Keys, Stale: r.Stale, Sample: r.Sample})
	}
	if v.LaneTarget > 0 {
		p.linef("the lane count changes from %d to %d; foldline lanes tells what it waits for\n", len(v.Lanes), v.LaneTarget)
	}
	p.linef("LANE\tSTATE\tSYNCED\tCUT\tRELEASED\tENTRIES\tBYTES\tFAULT")
	for _, l := range v.Lanes {
		log := wal.Status{}
		if l.Log != nil {
			log = *l.Log
		}
		p.linef("%d\t%s\t%d\t%d\t%d\t%d\t%d\t%s", l.Lane, l.State, log.SyncedThrough, l.Cut, log.ReleasedThrough, log.Entries, log.Bytes, l.Fault)
	}
	return p.flush()
}

func (v *folderView) print(p *printer) {
	age := time.Duration(v.AgeSeconds * float64(time.Second)).Round(time.Second / 10)
	p.linef("folder %s  epoch %d  owner %s  newest commit %s ago  %s\n", v.State, v.Epoch, v.Owner, age, v.Fault)
}

// printHeld prints the tables that take no rows, and nothing when there are none.
func printHeld(p *printer, held []heldView) {
	if len(held) == 0 {
		return
	}
	p.linef("TABLE\tSTATE\tSINCE\tUNTIL\tREASON")
	for _, h := range held {
		until := "-"
		if h.Until != nil {
			until = h.Until.Format(time.RFC3339)
		}
		p.linef("%s\t%s\t%s\t%s\t%s", h.Table, h.State, h.Since.Format(time.RFC3339), until, h.Reason)
	}
	p.linef("")
}
