package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/foldline/foldline/cmd/internal/run"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/wal"
)

// walCmd looks into one lane's log.
type walCmd struct {
	Status walStatusCmd `cmd:"" help:"Show whose log it is, its marks and what it holds. Exit code 5 when its owner takes no writes."`
	Dump   walDumpCmd   `cmd:"" help:"Print the entries that are not released, one JSON object a line."`
	Replay walReplayCmd `cmd:"" help:"Write again what the log of a closed incarnation holds above its cut: a disk that was given up for lost and is found. It overwrites newer rows."`
	Verify walVerifyCmd `cmd:"" help:"Check the log against its invariants. Exit code 6 when one is broken."`
}

// walTarget says which log is looked at.
type walTarget struct {
	Dir string `help:"Directory of a stopped log, which is only read; without it the owner of --lane is asked through NATS." placeholder:"DIR"`
}

// The ways a log is looked at.
const (
	walServed  = "owner"
	walStopped = "directory"
)

// inspected is the log of a running owner, or of a stopped directory.
type inspected struct {
	wal.Reader
	from  string
	log   *wal.Log        // nil when the owner is asked
	heads *heads.Snapshot // of the graph at the root; nil when they were not read
	close func() error
}

// readHeads reads the heads unless they are there. That they cannot be read costs only the names of tables: a log has to
// be open to inspection when its graph is gone.
func (l *inspected) readHeads(ctx context.Context, e *env) {
	if l.heads != nil {
		return
	}
	limited, cancel := context.WithTimeout(ctx, run.LaneAnswerLimit)
	defer cancel()
	if _, snapshot, err := e.graph(limited); err == nil {
		l.heads = snapshot
	}
}

// open opens the directory, which asks for no heads, or reaches the owner, whose subjects the graph's name is part of.
func (t walTarget) open(ctx context.Context, e *env) (*inspected, error) {
	if t.Dir != "" {
		log, err := wal.OpenReadOnly(ctx, t.Dir, nil)
		if err != nil {
			return nil, fmt.Errorf("wal %s: %w", t.Dir, err)
		}
		return &inspected{Reader: log, from: walStopped, log: log, close: log.Close}, nil
	}
	l := &inspected{from: walServed}
	l.readHeads(ctx, e)
	graph := e.cfg.Graph
	if l.heads != nil {
		graph = l.heads.Graph
	}
	nc, subjects, err := e.dial(ctx, graph)
	if err != nil {
		return nil, err
	}
	lane := e.cfg.Lane
	l.Reader = wal.NewRemote(nc, wal.ReadSubjects{Read: subjects.LaneRead(lane), Status: subjects.LaneStatus(lane)}, wal.RemoteOptions{})
	l.close = func() error { nc.Close(); return nil }
	return l, nil
}

// inspect opens the log, asks for its status, does the work and closes it.
func (t walTarget) inspect(ctx context.Context, e *env, work func(*inspected, wal.Status) error) (err error) {
	log, err := t.open(ctx, e)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.close()) }()
	status, err := log.Status(ctx)
	if err != nil {
		return fmt.Errorf("lane %d: %w", e.cfg.Lane, err)
	}
	return work(log, status)
}

type walStatusCmd struct {
	Target walTarget `embed:""`
	JSON   bool      `help:"One JSON object."`
}

type walStatusView struct {
	From string `json:"from"`
	wal.Status
}

func (c *walStatusCmd) Run(ctx context.Context, e *env) error {
	return c.Target.inspect(ctx, e, func(log *inspected, s wal.Status) error {
		if log.log != nil {
			s.Fault = "" // that it was opened to be read only
		}
		v := walStatusView{From: log.from, Status: s}
		var err error
		if c.JSON {
			err = writeJSON(e.stdout, v)
		} else {
			err = v.print(e)
		}
		if log.log == nil && !s.Ready {
			err = errors.Join(err, fmt.Errorf("lane %d: %w: %s", s.Lane, wal.ErrNotReady, s.Fault))
		}
		return err
	})
}

