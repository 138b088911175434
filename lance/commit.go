package lance

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Attempt is what a check sees of one attempt.
type Attempt struct {
	// Number counts from 1.
	Number int
	// Latest is the version that ours would be put on top of.
	Latest *Table
	// Theirs are the commits since our read version, oldest first.
	Theirs []Committed
	// Ours is the transaction as it was planned.
	Ours *Transaction
}

// Committed is a commit of others.
type Committed struct {
	Version uint64
	// Tx is nil when the transaction is gone: cleaned up, or never written.
	Tx *Transaction
}

// Result is a commit that landed.
type Result struct {
	// Table is the version that the commit made.
	Table *Table
	// Newest is the newest version number seen after the commit: Table's own, or a later one of others.
	Newest uint64
	// Unbased: no version of the size of the one that ours was built on stands right below it. Either that one was cleaned up, or the
	// table was removed and another one made in its place, whose versions end there. Only told when ours is the newest.
	Unbased bool
}

// Commit makes the transaction the next version of the table. The first attempt assumes that t is the newest version; a lost
// race is followed by a LIST, the reading of the missed transactions, the conflict rules, and another attempt. Without rivals
// the cost is one conditional PUT and one LIST of two keys.
//
// ErrConflict: plan again on the newest version. ErrIncompatible: the table was changed so that the transaction makes no
// sense. ErrUnknownOutcome: it may have landed; look for the transaction's uuid. ErrUnsupported, ErrInvalid: nothing was
// done. Data files are never removed, whatever the outcome.
func (t *Table) Commit(ctx context.Context, tx *Transaction, o CommitOptions) (Result, error) {
	c, err := newCommitter(t, tx, o)
	if err == nil {
		var r Result
		if r, err = c.run(ctx); err == nil {
			return r, nil
		}
	}
	return Result{}, fmt.Errorf("commit %s %s to table %q: %w", tx.kind(), tx.UUID, t.root, err)
}

// committer is one call of Commit.
type committer struct {
	table  *Table
	tx     *Transaction
	o      CommitOptions
	theirs []Committed
	// planned is the version that tx was planned on, read when a rebase needs it.
	planned *Table
}

func newCommitter(t *Table, tx *Transaction, o CommitOptions) (*committer, error) {
	switch {
	case tx.Op == nil || tx.UUID == "":
		return nil, invalid("a transaction needs an operation and a uuid")
	case tx.ReadVersion > t.Version():
		return nil, invalid("the transaction was planned on version %d, after version %d", tx.ReadVersion, t.Version())
	}
	if _, err := tx.toProto(); err != nil {
		return nil, err
	}
	o.ensureDefaults()
	if p, ok := tx.Op.(*Project); ok && p.validated {
		if tx.ReadVersion != t.Version() {
			return nil, fmt.Errorf("%w: version %d was validated, not version %d", ErrConflict, tx.ReadVersion, t.Version())
		}
		o.MaxAttempts = 1
	}
	return &committer{table: t, tx: tx, o: o}, nil
}

func (c *committer) run(ctx context.Context) (Result, error) {
	latest := c.table
	for attempt := 1; ; attempt++ {
		began := c.o.Clock()
		r, done, err := c.attempt(ctx, latest, attempt)
		if err != nil || done {
			return r, err
		}
		if attempt == c.o.MaxAttempts {
			return Result{}, fmt.Errorf("%w: other writers were faster %d times", ErrConflict, attempt)
		}
		if err := Backoff(ctx, attempt, c.o.Clock().Sub(began)); err != nil {
			return Result{}, err
		}
		if latest, err = latest.Latest(ctx); err != nil {
			return Result{}, err
		}
	}
}

