package s3store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/retry"
)

// errCut is a body that ended early; the read is repeated.
var errCut = errors.New("the body ended early")

// Get implements [objstore.Store].
func (s *Store) Get(ctx context.Context, key string) ([]byte, error) {
	data, _, err := s.read(ctx, key, nil, func(size, length int64) error {
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
	if _, err := s.key(key); err != nil {
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
	span := fmt.Sprintf("bytes=%d-%d", off, off+n-1)
	data, _, err := s.read(ctx, key, &span, func(_, length int64) error {
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
		data, size, err = s.shortTail(ctx, key, n)
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
	span := fmt.Sprintf("bytes=-%d", n)
	return s.read(ctx, key, &span, func(size, length int64) error {
		if length != min(n, size) {
			return fmt.Errorf("%w: the server answers a suffix range with %d bytes of %d", objstore.ErrUnsupported, length, size)
		}
		return nil
	})
}

// shortTail reads an object for which the server refused the suffix range: it is empty and has no last
// byte, or the server refuses, against the standard, a suffix that is longer than the object.
func (s *Store) shortTail(ctx context.Context, key string, n int64) ([]byte, int64, error) {
	info, err := s.Stat(ctx, key)
	if err != nil {
		return nil, 0, err
	}
	n = min(n, info.Size)
	data, err := s.getRange(ctx, key, info.Size-n, n)
	return data, info.Size, err
}

// read makes one get and reads its body. check sees the object's size and the body's length before
// anything is allocated for the body.
func (s *Store) read(ctx context.Context, key string, span *string, check func(size, length int64) error) (data []byte, size int64, err error) {
	full, err := s.key(key)
	if err != nil {
		return nil, 0, err
	}
	data, err = retry.Read(ctx, &s.o.Policy, func(ctx context.Context) ([]byte, error) {
		out, err := s.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &s.o.Bucket, Key: full, Range: span})
		if err != nil {
			return nil, err
		}
		defer func() { _ = out.Body.Close() }() // read only: nothing to lose
		length := aws.ToInt64(out.ContentLength)
		size, err = objectSize(length, span, out.ContentRange)
		if err == nil {
			err = check(size, length)
		}
		if err != nil {
			return nil, err
		}
		data := make([]byte, length)
		if _, err := io.ReadFull(out.Body, data); err != nil {
			return nil, fmt.Errorf("%w: %w", errCut, err)
		}
		return data, nil
	})
	return data, size, err
}

// objectSize is the size of the whole object of which length bytes were answered.
func objectSize(length int64, span, contentRange *string) (int64, error) {
	if length < 0 {
		return 0, fmt.Errorf("%w: an answer without a length", objstore.ErrUnsupported)
	}
	if span == nil {
		return length, nil
	}
	_, total, ok := strings.Cut(aws.ToString(contentRange), "/")
	size, err := strconv.ParseInt(total, 10, 64)
	if !ok || err != nil || size < length {
		return 0, fmt.Errorf("%w: a range was answered with Content-Range %q", objstore.ErrUnsupported, aws.ToString(contentRange))
	}
	return size, nil
}
