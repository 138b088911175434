package faultstore

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/foldline/foldline/objstore"
)

// Store is a store with faults. Make one with [New].
type Store struct {
	inner     objstore.Store
	injectors []Injector
	calls     atomic.Int64
}

var _ objstore.Store = (*Store)(nil)

// New wraps inner. All injectors are asked about each call; their delays add up, and the first error
// of each kind counts.
func New(inner objstore.Store, injectors ...Injector) *Store {
	return &Store{inner: inner, injectors: injectors}
}

// Calls is how many calls have begun, those of uploads included.
func (s *Store) Calls() int { return int(s.calls.Load()) }

// do makes one call under its fault.
func (s *Store) do(ctx context.Context, op Op, key string, call func() error) error {
	c := Call{Number: int(s.calls.Add(1)), Op: op, Key: key}
	var fault Fault
	for _, inject := range s.injectors {
		f := inject(ctx, c)
		fault.Delay += f.Delay
		if fault.Before == nil {
			fault.Before = f.Before
		}
		if fault.After == nil {
			fault.After = f.After
		}
		if f.Done != nil {
			defer f.Done()
		}
	}
	if err := wait(ctx, fault.Delay); err != nil {
		return err
	}
	if fault.Before != nil {
		return fmt.Errorf("%s %q: %w", op, key, fault.Before)
	}
	if err := call(); err != nil {
		return err
	}
	if fault.After != nil {
		return fmt.Errorf("%s %q: %w", op, key, fault.After)
	}
	return nil
}

func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// result makes one call that returns a value, which a fault takes away.
func result[T any](ctx context.Context, s *Store, op Op, key string, call func() (T, error)) (T, error) {
	var value, none T
	err := s.do(ctx, op, key, func() (err error) {
		value, err = call()
		return err
	})
	if err != nil {
		return none, err
	}
	return value, nil
}

// Get implements [objstore.Store].
func (s *Store) Get(ctx context.Context, key string) ([]byte, error) {
	return result(ctx, s, Get, key, func() ([]byte, error) { return s.inner.Get(ctx, key) })
}

// GetRange implements [objstore.Store].
func (s *Store) GetRange(ctx context.Context, key string, off, n int64) ([]byte, error) {
	return result(ctx, s, GetRange, key, func() ([]byte, error) { return s.inner.GetRange(ctx, key, off, n) })
}

// GetTail implements [objstore.Store].
func (s *Store) GetTail(ctx context.Context, key string, n int64) (data []byte, size int64, err error) {
	data, err = result(ctx, s, GetTail, key, func() (data []byte, err error) {
		data, size, err = s.inner.GetTail(ctx, key, n)
		return data, err
	})
	if err != nil {
		return nil, 0, err
	}
	return data, size, nil
}

// Put implements [objstore.Store].
func (s *Store) Put(ctx context.Context, key string, data []byte) error {
	return s.do(ctx, Put, key, func() error { return s.inner.Put(ctx, key, data) })
}

// PutIfAbsent implements [objstore.Store].
func (s *Store) PutIfAbsent(ctx context.Context, key string, data []byte) error {
	return s.do(ctx, PutIfAbsent, key, func() error { return s.inner.PutIfAbsent(ctx, key, data) })
}

// List implements [objstore.Store].
func (s *Store) List(ctx context.Context, prefix, after string, max int) ([]objstore.Info, error) {
	return result(ctx, s, List, prefix, func() ([]objstore.Info, error) { return s.inner.List(ctx, prefix, after, max) })
}

// Stat implements [objstore.Store].
func (s *Store) Stat(ctx context.Context, key string) (objstore.Info, error) {
	return result(ctx, s, Stat, key, func() (objstore.Info, error) { return s.inner.Stat(ctx, key) })
}

// Delete implements [objstore.Store].
func (s *Store) Delete(ctx context.Context, key string) error {
	return s.do(ctx, Delete, key, func() error { return s.inner.Delete(ctx, key) })
}

// Create implements [objstore.Store].
func (s *Store) Create(ctx context.Context, key string) (objstore.Upload, error) {
	inner, err := result(ctx, s, Create, key, func() (objstore.Upload, error) { return s.inner.Create(ctx, key) })
	if err != nil {
		return nil, err
	}
	return &upload{ctx: ctx, store: s, key: key, inner: inner}, nil
}

type upload struct {
	ctx   context.Context // of Create: an upload is one call that is spread over several methods
	store *Store
	key   string
	inner objstore.Upload
}

// Write implements io.Writer.
func (u *upload) Write(p []byte) (int, error) {
	return result(u.ctx, u.store, Write, u.key, func() (int, error) { return u.inner.Write(p) })
}

// Commit implements [objstore.Upload].
func (u *upload) Commit() (objstore.Info, error) {
	return result(u.ctx, u.store, Commit, u.key, func() (objstore.Info, error) { return u.inner.Commit() })
}

// Abort implements [objstore.Upload].
func (u *upload) Abort() error {
	return u.store.do(u.ctx, Abort, u.key, func() error { return u.inner.Abort() })
}
