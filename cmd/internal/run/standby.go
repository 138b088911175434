package run

import (
	"context"

	"github.com/nats-io/nats.go"

	"github.com/foldline/foldline/fold"
	"github.com/foldline/foldline/fold/keyindex"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
)

// standby is a fold.Standby that runs. Its methods take a nil one.
type standby struct {
	follower *fold.Standby
	sub      *nats.Subscription
	stop     context.CancelFunc
	ended    chan struct{}
}

// openIndex opens the key index when there is a directory for it and it is not open.
func (f *folder) openIndex() (err error) {
	if dir := f.cfg.Fold.IndexDir; dir != "" && f.index == nil {
		f.index, err = keyindex.Open(keyindex.Options{Dir: dir, Logger: f.log})
	}
	return err
}

// standBy begins to follow the heads. A standby without an index has nothing to keep; one whose directory the active folder of the same machine
// has open takes it over with the graph.
func (f *folder) standBy(ctx context.Context) *standby {
	if err := f.openIndex(); err != nil || f.index == nil {
		if err != nil {
			f.log.Warn("standing by without following the heads: a takeover has to catch its key index up", "error", err)
		}
		return nil
	}
	follower, err := fold.NewStandby(fold.StandbyOptions{Store: f.store, Root: graphRoot, Index: f.index, Interval: f.cfg.Fold.Interval,
		Logger: f.log, Meter: f.deps.Telemetry.Meter("fold")})
	if err != nil {
		f.log.Warn("standing by without following the heads", "error", err)
		return nil
	}
	s := &standby{follower: follower, ended: make(chan struct{})}
	if s.sub, err = f.nc.Subscribe(f.subjects.Published(), func(*nats.Msg) { follower.Trigger() }); err != nil {
		f.log.Warn("published events are not heard; the standby polls", "error", err)
	}
	ctx, s.stop = context.WithCancel(ctx)
	go func() {
		defer close(s.ended)
		_ = follower.Run(ctx) // it returns none
	}()
	return s
}

// retire lets it begin with nothing any more; what it reads now it finishes beside the claim.
func (s *standby) retire() {
	if s == nil {
		return
	}
	s.follower.Retire()
	if s.sub != nil {
		_ = s.sub.Unsubscribe() // the connection goes with the process
	}
}

// tables are the versions that it has read, for the folder that comes.
func (s *standby) tables() map[heads.TableID]*lance.Table {
	if s == nil {
		return nil
	}
	return s.follower.Tables()
}

// wait ends it.
func (s *standby) wait() {
	if s == nil {
		return
	}
	s.stop()
	<-s.ended
}
