package bucket

import (
	"context"
	"time"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/retry"
)

// abortLimit bounds the clean-up of an upload whose context has ended.
const abortLimit = 30 * time.Second

// Create implements [objstore.Store]. What stays below one part is a single put at the commit.
func (s *Store) Create(ctx context.Context, key string) (objstore.Upload, error) {
	name, err := s.key(key)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, s.wrap("create", key, err)
	}
	return &upload{ctx: ctx, store: s, key: key, name: name}, nil
}

// upload is open, then ended; parts is nil until the first part is full.
type upload struct {
	ctx       context.Context // of Create: an upload is one call that is spread over several methods
	store     *Store
	key, name string

	buf   []byte // less than a part
	size  int64
	parts Parts
	sent  int // parts
	ended bool
}

// Write implements io.Writer.
func (u *upload) Write(p []byte) (int, error) {
	if err := u.usable(); err != nil {
		return 0, u.store.wrap("write", u.key, err)
	}
	written, partBytes := 0, u.store.o.PartBytes
	for len(p) > 0 {
		n := min(len(p), partBytes-len(u.buf))
		u.buf = append(u.buf, p[:n]...)
		p, written, u.size = p[n:], written+n, u.size+int64(n)
		if len(u.buf) == partBytes {
			if err := u.flush(); err != nil {
				return written, u.store.wrap("write", u.key, err)
			}
		}
	}
	return written, nil
}

func (u *upload) usable() error {
	if u.ended {
		return objstore.ErrClosed
	}
	return u.ctx.Err()
}

// flush sends the buffer as the next part.
func (u *upload) flush() error {
	if u.parts == nil {
		parts := u.store.driver.Upload(u.ctx, u.name)
		if err := u.repeat(u.ctx, parts.Begin); err != nil { // a repeat after a lost answer leaves an empty upload behind
			return err
		}
		u.parts = parts
	}
	err := u.repeat(u.ctx, func(ctx context.Context) error { return u.parts.Part(ctx, u.sent, u.buf) })
	if err != nil {
		return err
	}
	u.sent++
	u.buf = u.buf[:0]
	return nil
}

// repeat makes a request that shows nothing yet, so that a repeat is harmless.
func (u *upload) repeat(ctx context.Context, request func(ctx context.Context) error) error {
	_, err := retry.Read(ctx, &u.store.o.Policy, func(ctx context.Context) (struct{}, error) { return struct{}{}, request(ctx) })
	return err
}

// Commit implements [objstore.Upload].
func (u *upload) Commit() (objstore.Info, error) {
	err := u.usable()
	if err == nil {
		err = u.complete()
	}
	if err != nil {
		_ = u.Abort() // a clean-up: what matters is why the commit failed
		return objstore.Info{}, u.store.wrap("commit", u.key, err)
	}
	u.ended, u.buf = true, nil
	return objstore.Info{Key: u.key, Size: u.size}, nil
}

func (u *upload) complete() error {
	if u.parts == nil {
		return u.store.put(u.ctx, u.key, u.buf, false)
	}
	if len(u.buf) > 0 {
		if err := u.flush(); err != nil {
			return err
		}
	}
	return u.store.o.Write(u.ctx, u.parts.Complete)
}

// Abort implements [objstore.Upload]. It works after the end of the upload's context too.
func (u *upload) Abort() error {
	if u.ended {
		return nil
	}
	u.ended, u.buf = true, nil
	if u.parts == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(u.ctx), abortLimit)
	defer cancel()
	return u.store.wrap("abort", u.key, u.store.o.Write(ctx, u.parts.Abort))
}
