package lance

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
)

const (
	// maxMissed bounds the commits of others that one commit reads; behind that planning again is cheaper.
	maxMissed = 1000
	// loadConcurrency is how many of them are read at a time.
	loadConcurrency = 8
)

// load reads the transactions between our read version and latest that are not known yet. Our own, left in a hole by an
// earlier attempt, does not count.
func (c *committer) load(ctx context.Context, latest *Table) error {
	from := c.tx.ReadVersion + 1
	if n := len(c.theirs); n > 0 {
		from = c.theirs[n-1].Version + 1
	}
	if latest.Version() < from {
		return nil
	}
	if latest.Version()-c.tx.ReadVersion > maxMissed {
		return fmt.Errorf("%w: %d versions since the transaction was planned", ErrConflict, latest.Version()-c.tx.ReadVersion)
	}
	loaded := make([]Committed, latest.Version()-from+1)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(loadConcurrency)
	for i := range loaded {
		version := from + uint64(i)
		g.Go(func() (err error) {
			loaded[i] = Committed{Version: version}
			loaded[i].Tx, err = transactionOf(ctx, latest, version)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, theirs := range loaded {
		if theirs.Tx == nil || theirs.Tx.UUID != c.tx.UUID {
			c.theirs = append(c.theirs, theirs)
		}
	}
	return nil
}

// transactionOf returns the transaction that made a version, nil when it is gone.
func transactionOf(ctx context.Context, latest *Table, version uint64) (*Transaction, error) {
	m := latest.m
	if version != latest.Version() {
		var err error
		m, err = fetchVersion(ctx, latest.store, latest.root, latest.naming, version)
		if errors.Is(err, ErrNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
	}
	tx, err := m.transaction(ctx, latest.store, latest.root)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	return tx, err
}
