package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/envelope"
	"github.com/foldline/foldline/wal"
)

// laneAnswerLimit is how long a lane may take to answer a status request.
const laneAnswerLimit = 2 * time.Second

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
	Lanes     []laneView `json:"lanes"`
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
	if v.Lanes, err = e.lanes(ctx, s); err != nil {
		return err
	}
	if c.JSON {
		err = writeJSON(e.stdout, v)
	} else {
		err = v.print(e)
	}
	for _, l := range v.Lanes {
		if l.State != laneReady {
			return errors.Join(err, errLanes)
		}
	}
	return err
}

func newStatusView(s *heads.Snapshot) statusView {
	v := statusView{Graph: s.Graph, Version: s.Version, Fold: s.Fold, Published: s.Commit.CreatedAt.UTC()}
	for _, t := range s.Tables {
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

// lanes asks the owner of every lane; a lane without one is a line of the answer, not an error.
func (e *env) lanes(ctx context.Context, s *heads.Snapshot) ([]laneView, error) {
	subjects, err := envelope.NewSubjects(e.cfg.Prefix, s.Graph)
	if err != nil {
		return nil, err
	}
	nc, unreachable := e.connect(ctx)
	if unreachable == nil {
		defer nc.Close()
	}
	views := make([]laneView, s.LaneCount)
	for lane := range s.LaneCount {
		v := laneView{Lane: lane, State: laneUnreachable}
		if unreachable != nil {
			v.Fault = unreachable.Error()
		} else {
			v.ask(ctx, nc, subjects, s)
		}
		views[lane] = v
	}
	return views, nil
}

func (v *laneView) ask(ctx context.Context, nc *nats.Conn, subjects envelope.Subjects, s *heads.Snapshot) {
	ctx, cancel := context.WithTimeout(ctx, laneAnswerLimit)
	defer cancel()
	remote := wal.NewRemote(nc, wal.ReadSubjects{Read: subjects.LaneRead(v.Lane), Status: subjects.LaneStatus(v.Lane)}, wal.RemoteOptions{})
	status, err := remote.Status(ctx)
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
	p.linef("%d tables  %d rows  %d rejects\n", v.Tables, v.Rows, v.Rejects)
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
