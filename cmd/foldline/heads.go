package main

import (
	"context"
	"time"

	"github.com/foldline/foldline/cmd/internal/run"
	"github.com/foldline/foldline/heads"
)

type headsCmd struct {
	at
	JSON bool `help:"One JSON object."`
}

// headsView is the JSON of heads. Sequences are decimal strings, because they need more bits than a JSON number keeps.
type headsView struct {
	Graph       string      `json:"graph"`
	Version     uint64      `json:"version"`
	Commit      string      `json:"commit"`
	CreatedAt   time.Time   `json:"created_at"`
	Fold        uint64      `json:"fold"`
	FolderEpoch uint64      `json:"folder_epoch"`
	Folder      string      `json:"folder"`
	Lanes       uint32      `json:"lanes"`
	Tables      []tableView `json:"tables"`
	Cuts        []cutView   `json:"cuts"`
}

type tableView struct {
	Table       string   `json:"table"`
	ID          uint64   `json:"id"`
	Path        string   `json:"path"`
	Version     uint64   `json:"version"`
	Transaction string   `json:"transaction"`
	Rows        uint64   `json:"rows"`
	State       string   `json:"state"`
	Key         []string `json:"key"`
	Enrolled    bool     `json:"enrolled"`
	System      bool     `json:"system,omitempty"`
	// References are the tables whose keys columns of this one hold.
	References []run.Reference `json:"references,omitempty"`
	// Reason, Since and Until are of a table that takes no rows; Until is the end of a pause.
	Reason string     `json:"reason,omitempty"`
	Since  *time.Time `json:"since,omitempty"`
	Until  *time.Time `json:"until,omitempty"`
	// Repeated are the keys with more than one live row.
	Repeated *repeatedView `json:"duplicate_keys,omitempty"`
}

type cutView struct {
	Lane        uint32 `json:"lane"`
	Incarnation string `json:"incarnation"`
	Through     uint64 `json:"through,string"`
	Open        bool   `json:"open"`
}

func (c *headsCmd) Run(ctx context.Context, e *env) error {
	_, s, err := c.snapshot(ctx, e)
	if err != nil {
		return err
	}
	if c.JSON {
		return writeJSON(e.stdout, newHeadsView(s))
	}
	p := newPrinter(e.stdout)
	p.linef("graph %s  manifest version %d  commit %s  fold %d  folder epoch %d (%s)\n",
		s.Graph, s.Version, s.Commit.ID, s.Fold, s.FolderEpoch, s.FolderOwner)
	p.linef("TABLE\tVERSION\tROWS\tSTATE\tPATH")
	for _, h := range s.Tables {
		p.linef("%s\t%d\t%d\t%s\t%s", h.Key, h.Head.Version, h.Head.Rows, h.Head.State, h.Path)
	}
	p.linef("\nLANE\tINCARNATION\tCUT\tOPEN")
	for _, c := range s.Cuts {
		p.linef("%d\t%s\t%d\t%t", c.Lane, c.Incarnation, c.Through, c.Open)
	}
	return p.flush()
}

func newHeadsView(s *heads.Snapshot) headsView {
	v := headsView{
		Graph: s.Graph, Version: s.Version, Commit: s.Commit.ID, CreatedAt: s.Commit.CreatedAt.UTC(), Fold: s.Fold,
		FolderEpoch: s.FolderEpoch, Folder: s.FolderOwner, Lanes: s.LaneCount, Tables: []tableView{}, Cuts: newCutViews(s.Cuts),
	}
	for _, t := range s.Tables {
		view := tableView{
			Table: t.Key, ID: uint64(t.ID), Path: t.Path, Version: t.Head.Version, Transaction: t.Head.Transaction,
			Rows: t.Head.Rows, State: string(t.Head.State), Key: t.PrimaryKey, Enrolled: t.Enrolled, System: t.System,
		}
		for _, r := range t.References {
			target, _ := s.TableByID(r.Table)
			view.References = append(view.References, run.Reference{Columns: r.Columns, Table: target.Key})
		}
		if t.Head.State.Held() {
			held := newHeldView(t)
			view.Reason, view.Since, view.Until = held.Reason, &held.Since, held.Until
		}
		if t.Head.Duplicates.Keys > 0 {
			repeated := newRepeatedView(t)
			view.Repeated = &repeated
		}
		v.Tables = append(v.Tables, view)
	}
	return v
}

func newCutViews(cuts []heads.Cut) []cutView {
	views := []cutView{}
	for _, c := range cuts {
		views = append(views, cutView{Lane: c.Lane, Incarnation: c.Incarnation, Through: c.Through, Open: c.Open})
	}
	return views
}
