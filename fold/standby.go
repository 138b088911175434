package fold

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"
	"golang.org/x/sync/errgroup"

	"github.com/foldline/foldline/fold/keyindex"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
)

const (
	// followParallel bounds the tables that a standby reads at once, and so its memory and its share of the store.
	followParallel = 4
	// defaultPoll is how often a standby that hears nothing looks at the heads: one LIST.
	defaultPoll = 5 * time.Second
)

// StandbyOptions are the components and settings of a Standby.
type StandbyOptions struct {
	// Store and Root are where the graph is, Index is what follows it; Store and Index are required.
	Store objstore.Store
	Root  string
	Index *keyindex.Index
	// Interval is the least time between two looks: publishes that are faster are followed together. Default 1 s.
	Interval time.Duration
	// Poll is the time after which a standby looks although nothing was announced. Default 5 s.
	Poll time.Duration
	// Logger and Meter: nil discards.
	Logger *slog.Logger
	Meter  metric.Meter
}

// Standby keeps a key index at the published versions while another folder is active, so that a failover costs the claim and
// not a scan of the tables. It only reads: per look one LIST, and when the heads have moved the heads, and of each table that has
// moved the manifest, the key columns of new data files and changed deletion files.
type Standby struct {
	o       StandbyOptions
	behind  metric.Int64Gauge
	trigger chan struct{}
	retired chan struct{}
	retire  sync.Once

	version uint64 // of the heads at the last look; Run's goroutine only

	mu     sync.Mutex
	tables map[heads.TableID]*lance.Table // that the index is at
	faults map[heads.TableID]string       // that were logged
}

// NewStandby makes a standby. It starts nothing.
func NewStandby(o StandbyOptions) (*Standby, error) {
	if o.Store == nil || o.Index == nil {
		return nil, fmt.Errorf("%w: a standby needs Store and Index", ErrInvalid)
	}
	if o.Interval <= 0 {
		o.Interval = defaultInterval
	}
	if o.Poll <= 0 {
		o.Poll = defaultPoll
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	behind, err := standbyGauge(o.Meter)
	if err != nil {
		return nil, fmt.Errorf("fold: instruments: %w", err)
	}
	return &Standby{o: o, behind: behind, trigger: make(chan struct{}, 1), retired: make(chan struct{}),
		tables: map[heads.TableID]*lance.Table{}, faults: map[heads.TableID]string{}}, nil
}

// Trigger tells that the heads may have moved. It never blocks, and may be called from any goroutine.
func (s *Standby) Trigger() {
	select {
	case s.trigger <- struct{}{}:
	default:
	}
}

// Retire lets Run begin with no further table, because this process becomes the folder: what it is reading is finished, and a
// fold that needs that table waits for it rather than begin again. It may be called from any goroutine.
func (s *Standby) Retire() { s.retire.Do(func() { close(s.retired) }) }

// Tables are the versions that the index is at, for the folder that this process becomes: a hint. It may be called from any goroutine.
func (s *Standby) Tables() map[heads.TableID]*lance.Table {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.tables)
}

// Run follows the heads until ctx ends or the standby retires, which are no errors. What cannot be read is logged once and tried
// again at the next look. It runs at most once.
func (s *Standby) Run(ctx context.Context) error {
	for !s.stopped(ctx) {
		if err := s.FollowOnce(ctx); err != nil && !s.stopped(ctx) {
			s.o.Logger.WarnContext(ctx, "standby cannot follow the heads", "error", err)
		}
		s.wait(ctx)
	}
	return nil
}

func (s *Standby) stopped(ctx context.Context) bool {
	select {
	case <-s.retired:
		return true
	default:
		return ctx.Err() != nil
	}
}

// wait returns when it is time for the next look: at the earliest after Interval.
func (s *Standby) wait(ctx context.Context) {
	least, poll := time.NewTimer(s.o.Interval), time.NewTimer(s.o.Poll)
	defer least.Stop()
	defer poll.Stop()
	trigger := (chan struct{})(nil) // not before least
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.retired:
			return
		case <-least.C:
			trigger = s.trigger
		case <-trigger:
			return
		case <-poll.C:
			return
		}
	}
}

// FollowOnce brings the index to the versions that the heads name now. A table that cannot be read does not stop the others, and is
// no error here.
func (s *Standby) FollowOnce(ctx context.Context) error {
	newest, err := lance.LatestVersion(ctx, s.o.Store, heads.Join(s.o.Root, heads.ManifestPath))
	if err != nil || newest == s.version {
		return err
	}
	snap, err := heads.Resolve(ctx, s.o.Store, s.o.Root)
	if err != nil {
		return err
	}
	var g errgroup.Group
	g.SetLimit(followParallel)
	failed := make([]error, len(snap.Tables))
	for i, t := range snap.Tables {
		if !t.Enrolled || t.System || t.Head.State == heads.StateTombstoned {
			s.forget(t.ID)
			continue
		}
		g.Go(func() error {
			if !s.stopped(ctx) {
				failed[i] = s.follow(ctx, snap, t)
				s.note(ctx, t, failed[i])
			}
			return nil
		})
	}
	_ = g.Wait() // the functions keep their errors themselves
	behind := 0
	for _, err := range failed {
		if err != nil {
			behind++
		}
	}
	s.behind.Record(ctx, int64(behind))
	if behind > 0 || s.stopped(ctx) {
		return nil // the next look does the rest
	}
	if s.version == 0 {
		s.o.Logger.InfoContext(ctx, "standby is warm: its key index follows the heads", "version", snap.Version, "tables", len(s.Tables()))
	}
	s.version = snap.Version
	return nil
}

// follow brings the index of one table to its head.
func (s *Standby) follow(ctx context.Context, snap *heads.Snapshot, t heads.Table) error {
	s.mu.Lock()
	at := s.tables[t.ID]
	s.mu.Unlock()
	if at != nil && at.Version() == t.Head.Version && at.TransactionUUID() == t.Head.Transaction {
		return nil
	}
	head, err := snap.OpenTable(ctx, s.o.Store, t.Key)
	if err != nil {
		return err
	}
	if err := s.o.Index.Follow(ctx, uint64(t.ID), head); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tables[t.ID] = head
	return nil
}

// note logs what keeps a table from being followed, once.
func (s *Standby) note(ctx context.Context, t heads.Table, err error) {
	text := ""
	if err != nil && ctx.Err() == nil && !errors.Is(err, lance.ErrNotFound) { // a version that retention took is not the head any more
		text = err.Error()
	}
	s.mu.Lock()
	was := s.faults[t.ID]
	s.faults[t.ID] = text
	s.mu.Unlock()
	if text != "" && text != was {
		s.o.Logger.WarnContext(ctx, "key index of the standby does not follow", "table", t.Key, "error", err)
	}
}

func (s *Standby) forget(id heads.TableID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tables, id)
	delete(s.faults, id)
}
