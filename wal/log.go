package wal

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/cockroachdb/pebble/v2"
)

const maxGraphBytes = 256

// Log is the durable log of one lane, owned by one process at a time.
type Log struct {
	opts    Options
	id      identity
	db      *pebble.DB
	lock    io.Closer
	metrics *instruments
	fault   *fault
	armed   atomic.Bool // errors of the store's log stop it
	// readOnly is set by OpenReadOnly and never changes; marked is the mark it found.
	readOnly bool
	marked   Seq
	space    spaceGuard
	schemas  schemaCache

	// synced is the synced-through mark: the bound of every reader. The syncer
	// moves it, in order, after each sync.
	synced   atomic.Uint64
	released atomic.Uint64
	epoch    atomic.Uint64
	syncs    atomic.Uint64

	queue queue
	calls sync.Pool // of *appendCall

	// releasing serialises Release and guards ballast, which tells that the ballast is there.
	releasing sync.Mutex
	ballast   bool

	// mu guards the counts that belong to the marks.
	mu            sync.Mutex
	totalSynced   totals
	totalReleased totals
	syncedAt      int64 // log time of the newest synced value

	mark    *mark     // written by the syncer
	commit  committer // owned by Run's committing goroutine
	flights flights

	// dedupeSince is set before Begin; zero when nothing was lost.
	dedupeSince time.Time
	// lineage is set before Begin; nil when no predecessor was looked for.
	lineage *lineage

	closing sync.Once
	closed  atomic.Bool
}

// Incarnation is the ULID minted when the directory was created.
func (l *Log) Incarnation() string { return l.id.Incarnation }

// Begin admits entries under an epoch that the caller has claimed for the
// lane. The epoch must be above every one the log has used, else [ErrFenced].
// It returns when the dedupe window is loaded, which goes on since Open, or fails with why it could not be ([ErrCorrupt]).
// It may be called once for each open log.
func (l *Log) Begin(epoch Epoch) error {
	if err := l.commit.window.old.wait(); err != nil {
		return l.storeError(err)
	}
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	if l.readOnly {
		return wrapf(ErrNotReady, "wal: opened read-only")
	}
	used := max(Seq(l.synced.Load()).Epoch(), Epoch(l.epoch.Load()))
	if epoch == 0 || epoch > MaxEpoch {
		return wrapf(ErrInvalid, "wal: epoch %d", epoch)
	}
	if epoch <= used {
		return wrapf(ErrFenced, "wal: epoch %d, the log has used %d", epoch, used)
	}
	if l.epoch.Load() != 0 {
		return wrapf(ErrInvalid, "wal: epoch %d begun twice", epoch)
	}
	l.epoch.Store(uint64(epoch))
	l.opts.Logger.Info("wal epoch begun", "lane", l.id.Lane, "incarnation", l.id.Incarnation, "epoch", uint64(epoch))
	return nil
}

// Status implements [Source].
func (l *Log) Status(context.Context) (Status, error) {
	l.mu.Lock()
	unreleased := l.totalSynced.minus(l.totalReleased)
	syncedAt := l.syncedAt
	l.mu.Unlock()
	s := Status{
		Graph: l.id.Graph, Lane: l.id.Lane, Incarnation: l.id.Incarnation,
		Epoch:         Epoch(l.epoch.Load()),
		SyncedThrough: Seq(l.synced.Load()), ReleasedThrough: Seq(l.released.Load()),
		Entries: int64(unreleased.Entries), Rows: int64(unreleased.Rows), Bytes: int64(unreleased.Bytes),
		Syncs: l.syncs.Load(), DedupeSince: l.dedupeSince,
	}
	if l.lineage != nil {
		s.Predecessors = l.lineage.logs
	}
	if syncedAt != 0 {
		s.SyncedAt = time.UnixMicro(syncedAt)
	}
	now := l.opts.Clock()
	s.FreeBytes, _ = l.space.look(now)
	if err := l.admission(now); err != nil {
		s.Fault = err.Error()
	}
	s.Ready = s.Fault == ""
	return s, nil
}

// admission says why the log takes no entries, nil when it does.
func (l *Log) admission(now time.Time) error {
	if err := l.fault.get(); err != nil {
		return err
	}
	if l.closed.Load() {
		return ErrClosed
	}
	if l.readOnly {
		return wrapf(ErrNotReady, "wal: opened read-only")
	}
	if l.epoch.Load() == 0 {
		return wrapf(ErrNotReady, "wal: no epoch begun")
	}
	if l.isSealed() {
		return ErrSealed
	}
	if err := l.fault.storage(); err != nil {
		return err
	}
	return l.space.check(now)
}

// unreleasedBytes counts what is synced and not released.
func (l *Log) unreleasedBytes() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int64(l.totalSynced.Bytes - l.totalReleased.Bytes)
}

// Close ends the log; Run must have returned. A log whose storage failed stays
// locked until the process ends, because its engine cannot be ended safely;
// Close then gives the fault.
func (l *Log) Close() error {
	var err error
	l.closing.Do(func() {
		l.closed.Store(true)
		l.queue.stop()
		l.refuse(ErrClosed)
		err = l.closeStore()
	})
	return err
}

func (l *Log) closeStore() error {
	if err := l.metrics.gauges.Unregister(); err != nil {
		l.opts.Logger.Warn("wal gauges not unregistered", "error", err)
	}
	if l.fault.isStopped() {
		return l.fault.get()
	}
	l.armed.Store(false)
	l.commit.window.old.abandon()
	return errors.Join(l.mark.close(), l.db.Close(), l.lock.Close())
}

// schema gives a stored schema to a reader.
func (l *Log) schema(id SchemaID) (*arrow.Schema, error) {
	s, err := l.schemas.byID(id)
	if err != nil {
		return nil, err
	}
	return s.schema, nil
}
