package bench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"github.com/foldline/foldline/fold"
	"github.com/foldline/foldline/fold/keyindex"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/envelope"
	"github.com/foldline/foldline/internal/ingest"
	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/publisher"
	"github.com/foldline/foldline/wal"
)

// graphName is the graph of every measurement.
const graphName = "bench"

// Line is the whole of Foldline in this process, each part reached as in
// production: producers and the folder come through NATS over TCP, the log and
// the tables are on disk.
type Line struct {
	Subjects  envelope.Subjects
	Log       *wal.Log
	Store     objstore.Store
	Publisher *publisher.Publisher
	Tables    []string

	server   *server.Server
	producer *nats.Conn
	ingest   *nats.Conn
	folder   *fold.Folder
	index    *keyindex.Index
	g        *errgroup.Group
	stop     context.CancelFunc

	mu      sync.Mutex
	through wal.Seq       // published
	visible time.Time     // of the last publish
	moved   chan struct{} // closed and replaced when through rises
}

// LineConfig says what a line is made of.
type LineConfig struct {
	Dir    string
	Tables int // tables node:T0, node:T1, … of id, n, v, payload
	// Store holds the graph; nil = a directory in Dir.
	Store objstore.Store
	// Wrap stands between the folder and its store, to count; nil = nothing.
	Wrap func(objstore.Store) objstore.Store
	// Fold starts the folder.
	Fold bool
	// Interval of folds; 0 = the default.
	Interval time.Duration
}

// columns of every table of a measurement: about 200 bytes of JSON a row.
func columns() []heads.Column {
	return []heads.Column{
		{Name: "id", Type: "string"}, {Name: "n", Type: "int64"}, {Name: "v", Type: "double", Nullable: true},
		{Name: "payload", Type: "string", Nullable: true},
	}
}

// StartLine builds the line and starts its parts.
func StartLine(ctx context.Context, c LineConfig) (l *Line, err error) {
	l = &Line{moved: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
		}
	}()
	if l.Subjects, err = envelope.NewSubjects("", graphName); err != nil {
		return l, err
	}
	if l.server, err = startNATS(filepath.Join(c.Dir, "nats"), false); err != nil {
		return l, err
	}
	if l.producer, err = connect(l.server); err != nil {
		return l, err
	}
	if l.ingest, err = connect(l.server); err != nil {
		return l, err
	}
	if l.Store = c.Store; l.Store == nil {
		if l.Store, err = objstore.OpenLocal(filepath.Join(c.Dir, "root")); err != nil {
			return l, err
		}
	}
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop = stop
	l.g, run = errgroup.WithContext(run)
	if err = l.startGraph(ctx, c); err != nil {
		return l, err
	}
	if err = l.startIngester(ctx, run, filepath.Join(c.Dir, "wal")); err != nil {
		return l, err
	}
	return l, l.startFolder(run, c)
}

func (l *Line) startGraph(ctx context.Context, c LineConfig) (err error) {
	if l.index, err = keyindex.Open(keyindex.Options{Dir: filepath.Join(c.Dir, "index")}); err != nil {
		return err
	}
	o := publisher.Options{Store: l.Store, Keys: l.index}
	if _, err = publisher.Init(ctx, o, publisher.InitSpec{Graph: graphName}); err != nil {
		return err
	}
	if c.Wrap != nil {
		o.Store = c.Wrap(l.Store)
	}
	if l.Publisher, err = publisher.Claim(ctx, o, "bench"); err != nil {
		return err
	}
	for i := range c.Tables {
		key := fmt.Sprintf("node:T%d", i)
		if _, err = l.Publisher.CreateTable(ctx, publisher.TableSpec{Key: key, Columns: columns()}); err != nil {
			return err
		}
		l.Tables = append(l.Tables, key)
	}
	return nil
}

