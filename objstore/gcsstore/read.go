package gcsstore

import (
	"context"
	"errors"
	"fmt"
	"io"

	"cloud.google.com/go/storage"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/retry"
)

// errCut is a body that ended early; the read is repeated.
var errCut = errors.New("the body ended early")

// Get implements [objstore.Store].
func (s *Store) Get(ctx context.Context, key string) ([]byte, error) {
	data, _, err := s.read(ctx, key, 0, -1, func(size, _ int64) error {
		if size > objstore.MaxGetBytes {
			return fmt.Errorf("%w: %d bytes", objstore.ErrTooLarge, size)
		}
		return nil
	})
	return data, wrap("get", key, err)
}

// GetRange implements [objstore.Store].
func (s *Store) GetRange(ctx context.Context, key string, off, n int64) ([]byte, error) {
	data, err := s.getRange(ctx, key, off, n)
	return data, wrap("get range of", key, err)
}

func (s *Store) getRange(ctx context.Context, key string, off, n int64) ([]byte, error) {
	outside := fmt.Errorf("%w: offset %d, length %d", objstore.ErrRange, off, n)
	if _, err := s.object(key); err != nil {
		return nil, err
	}
	if off < 0 || n < 0 || off+n < 0 {
		return nil, outside
	}
	if n == 0 { // there is no range of no bytes in HTTP
		info, err := s.Stat(ctx, key)
		if err == nil && off > info.Size {
			err = outside
		}
		return []byte{}, err
	}
	data, _, err := s.read(ctx, key, off, n, func(_, length int64) error {
		if length != n {
			return outside
		}
		return nil
	})
	return data, err
}

// GetTail implements [objstore.Store].
func (s *Store) GetTail(ctx context.Context, key string, n int64) ([]byte, int64, error) {
	data, size, err := s.getTail(ctx, key, n)
	if errors.Is(err, objstore.ErrRange) && n > 0 {
		// An empty object has no last byte, and not every server takes a suffix that is too long.
		var info objstore.Info
		if info, err = s.Stat(ctx, key); err == nil {
			size, n = info.Size, min(n, info.Size)
			data, err = s.getRange(ctx, key, size-n, n)
		}
	}
	return data, size, wrap("get tail of", key, err)
}

func (s *Store) getTail(ctx context.Context, key string, n int64) ([]byte, int64, error) {
	if n < 0 {
		return nil, 0, fmt.Errorf("%w: tail of %d bytes", objstore.ErrRange, n)
	}
	if n == 0 {
		info, err := s.Stat(ctx, key)
		return []byte{}, info.Size, err
	}
	return s.read(ctx, key, -n, -1, func(size, length int64) error {
		if length != min(n, size) {
			return fmt.Errorf("%w: a suffix range was answered with %d bytes of %d", objstore.ErrUnsupported, length, size)
		}
		return nil
	})
}

// read makes one get, as the client library's NewRangeReader takes it, and reads its body. check sees
// the object's size and the body's length before anything is allocated for the body.
func (s *Store) read(ctx context.Context, key string, off, n int64, check func(size, length int64) error) (data []byte, size int64, err error) {
	object, err := s.object(key)
	if err != nil {
		return nil, 0, err
	}
	data, err = retry.Read(ctx, &s.o.Policy, func(ctx context.Context) ([]byte, error) {
		r, err := object.NewRangeReader(ctx, off, n)
		if err != nil {
			return nil, err
		}
		defer func() { _ = r.Close() }() // read only: nothing to lose
		size = r.Attrs.Size
		length, err := bodyLength(r)
		if err == nil {
			err = check(size, length)
		}
		if err != nil {
			return nil, err
		}
		data := make([]byte, length)
		if _, err := io.ReadFull(r, data); err != nil {
			return nil, fmt.Errorf("%w: %w", errCut, err)
		}
		return data, nil
	})
	return data, size, err
}

func bodyLength(r *storage.Reader) (int64, error) {
	length := r.Remain()
	if length < 0 || length > r.Attrs.Size {
		return 0, fmt.Errorf("%w: a body of %d bytes of an object of %d", objstore.ErrUnsupported, length, r.Attrs.Size)
	}
	return length, nil
}