func (v *walStatusView) print(e *env) error {
	p := newPrinter(e.stdout)
	p.linef("graph %s  lane %d  incarnation %s  epoch %d", v.Graph, v.Lane, v.Incarnation, v.Epoch)
	p.linef("from\t%s", v.From)
	p.linef("ready\t%t", v.Ready)
	p.linef("fault\t%s", v.Fault)
	p.linef("synced through\t%d", v.SyncedThrough)
	p.linef("released through\t%d", v.ReleasedThrough)
	if !v.SyncedAt.IsZero() {
		p.linef("synced at\t%s", v.SyncedAt.UTC().Format(time.RFC3339Nano))
	}
	p.linef("unreleased\t%d entries, %d rows, %d bytes", v.Entries, v.Rows, v.Bytes)
	p.linef("syncs\t%d", v.Syncs)
	if !v.DedupeSince.IsZero() {
		p.linef("message ids known since\t%s", v.DedupeSince.UTC().Format(time.RFC3339Nano))
	}
	if v.FreeBytes >= 0 {
		p.linef("free on disk\t%d bytes", v.FreeBytes)
	}
	return p.flush()
}

type walVerifyCmd struct {
	Target walTarget `embed:""`
	JSON   bool      `help:"One JSON object."`
}

// walReportView is the JSON of verify. Schemas that no entry above the released mark names are checked in a stopped directory only.
type walReportView struct {
	From            string   `json:"from"`
	Graph           string   `json:"graph"`
	Lane            uint32   `json:"lane"`
	Incarnation     string   `json:"incarnation"`
	ReleasedThrough wal.Seq  `json:"released_through,string"`
	First           wal.Seq  `json:"first,string"`
	Last            wal.Seq  `json:"last,string"`
	Values          int64    `json:"values"`
	Entries         int64    `json:"entries"`
	Rows            int64    `json:"rows"`
	Bytes           int64    `json:"bytes"`
	Schemas         int      `json:"schemas"`
	DedupeGroups    int      `json:"dedupe_groups"`
	DedupeRecords   int      `json:"dedupe_records"`
	ImportedGroups  int      `json:"imported_groups"`
	ImportedRecords int      `json:"imported_records"`
	OK              bool     `json:"ok"`
	Problems        []string `json:"problems"`
	More            int      `json:"more,omitempty"`
}

func (c *walVerifyCmd) Run(ctx context.Context, e *env) error {
	return c.Target.inspect(ctx, e, func(log *inspected, s wal.Status) error {
		var r wal.Report
		var err error
		if log.log != nil {
			r, err = log.log.Verify(ctx)
		} else {
			r, err = wal.VerifySource(ctx, log)
		}
		if err != nil {
			return fmt.Errorf("verify lane %d: %w", s.Lane, err)
		}
		v := newWALReportView(log, s, r)
		if c.JSON {
			err = writeJSON(e.stdout, v)
		} else {
			err = v.print(e)
		}
		if !v.OK {
			err = errors.Join(err, fmt.Errorf("verify lane %d: %w: problems: %d", s.Lane, wal.ErrCorrupt, len(v.Problems)+v.More))
		}
		return err
	})
}

func newWALReportView(log *inspected, s wal.Status, r wal.Report) walReportView {
	return walReportView{
		From: log.from, Graph: s.Graph, Lane: s.Lane, Incarnation: s.Incarnation, ReleasedThrough: r.Released, First: r.First, Last: r.Last,
		Values: r.Values, Entries: r.Entries, Rows: r.Rows, Bytes: r.Bytes, Schemas: r.Schemas, DedupeGroups: r.DedupeGroups,
		DedupeRecords: r.DedupeRecords, ImportedGroups: r.ImportedGroups, ImportedRecords: r.ImportedRecords, OK: r.OK(), Problems: append([]string{}, r.Problems...), More: r.More,
	}
}

func (v *walReportView) print(e *env) error {
	p := newPrinter(e.stdout)
	p.linef("graph %s  lane %d  incarnation %s  from %s", v.Graph, v.Lane, v.Incarnation, v.From)
	p.linef("%d values  %d entries  %d rows  %d bytes  above %d", v.Values, v.Entries, v.Rows, v.Bytes, v.ReleasedThrough)
	p.linef("%d schemas  %d dedupe groups  %d dedupe records", v.Schemas, v.DedupeGroups, v.DedupeRecords)
	if v.ImportedGroups > 0 {
		p.linef("%d imported groups  %d imported records", v.ImportedGroups, v.ImportedRecords)
	}
	for _, problem := range v.Problems {
		p.linef("problem: %s", problem)
	}
	if v.More > 0 {
		p.linef("and %d more problems", v.More)
	}
	if v.OK {
		p.linef("clean")
	}
	return p.flush()
}
