package azurestore

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/retry"
)

// errCut is a body that ended early; the read is repeated.
var errCut = errors.New("the body ended early")

// Get implements [objstore.Store].
func (s *Store) Get(ctx context.Context, key string) ([]byte, error) {
	data, err := s.read(ctx, key, blob.HTTPRange{}, func(length int64) error {
		if length > objstore.MaxGetBytes {
			return fmt.Errorf("%w: %d bytes", objstore.ErrTooLarge, length)
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
	if _, err := s.blob(key); err != nil {
		return nil, err
	}
	if off < 0 || n < 0 || off+n < 0 {
		return nil, outside
	}
	if n == 0 { // a count of 0 means the rest of the blob
		info, err := s.Stat(ctx, key)
		if err == nil && off > info.Size {
			err = outside
		}
		return []byte{}, err
	}
	return s.read(ctx, key, blob.HTTPRange{Offset: off, Count: n}, func(length int64) error {
		if length != n {
			return outside
		}
		return nil
	})
}

// GetTail implements [objstore.Store] in two requests: the service has no suffix ranges. An object that
// is replaced between them by a shorter one is an ErrRange.
func (s *Store) GetTail(ctx context.Context, key string, n int64) ([]byte, int64, error) {
	if n < 0 {
		return nil, 0, wrap("get tail of", key, fmt.Errorf("%w: tail of %d bytes", objstore.ErrRange, n))
	}
	info, err := s.Stat(ctx, key)
	if err != nil {
		return nil, 0, err
	}
	n = min(n, info.Size)
	if n == 0 {
		return []byte{}, info.Size, nil
	}
	data, err := s.getRange(ctx, key, info.Size-n, n)
	return data, info.Size, wrap("get tail of", key, err)
}

// read makes one get and reads its body. check sees the body's length before anything is allocated.
func (s *Store) read(ctx context.Context, key string, span blob.HTTPRange, check func(length int64) error) ([]byte, error) {
	client, err := s.blob(key)
	if err != nil {
		return nil, err
	}
	return retry.Read(ctx, &s.o.Policy, func(ctx context.Context) ([]byte, error) {
		out, err := client.DownloadStream(ctx, &blob.DownloadStreamOptions{Range: span})
		if err != nil {
			return nil, err
		}
		defer func() { _ = out.Body.Close() }() // read only: nothing to lose
		if out.ContentLength == nil || *out.ContentLength < 0 {
			return nil, fmt.Errorf("%w: an answer without a length", objstore.ErrUnsupported)
		}
		if err := check(*out.ContentLength); err != nil {
			return nil, err
		}
		data := make([]byte, *out.ContentLength)
		if _, err := io.ReadFull(out.Body, data); err != nil {
			return nil, fmt.Errorf("%w: %w", errCut, err)
		}
		return data, nil
	})
}
