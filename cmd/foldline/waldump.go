package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/rowjson"
	"github.com/foldline/foldline/wal"
)

type walDumpCmd struct {
	Target walTarget `embed:""`
	Rows   bool      `help:"Print the rows too, as lines of the write subject have them."`
	After  uint64    `default:"0" help:"Print entries above this sequence only."`
	// Unfolded leaves out what the heads have.
	Unfolded bool  `help:"Print only entries above the published cut of the log's incarnation."`
	Limit    limit `default:"0" help:"Entries to print; 0 for all."`
	JSON     bool  `help:"The default: one JSON object a line."`
}

// entryView is the JSON of an entry. Rows stand table by table, in lane order within each.
type entryView struct {
	Seq    wal.Seq          `json:"seq,string"`
	Time   time.Time        `json:"time"`
	MsgID  string           `json:"msg_id,omitempty"`
	Trace  string           `json:"trace,omitempty"`
	Tables []entryTableView `json:"tables"`
	Rows   []entryRowView   `json:"rows,omitempty"`
}

// entryTableView counts an entry's rows of one table by operation. The name is left out when the heads do not tell it.
type entryTableView struct {
	ID    wal.TableID    `json:"id"`
	Table string         `json:"table,omitempty"`
	Ops   map[string]int `json:"ops"`
}

type entryRowView struct {
	ID    wal.TableID     `json:"id"`
	Table string          `json:"table,omitempty"`
	Op    string          `json:"op"`
	Row   json.RawMessage `json:"row"`
}

func (c *walDumpCmd) Run(ctx context.Context, e *env) error {
	return c.Target.inspect(ctx, e, func(log *inspected, s wal.Status) error {
		out := bufio.NewWriter(e.stdout)
		d := &dumper{cmd: c, out: out}
		log.readHeads(ctx, e)
		if log.heads != nil && log.heads.Graph == s.Graph {
			d.heads = log.heads
		}
		if c.Unfolded {
			if d.heads == nil {
				return fmt.Errorf("%w: the heads of graph %q, which tell what is folded", heads.ErrNoGraph, s.Graph)
			}
			cut, _ := d.heads.Cut(s.Lane, s.Incarnation)
			c.After = max(c.After, cut.Through)
		}
		for b, err := range unreleased(ctx, log, s, wal.Seq(c.After)) {
			if err != nil {
				return errors.Join(fmt.Errorf("dump lane %d: %w", s.Lane, err), out.Flush())
			}
			done, err := d.print(b)
			if err != nil {
				return fmt.Errorf("dump lane %d: %w", s.Lane, err)
			}
			if done {
				break
			}
		}
		return out.Flush()
	})
}

// unreleased yields what a log holds above a sequence and up to its synced-through mark. Its owner may release while it is read;
// what is released then is left out.
func unreleased(ctx context.Context, log wal.Source, s wal.Status, above wal.Seq) iter.Seq2[*wal.Batch, error] {
	return func(yield func(*wal.Batch, error) bool) {
		end, after := s.SyncedThrough, max(s.ReleasedThrough, above)
		for after < end {
			req := wal.ReadRequest{Incarnation: s.Incarnation, Epoch: s.Epoch, After: after, Through: end, Inside: true}
			last, err := readUntilReleased(ctx, log, req, yield)
			if err == nil {
				return
			}
			if after, err = releasedAbove(ctx, log, last, err); err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// readUntilReleased yields what a request reads and the error that ends it, except that its range was released, which
// it returns with the last sequence that was read.
func readUntilReleased(ctx context.Context, log wal.Source, req wal.ReadRequest, yield func(*wal.Batch, error) bool) (last wal.Seq, err error) {
	last = req.After
	for b, err := range log.Read(ctx, req) {
		if errors.Is(err, wal.ErrReleased) {
			return last, err
		}
		if err == nil {
			last = b.Last
		}
		if !yield(b, err) || err != nil {
			return last, nil
		}
	}
	return last, nil
}

// releasedAbove is the released mark, which has to be above last, or else the reader's error stands.
func releasedAbove(ctx context.Context, log wal.Source, last wal.Seq, cause error) (wal.Seq, error) {
	s, err := log.Status(ctx)
	if err == nil && s.ReleasedThrough <= last {
		err = cause
	}
	return s.ReleasedThrough, err
}

// dumper prints entries.
type dumper struct {
	cmd     *walDumpCmd
	heads   *heads.Snapshot
	out     *bufio.Writer
	printed int64
}

// print writes the wanted entries of a batch and releases it.
func (d *dumper) print(b *wal.Batch) (done bool, err error) {
	defer b.Release()
	if uint64(b.Last) <= d.cmd.After {
		return false, nil
	}
	views, err := d.views(b)
	if err != nil {
		return false, err
	}
	for _, v := range views {
		if uint64(v.Seq) <= d.cmd.After {
			continue
		}
		if err := writeJSON(d.out, v); err != nil {
			return false, err
		}
		if d.printed++; d.printed == int64(d.cmd.Limit) {
			return true, nil
		}
	}
	return false, nil
}

func (d *dumper) views(b *wal.Batch) ([]entryView, error) {
	views := make([]entryView, len(b.Entries))
	for i, e := range b.Entries {
		views[i] = entryView{Seq: e.Seq, Time: b.Time.UTC(), MsgID: e.MsgID, Trace: e.Trace, Tables: []entryTableView{}}
	}
	for i := range b.Tables {
		if err := d.addTable(views, &b.Tables[i]); err != nil {
			return nil, err
		}
	}
	return views, nil
}

func (d *dumper) addTable(views []entryView, t *wal.BatchTable) error {
	name, keys := d.tableName(t.Table), keyColumns(t.Record.Schema())
	for row, entry := range t.Entry {
		v, op := &views[entry], t.Ops[row]
		if n := len(v.Tables); n == 0 || v.Tables[n-1].ID != t.Table {
			v.Tables = append(v.Tables, entryTableView{ID: t.Table, Table: name, Ops: map[string]int{}})
		}
		v.Tables[len(v.Tables)-1].Ops[op.String()]++
		if !d.cmd.Rows {
			continue
		}
		var columns []int // all of them
		if op == wal.OpDelete {
			columns = keys
		}
		text, err := rowjson.AppendColumns(nil, t.Record, columns, row)
		if err != nil {
			return fmt.Errorf("entry %d: %w", v.Seq, err)
		}
		v.Rows = append(v.Rows, entryRowView{ID: t.Table, Table: name, Op: op.String(), Row: text})
	}
	return nil
}

func (d *dumper) tableName(id wal.TableID) string {
	if d.heads == nil {
		return ""
	}
	t, _ := d.heads.TableByID(heads.TableID(id))
	return t.Key
}

// keyColumns are the columns a delete carries: in a log, those that cannot be null.
func keyColumns(s *arrow.Schema) (columns []int) {
	for i, f := range s.Fields() {
		if !f.Nullable {
			columns = append(columns, i)
		}
	}
	return columns
}
