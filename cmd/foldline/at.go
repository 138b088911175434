package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/objstore"
)

// at is the --at of the commands that read a state of the graph.
type at struct {
	At string `placeholder:"WHEN" help:"Read an older state: a graph commit, a manifest version (foldline log lists both) or an RFC 3339 time. The newest by default."`
}

// snapshot opens the store and reads the heads as they were then.
func (a at) snapshot(ctx context.Context, e *env) (objstore.Store, *heads.Snapshot, error) {
	if a.At == "" {
		return e.graph(ctx)
	}
	read, err := a.parse()
	if err != nil {
		return nil, nil, err
	}
	store, err := e.store(ctx)
	if err != nil {
		return nil, nil, err
	}
	s, err := read(ctx, store)
	if err != nil {
		return nil, nil, a.explain(e, err)
	}
	return store, s, nil
}

// parse tells the three forms apart: only digits is a version, 26 characters of a ULID are a commit, all else has to be a time.
func (a at) parse() (func(context.Context, objstore.Store) (*heads.Snapshot, error), error) {
	if version, err := strconv.ParseUint(a.At, 10, 64); err == nil {
		return func(ctx context.Context, store objstore.Store) (*heads.Snapshot, error) {
			return heads.AtVersion(ctx, store, "", version)
		}, nil
	}
	if id, err := ulid.ParseStrict(a.At); err == nil {
		return func(ctx context.Context, store objstore.Store) (*heads.Snapshot, error) {
			return heads.AtCommit(ctx, store, "", id.String())
		}, nil
	}
	moment, err := time.Parse(time.RFC3339Nano, a.At)
	if err != nil {
		return nil, usage("--at %q is neither a graph commit, nor a manifest version, nor a time such as 2006-01-02T15:04:05Z", strings.ToValidUTF8(a.At, "?"))
	}
	return func(ctx context.Context, store objstore.Store) (*heads.Snapshot, error) {
		return heads.AtTime(ctx, store, "", moment)
	}, nil
}

// explain says what to do about a state that cannot be read.
func (a at) explain(e *env, err error) error {
	switch {
	case errors.Is(err, heads.ErrPruned):
		return fmt.Errorf("root %s: --at %s: %w; retention has taken that state, foldline log lists newer ones", e.root(), a.At, err)
	case errors.Is(err, heads.ErrNotFound):
		return fmt.Errorf("root %s: --at %s: %w; foldline log lists what there is", e.root(), a.At, err)
	}
	return fmt.Errorf("root %s: %w", e.root(), err)
}
