package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/wal"
)

// openLog is a log that runs, to be filled without NATS.
type openLog struct {
	*wal.Log
	schema *arrow.Schema
	stop   context.CancelFunc
	ended  chan error
	next   int // number of the next row
}

func startLog(ctx context.Context, dir string) (*openLog, error) {
	schema, err := heads.ArrowSchema(columns())
	if err != nil {
		return nil, err
	}
	l, err := wal.Open(ctx, wal.Options{Dir: dir, Graph: graphName})
	if err != nil {
		return nil, err
	}
	if err := l.Begin(1); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	o := &openLog{Log: l, schema: schema, stop: stop, ended: make(chan error, 1)}
	go func() { o.ended <- l.Run(run) }()
	return o, nil
}

func (o *openLog) close() error {
	o.stop()
	return errors.Join(<-o.ended, o.Close())
}

// fill appends entries of rows rows until the unreleased bytes or the rows reach what is asked for, and waits for the last
// sync. With ids each entry has a message id.
func (o *openLog) fill(ctx context.Context, rows int, ids bool, enough func(wal.Status) bool) error {
	// Few calls are in flight: what waits for its sync is what takes memory.
	const callRows, calls = 6400, 4
	free := make(chan struct{}, calls)
	var failed atomic.Pointer[error]
	for failed.Load() == nil {
		st, err := o.Status(ctx)
		if err != nil {
			return err
		}
		if enough(st) {
			break
		}
		entries := o.entries(callRows, rows, ids)
		left := len(entries)
		free <- struct{}{}
		n, err := o.AppendAll(ctx, entries, func(_ int, results []wal.Result) {
			for i := range results {
				if err := results[i].Err; err != nil {
					failed.Store(&err)
				}
			}
			if left -= len(results); left == 0 {
				<-free
			}
		})
		entries[0].Rows[0].Record.Release()
		if err != nil {
			return fmt.Errorf("entry %d of %d: %w", n, len(entries), err)
		}
	}
	for range calls {
		free <- struct{}{}
	}
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// entries share one record.
func (o *openLog) entries(all, rows int, ids bool) []wal.Entry {
	rec := record(o.schema, o.next, all)
	entries := make([]wal.Entry, all/rows)
	for i := range entries {
		entries[i].Rows = []wal.Rows{{Table: 1, Record: rec, First: i * rows, Count: rows, Ops: []wal.Op{wal.OpUpsert}}}
		if ids {
			entries[i].MsgID = "message-" + strconv.Itoa(o.next+i*rows)
		}
	}
	o.next += all
	return entries
}
