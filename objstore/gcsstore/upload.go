package gcsstore

import (
	"context"
	"fmt"

	"cloud.google.com/go/storage"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/retry"
)

// Create implements [objstore.Store]: a resumable upload, whose parts the client library repeats by
// itself, since their position makes a repeat harmless.
func (s *Store) Create(ctx context.Context, key string) (objstore.Upload, error) {
	object, err := s.object(key)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, wrap("create", key, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	w := object.Retryer(storage.WithPolicy(storage.RetryAlways), storage.WithMaxAttempts(s.o.Attempts)).NewWriter(ctx)
	w.ChunkSize = s.o.PartBytes
	w.ChunkRetryDeadline = s.o.AttemptTimeout
	return &upload{ctx: ctx, cancel: cancel, key: key, w: w}, nil
}

type upload struct {
	ctx    context.Context // of Create: an upload is one call that is spread over several methods
	cancel context.CancelFunc
	key    string
	w      *storage.Writer
	ended  bool
}

// Write implements io.Writer.
func (u *upload) Write(p []byte) (int, error) {
	if u.ended {
		return 0, wrap("write", u.key, objstore.ErrClosed)
	}
	if err := u.ctx.Err(); err != nil {
		return 0, wrap("write", u.key, err)
	}
	n, err := u.w.Write(p)
	if err != nil {
		_, err = judge(err)
	}
	return n, wrap("write", u.key, err)
}

// Commit implements [objstore.Upload].
func (u *upload) Commit() (objstore.Info, error) {
	if u.ended {
		return objstore.Info{}, wrap("commit", u.key, objstore.ErrClosed)
	}
	defer func() { _ = u.Abort() }() // does nothing once the object is there
	if err := u.ctx.Err(); err != nil {
		return objstore.Info{}, wrap("commit", u.key, err)
	}
	if err := u.w.Close(); err != nil {
		return objstore.Info{}, wrap("commit", u.key, closeError(err))
	}
	u.ended = true
	u.cancel()
	return info(u.key, u.w.Attrs()), nil
}

// closeError: the last part completes the object, so a lost answer to it leaves the outcome open.
func closeError(err error) error {
	verdict, err := judge(err)
	if verdict != retry.Unknown {
		return err
	}
	return fmt.Errorf("%w: %w", objstore.ErrUnknownOutcome, err)
}

// Abort implements [objstore.Upload]. The service drops an upload that is not completed.
func (u *upload) Abort() error {
	if u.ended {
		return nil
	}
	u.ended = true
	u.cancel()
	_ = u.w.Close() // ends the writer; that it was cut off is what is wanted
	return nil
}
