package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/retry"
)

// errCut is a body that ended early; the read is repeated.
var errCut = errors.New("the body ended early")

// Get implements [objstore.Store].
func (s *Store) Get(ctx context.Context, key string) ([]byte, error) {
	data, _, err := s.read(ctx, key, Range{Whole: true})
	return data, s.wrap("get", key, err)
}

// GetRange implements [objstore.Store].
func (s *Store) GetRange(ctx context.Context, key string, off, n int64) ([]byte, error) {
	data, err := s.getRange(ctx, key, off, n)
	return data, s.wrap("get range of", key, err)
}

func (s *Store) getRange(ctx context.Context, key string, off, n int64) ([]byte, error) {
	if _, err := s.key(key); err != nil {
		return nil, err
	}
	outside := fmt.Errorf("%w: offset %d, length %d", objstore.ErrRange, off, n)
	if off < 0 || n < 0 || off+n < 0 {
		return nil, outside
	}
	if n == 0 { // there is no range of no bytes in HTTP
		info, err := s.stat(ctx, key)
		if err == nil && off > info.Size {
			err = outside
		}
		return []byte{}, err
	}
	data, _, err := s.read(ctx, key, Range{Off: off, N: n})
	return data, err
}

// GetTail implements [objstore.Store]: one request, two where the service has no suffix ranges.
func (s *Store) GetTail(ctx context.Context, key string, n int64) ([]byte, int64, error) {
	data, size, err := s.getTail(ctx, key, n)
	return data, size, s.wrap("get tail of", key, err)
}

func (s *Store) getTail(ctx context.Context, key string, n int64) ([]byte, int64, error) {
	if _, err := s.key(key); err != nil {
		return nil, 0, err
	}
	if n < 0 {
		return nil, 0, fmt.Errorf("%w: tail of %d bytes", objstore.ErrRange, n)
	}
	if n > 0 {
		data, size, err := s.read(ctx, key, Range{Suffix: true, N: n})
		if !errors.Is(err, objstore.ErrRange) {
			return data, size, err
		}
		// The object is empty and has no last byte, or the server refuses, against the standard, a suffix that is
		// longer than the object.
	}
	info, err := s.stat(ctx, key)
	if err != nil {
		return nil, 0, err
	}
	n = min(n, info.Size)
	data, err := s.getRange(ctx, key, info.Size-n, n)
	return data, info.Size, err
}

// read makes one get and reads its body.
func (s *Store) read(ctx context.Context, key string, r Range) (data []byte, size int64, err error) {
	name, err := s.key(key)
	if err != nil {
		return nil, 0, err
	}
	data, err = retry.Read(ctx, &s.o.Policy, func(ctx context.Context) ([]byte, error) {
		body, err := s.driver.Get(ctx, name, r)
		if err != nil {
			return nil, err
		}
		defer func() { _ = body.Close() }() // read only: nothing to lose
		if err := r.check(body); err != nil {
			return nil, err
		}
		size = body.Size
		data := make([]byte, body.Length)
		if _, err := io.ReadFull(body, data); err != nil {
			return nil, fmt.Errorf("%w: %w", errCut, err)
		}
		return data, nil
	})
	return data, size, err
}

// check compares an answer with what was asked for, before anything is allocated for it.
func (r Range) check(b Body) error {
	off, n := r.Off, r.N
	switch {
	case r.Whole:
		off, n = 0, b.Size
	case r.Suffix:
		n = min(r.N, b.Size)
		off = b.Size - n
	case off > b.Size || n > b.Size-off:
		return fmt.Errorf("%w: offset %d, length %d, of %d bytes", objstore.ErrRange, off, n, b.Size)
	}
	if b.Off != off || b.Length != n {
		return fmt.Errorf("%w: bytes %d+%d of %d were asked for, and %d+%d answered", objstore.ErrUnsupported, off, n, b.Size, b.Off, b.Length)
	}
	if r.Whole && b.Size > objstore.MaxGetBytes {
		return fmt.Errorf("%w: %d bytes", objstore.ErrTooLarge, b.Size)
	}
	return nil
}
