package feed

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/foldline/foldline/client"
	"github.com/foldline/foldline/heads"
)

// OnError says what a refused row leads to.
type OnError string

const (
	// Stop ends the feed with the first refused row.
	Stop OnError = "stop"
	// Skip reports refused rows and goes on with the others.
	Skip OnError = "skip"
)

// ErrRefused says that rows were refused while the others went through; each was reported.
var ErrRefused = errors.New("feed: rows were refused")

// pollEvery bounds how long a lost published event can keep a waiter asleep.
const pollEvery = 250 * time.Millisecond

// maxWaiting bounds the messages whose outcome is awaited.
const maxWaiting = 64

// Options configure a Feed.
type Options struct {
	// Client writes the rows; required.
	Client *client.Client
	// Resolve reads the heads. Nil means that the feed ends when everything is acked and waits for no publish.
	Resolve func(context.Context) (*heads.Snapshot, error)
	// Published wakes the feed when a publish was announced; nil means polling only.
	Published <-chan struct{}
	// Op is the operation of every row.
	Op client.Op
	// OnError is Stop or Skip; empty means Stop.
	OnError OnError
	// Report is told each refused row; it may be called from several goroutines. Nil reports nothing.
	Report func(*RowError)
	// Clock measures latencies; default time.Now.
	Clock func() time.Time
}

// Feed streams inputs. Make it with New.
type Feed struct {
	o       Options
	tracker *tracker
	busy    *keySet
}

// New returns a feed that has not begun.
func New(o Options) *Feed {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Report == nil {
		o.Report = func(*RowError) {}
	}
	return &Feed{o: o, tracker: newTracker(o.Clock), busy: newKeySet()}
}

// Progress is how far the rows have come.
func (f *Feed) Progress() Progress { return f.tracker.snapshot() }

// Latencies are the latencies so far.
func (f *Feed) Latencies() Latencies { return f.tracker.latencies() }

// Run sends the inputs one after another and returns when heads show every acked row (without Resolve: when all is acked). It fails with a *RowError under
// Stop, and with ErrRefused, after all else is visible, under Skip.
func (f *Feed) Run(ctx context.Context, inputs []Input) error {
	sent := make(chan struct{})
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer close(sent)
		return f.send(ctx, inputs)
	})
	if f.o.Resolve != nil {
		g.Go(func() error { return f.watch(ctx, sent) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if n := f.Progress().Refused; n > 0 {
		return fmt.Errorf("%w: %d of %d", ErrRefused, n, f.Progress().Sent)
	}
	return nil
}

// send returns when every message has its outcome.
func (f *Feed) send(ctx context.Context, inputs []Input) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxWaiting)
	for _, in := range inputs {
		if err := f.sendInput(ctx, g, in); err != nil {
			// An outcome that failed has cancelled the context and is the first cause.
			if cause := g.Wait(); cause != nil && !errors.Is(cause, context.Canceled) {
				return cause
			}
			return err
		}
	}
	return g.Wait()
}

func (f *Feed) sendInput(ctx context.Context, g *errgroup.Group, in Input) error {
	m := &message{input: in}
	flush := func() error {
		if len(m.rows) == 0 {
			return nil
		}
		err := f.start(ctx, g, m)
		m = &message{input: in}
		return err
	}
	row := func(text []byte, line int, key string) error {
		key = in.Table + "\x00" + key
		if m.full(len(text)) || f.busy.has(key) {
			if err := flush(); err != nil {
				return err
			}
		}
		if err := f.busy.wait(ctx, key); err != nil {
			return err
		}
		m.add(text, line, key)
		return nil
	}
	bad := func(e *RowError) error {
		f.tracker.sent(1)
		return f.refuse(e)
	}
	if err := read(in, row, bad); err != nil {
		return err
	}
	return flush()
}

// start hands a message to the client and leaves its outcome to a goroutine of the group.
func (f *Feed) start(ctx context.Context, g *errgroup.Group, m *message) error {
	f.busy.add(m.keys)
	f.tracker.sent(len(m.rows))
	since := f.o.Clock()
	pending, err := f.post(ctx, m)
	if err != nil {
		return err
	}
	g.Go(func() error {
		defer f.busy.remove(m.keys)
		return f.settle(ctx, m, pending, since)
	})
	return nil
}

func (f *Feed) post(ctx context.Context, m *message) (*client.Pending, error) {
	rows := make([]any, len(m.rows))
	for i, r := range m.rows {
		rows[i] = r
	}
	return f.o.Client.SendAsync(ctx, m.input.Table, f.o.Op, rows...)
}

// settle waits for the outcome; a message with a refused row is sent again without it.
func (f *Feed) settle(ctx context.Context, m *message, pending *client.Pending, since time.Time) error {
	for {
		receipt, err := pending.Receipt(ctx)
		if err == nil {
			f.tracker.acked(receipt, since)
			return nil
		}
		var refusal *client.Error
		if !errors.As(err, &refusal) || !errors.Is(err, client.ErrInvalid) || refusal.Row < 0 || refusal.Row >= len(m.rows) {
			return fmt.Errorf("%s:%d: %w", m.input.Name, m.lines[0], err)
		}
		if err := f.refuse(&RowError{Name: m.input.Name, Line: m.lines[refusal.Row], Err: err}); err != nil {
			return err
		}
		if m.without(refusal.Row); len(m.rows) == 0 {
			return nil
		}
		since = f.o.Clock()
		if pending, err = f.post(ctx, m); err != nil {
			return err
		}
	}
}

func (f *Feed) refuse(e *RowError) error {
	f.tracker.refused(1)
	if f.o.OnError != Skip {
		return e
	}
	f.o.Report(e)
	return nil
}

// watch reads the heads whenever a publish was announced, until everything sent has an outcome and is visible.
func (f *Feed) watch(ctx context.Context, sent <-chan struct{}) error {
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	done := sent
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-done:
			done = nil
		case <-f.o.Published:
		case <-poll.C:
		}
		if f.tracker.outstanding() {
			s, err := f.o.Resolve(ctx)
			if err != nil {
				return err
			}
			f.tracker.published(s.Cuts)
		}
		if done == nil && !f.tracker.outstanding() {
			return nil
		}
	}
}

// keySet is the keys of the messages whose outcome is open.
type keySet struct {
	mu    sync.Mutex
	count map[string]int
	freed chan struct{} // closed and replaced with each removal
}

func newKeySet() *keySet { return &keySet{count: map[string]int{}, freed: make(chan struct{})} }

func (s *keySet) has(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count[key] > 0
}

func (s *keySet) add(keys []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range keys {
		s.count[k]++
	}
}

func (s *keySet) remove(keys []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range keys {
		if s.count[k]--; s.count[k] == 0 {
			delete(s.count, k)
		}
	}
	close(s.freed)
	s.freed = make(chan struct{})
}

func (s *keySet) wait(ctx context.Context, key string) error {
	for {
		s.mu.Lock()
		busy, freed := s.count[key] > 0, s.freed
		s.mu.Unlock()
		if !busy {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-freed:
		}
	}
}