// attempt puts the transaction on top of latest; done is false when another writer was faster or the slot was a hole.
func (c *committer) attempt(ctx context.Context, latest *Table, number int) (r Result, done bool, err error) {
	if err := checkWriterFlags(latest.m.pb); err != nil {
		return Result{}, false, err
	}
	if err := c.load(ctx, latest); err != nil {
		return Result{}, false, err
	}
	if c.o.Check != nil {
		a := Attempt{Number: number, Latest: latest, Theirs: c.theirs, Ours: c.tx}
		if err := c.o.Check(ctx, a); err != nil {
			return Result{}, false, err
		}
	}
	tx, err := c.resolve(ctx, latest)
	if err != nil {
		return Result{}, false, err
	}
	d, err := nextManifest(ctx, latest, tx, c.o)
	if err != nil {
		return Result{}, false, err
	}
	m, data, err := d.encode(join(c.table.root, versionsFolder, latest.naming.manifestName(d.m.GetVersion())), tx)
	if err != nil {
		return Result{}, false, err
	}
	next, err := newTable(c.table.store, c.table.root, latest.naming, m)
	if err != nil {
		return Result{}, false, err
	}
	if err := latest.syncForeign(ctx); err != nil {
		return Result{}, false, c.unlessGone(ctx, latest, err)
	}
	landed, err := putManifest(ctx, c.table.store, m.object, data, tx.UUID)
	if err != nil || !landed {
		return Result{}, false, err
	}
	c.o.Put(next)
	return c.confirm(ctx, next, latest)
}

// unlessGone is err, or nil when latest was cleaned up under us because there is a newer version.
func (c *committer) unlessGone(ctx context.Context, latest *Table, err error) error {
	if !errors.Is(err, ErrNotFound) {
		return err
	}
	newest, listErr := LatestVersion(ctx, c.table.store, c.table.root)
	if listErr != nil || newest <= latest.Version() {
		return errors.Join(err, listErr)
	}
	return nil
}

// resolve holds ours against theirs and moves it to the latest version.
func (c *committer) resolve(ctx context.Context, latest *Table) (*Transaction, error) {
	if len(c.theirs) == 0 {
		return c.tx, nil
	}
	var vectors []uint64
	for _, theirs := range c.theirs {
		v, err := c.judge(ctx, latest, theirs)
		if err != nil {
			return nil, err
		}
		if v.class != nil {
			return nil, fmt.Errorf("%w: version %d (%s): %s", v.class, theirs.Version, theirs.Tx.kind(), v.reason)
		}
		vectors = append(vectors, v.vectors...)
	}
	return c.rebase(ctx, latest, vectors)
}

// judge applies the matrix, and where it ends at two key filters, the caller's knowledge of its keys.
func (c *committer) judge(ctx context.Context, latest *Table, theirs Committed) (verdict, error) {
	v := judge(c.tx.Op, theirs.Tx)
	if !v.filters || c.o.SameKey == nil {
		return v, nil
	}
	same, err := c.o.SameKey(ctx, latest, theirs)
	if err != nil || same {
		return v, err
	}
	return judgeVectors(c.tx.Op, theirs.Tx.Op), nil
}

// base returns the version that the transaction was planned on.
func (c *committer) base(ctx context.Context) (*Table, error) {
	if c.planned == nil {
		planned, err := c.table.At(ctx, c.tx.ReadVersion)
		if errors.Is(err, ErrNotFound) {
			return nil, fmt.Errorf("%w: version %d, which the transaction was planned on, is gone", ErrConflict, c.tx.ReadVersion)
		}
		if err != nil {
			return nil, err
		}
		c.planned = planned
	}
	return c.planned, nil
}

// Backoff waits after an attempt, counted from 1, that another writer has won: a random part of a window that begins at four times the
// attempt's own duration and doubles with each attempt, as the engine does, up to five seconds. So writers of any speed come to find a gap that is as
// long as their attempt. It returns ctx's error.
func Backoff(ctx context.Context, attempt int, took time.Duration) error {
	const longest = 5 * time.Second
	window := min(max(took, time.Millisecond)<<min(attempt+1, 10), longest)
	timer := time.NewTimer(rand.N(window))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
