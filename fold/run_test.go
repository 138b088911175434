package fold

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/testkit"
	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/publisher"
	"github.com/foldline/foldline/wal"
)

// failing answers Refresh with one error after the other, then with an empty
// graph; what is done with an error is all that these tests ask.
type failing struct {
	Publisher
	errs      []error
	refreshes chan struct{}
}

func (f *failing) Refresh(context.Context) (*heads.Snapshot, error) {
	select {
	case f.refreshes <- struct{}{}:
	default:
	}
	if len(f.errs) == 0 {
		return &heads.Snapshot{}, nil
	}
	err := f.errs[0]
	f.errs = f.errs[1:]
	return nil, err
}

func failingFolder(t *testing.T, o Options, errs ...error) (*Folder, *failing) {
	t.Helper()
	p := &failing{errs: errs, refreshes: make(chan struct{}, 100)}
	o.Publisher, o.Store, o.Lanes = p, objstore.NewMemory(), func(uint32) wal.Source { return nil }
	if o.Interval == 0 {
		o.Interval = time.Millisecond
	}
	f, err := New(o)
	require.NoError(t, err)
	return f, p
}

func TestRunStopsWhenFenced(t *testing.T) {
	f, _ := failingFolder(t, Options{}, publisher.ErrFenced)
	require.ErrorIs(t, f.Run(t.Context()), ErrFenced)
}

func TestRunStopsOnDamage(t *testing.T) {
	f, _ := failingFolder(t, Options{}, heads.ErrCorrupt)
	require.ErrorIs(t, f.Run(t.Context()), heads.ErrCorrupt)
}

func TestRunTriesAgain(t *testing.T) {
	var text bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	f, p := failingFolder(t, Options{Logger: slog.New(slog.NewTextHandler(&text, nil))}, errors.New("first"), nil, errors.New("second"))
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	for range 6 {
		testkit.Receive(t, "another refresh", p.refreshes)
	}
	cancel()
	require.NoError(t, testkit.Receive(t, "the end of Run", ended))
	require.Contains(t, text.String(), "fold failed, trying again")
}

// TestRunClaimsAgain: a publisher that an error used up is replaced, and a claim
// that another folder won ends the run.
func TestRunClaimsAgain(t *testing.T) {
	next := &failing{refreshes: make(chan struct{}, 100)}
	claims := make(chan struct{}, 10)
	f, _ := failingFolder(t, Options{Reclaim: func(context.Context) (Publisher, error) {
		claims <- struct{}{}
		if len(claims) == 1 {
			return nil, errors.New("store is away")
		}
		return next, nil
	}}, errors.New("lost answer"), publisher.ErrUsedUp, publisher.ErrUsedUp, publisher.ErrUsedUp)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	testkit.Receive(t, "a refresh of the new publisher", next.refreshes)
	require.Len(t, claims, 2)
	cancel()
	require.NoError(t, testkit.Receive(t, "the end of Run", ended))

	f, _ = failingFolder(t, Options{Reclaim: func(context.Context) (Publisher, error) { return nil, publisher.ErrFenced }},
		errors.New("lost answer"), publisher.ErrUsedUp)
	require.ErrorIs(t, f.Run(t.Context()), ErrFenced)
}

func TestRunWithoutReclaimReturnsTheError(t *testing.T) {
	f, _ := failingFolder(t, Options{}, errors.New("lost answer"), publisher.ErrUsedUp)
	require.ErrorContains(t, f.Run(t.Context()), "lost answer")
}

func TestTriggerFoldsBeforeItsTime(t *testing.T) {
	f, p := failingFolder(t, Options{Interval: time.Hour})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	testkit.Receive(t, "the first fold", p.refreshes)
	f.Trigger()
	f.Trigger()
	testkit.Receive(t, "the fold that was asked for", p.refreshes)
	cancel()
	require.NoError(t, testkit.Receive(t, "the end of Run", ended))
}

// TestRunFolds is the real thing: rows that arrive while it runs are visible
// soon, and a backlog above the bounds does not wait for the interval.
func TestRunFolds(t *testing.T) {
	w := newWorld(t, objstore.NewMemory(), 1, noteTable("node:T"))
	defer w.close()
	w.opts.Interval, w.opts.MaxRows = 400*time.Millisecond, 2
	published := make(chan struct{}, 100)
	w.opts.Notify = func(context.Context, *publisher.Published) { published <- struct{}{} }
	w.claim(w.store)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.folder.Run(ctx) }()
	m := newModel()
	for i := range 5 {
		rows := []row{upsert("k", i), upsert(i, i), remove(i - 1)}
		m.apply("node:T", rows)
		w.write("node:T", rows...)
	}
	testkit.WaitFor(t, "all rows in the heads", func() bool { return len(published) > 0 && len(w.scan("node:T")) == len(m.lines("node:T")) })
	cancel()
	require.NoError(t, testkit.Receive(t, "the end of Run", ended))
	w.fold()
	require.Equal(t, m.lines("node:T"), w.scan("node:T"))
}

func TestOptions(t *testing.T) {
	_, err := New(Options{MaxBytes: 2 << 30, Interval: -1, AdoptInterval: -1, Parallel: -1, MaxRows: -1})
	require.ErrorIs(t, err, ErrInvalid)
	for _, part := range []string{"Publisher", "Store", "Lanes", "MaxBytes", "Interval must", "AdoptInterval", "Parallel", "MaxRows"} {
		require.ErrorContains(t, err, part)
	}
}