func (l *Line) startIngester(ctx, run context.Context, dir string) (err error) {
	if l.Log, err = wal.Open(ctx, wal.Options{Dir: dir, Graph: graphName}); err != nil {
		return err
	}
	epoch, err := publisher.ClaimLane(ctx, publisher.Options{Store: l.Store}, publisher.LaneClaim{Incarnation: l.Log.Incarnation()})
	if err != nil {
		return err
	}
	if err = l.Log.Begin(wal.Epoch(epoch)); err != nil {
		return err
	}
	in, err := ingest.New(ingest.Options{Conn: l.ingest, Log: l.Log, Store: l.Store, Graph: graphName})
	if err != nil {
		return err
	}
	l.g.Go(func() error { return l.Log.Run(run) })
	l.g.Go(func() error { return wal.Serve(run, l.ingest, l.readSubjects(), l.Log) })
	l.g.Go(func() error { return in.Run(run) })
	for in.Ready() != nil {
		if err := pause(run, time.Millisecond); err != nil {
			return errors.Join(err, in.Ready())
		}
	}
	return nil
}

func (l *Line) readSubjects() wal.ReadSubjects {
	return wal.ReadSubjects{Read: l.Subjects.LaneRead(0), Status: l.Subjects.LaneStatus(0)}
}

// startFolder makes the folder, and runs it when the configuration says so.
func (l *Line) startFolder(run context.Context, c LineConfig) (err error) {
	store := l.Store
	if c.Wrap != nil {
		store = c.Wrap(l.Store)
	}
	remote := wal.NewRemote(l.ingest, l.readSubjects(), wal.RemoteOptions{})
	l.folder, err = fold.New(fold.Options{
		Publisher: l.Publisher, Store: store, Interval: c.Interval, Index: l.index,
		Lanes: func(uint32) wal.Source { return remote }, Notify: l.published,
	})
	if err == nil && c.Fold {
		l.g.Go(func() error { return l.folder.Run(run) })
	}
	return err
}

// FoldOnce folds once, in a line whose folder does not run by itself.
func (l *Line) FoldOnce(ctx context.Context) (fold.Report, error) { return l.folder.FoldOnce(ctx) }

// published tells waiters and ingesters.
func (l *Line) published(_ context.Context, p *publisher.Published) {
	event := envelope.Event{Graph: graphName, Commit: p.Commit.ID, Version: p.Snapshot.Version, Fold: p.Snapshot.Fold}
	for _, c := range p.Snapshot.Cuts {
		event.Cuts = append(event.Cuts, envelope.EventCut{Lane: c.Lane, Incarnation: c.Incarnation, Through: c.Through})
	}
	_ = l.ingest.Publish(l.Subjects.Published(), event.Encode()) // a hint: who misses it reads the heads
	l.mu.Lock()
	defer l.mu.Unlock()
	if c, ok := p.Snapshot.Cut(0, l.Log.Incarnation()); ok {
		l.through = wal.Seq(c.Through)
	}
	l.visible = time.Now()
	close(l.moved)
	l.moved = make(chan struct{})
}

// Visible is when the last publish was announced.
func (l *Line) Visible() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.visible
}

// WaitVisible waits until everything that is durable now is published.
func (l *Line) WaitVisible(ctx context.Context) error {
	st, err := l.Log.Status(ctx)
	if err != nil {
		return err
	}
	for {
		l.mu.Lock()
		through, moved := l.through, l.moved
		l.mu.Unlock()
		if through >= st.SyncedThrough {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Close stops the parts in the order of the flow.
func (l *Line) Close() error {
	var err error
	if l.stop != nil {
		l.stop()
		err = l.g.Wait()
	}
	if l.Log != nil {
		err = errors.Join(err, l.Log.Close())
	}
	if l.index != nil {
		err = errors.Join(err, l.index.Close())
	}
	for _, nc := range []*nats.Conn{l.producer, l.ingest} {
		if nc != nil {
			nc.Close()
		}
	}
	if l.server != nil {
		stopNATS(l.server)
	}
	return err
}
