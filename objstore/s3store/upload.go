package s3store

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/retry"
)

// abortLimit bounds the clean-up of an upload whose context has ended.
const abortLimit = 30 * time.Second

// Create implements [objstore.Store]. What stays below one part is a single put at the commit, larger
// objects are multipart uploads. An upload whose process dies leaves its parts in the bucket; a
// lifecycle rule for incomplete multipart uploads removes them.
func (s *Store) Create(ctx context.Context, key string) (objstore.Upload, error) {
	full, err := s.key(key)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, wrap("create", key, err)
	}
	return &upload{ctx: ctx, store: s, key: key, full: full}, nil
}

type upload struct {
	ctx   context.Context // of Create: an upload is one call that is spread over several methods
	store *Store
	key   string
	full  *string

	buf   []byte // less than a part
	size  int64
	id    *string // of the multipart upload; nil while there is none
	parts []types.CompletedPart
	ended bool
}

// Write implements io.Writer.
func (u *upload) Write(p []byte) (int, error) {
	if u.ended {
		return 0, wrap("write", u.key, objstore.ErrClosed)
	}
	if err := u.ctx.Err(); err != nil {
		return 0, wrap("write", u.key, err)
	}
	written := 0
	for len(p) > 0 {
		n := min(len(p), int(u.store.o.PartBytes)-len(u.buf))
		u.buf = append(u.buf, p[:n]...)
		p, written, u.size = p[n:], written+n, u.size+int64(n)
		if int64(len(u.buf)) == u.store.o.PartBytes {
			if err := u.flush(); err != nil {
				return written, wrap("write", u.key, err)
			}
		}
	}
	return written, nil
}

// flush sends the buffer as the next part.
func (u *upload) flush() error {
	if len(u.parts) >= maxParts {
		return fmt.Errorf("%w: more than %d parts", objstore.ErrTooLarge, maxParts)
	}
	if err := u.begin(); err != nil {
		return err
	}
	number := aws.Int32(int32(len(u.parts) + 1))
	tag, err := retry.Read(u.ctx, &u.store.o.Policy, func(ctx context.Context) (*string, error) { // a part may be sent twice
		out, err := u.store.client.UploadPart(ctx, &s3.UploadPartInput{
			Bucket: &u.store.o.Bucket, Key: u.full, UploadId: u.id, PartNumber: number, Body: bytes.NewReader(u.buf),
		})
		if err != nil {
			return nil, err
		}
		return out.ETag, nil
	})
	if err != nil {
		return err
	}
	u.parts = append(u.parts, types.CompletedPart{ETag: tag, PartNumber: number})
	u.buf = u.buf[:0]
	return nil
}

// begin starts the multipart upload. A repeat after a lost answer leaves an empty upload behind.
func (u *upload) begin() error {
	if u.id != nil {
		return nil
	}
	id, err := retry.Read(u.ctx, &u.store.o.Policy, func(ctx context.Context) (*string, error) {
		out, err := u.store.client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: &u.store.o.Bucket, Key: u.full})
		if err != nil {
			return nil, err
		}
		return out.UploadId, nil
	})
	u.id = id
	return err
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
	if u.id == nil {
		if err := u.store.put(u.ctx, u.key, u.buf); err != nil {
			return objstore.Info{}, wrap("commit", u.key, err)
		}
		u.ended = true
		return u.info()
	}
	if err := u.complete(); err != nil {
		return objstore.Info{}, wrap("commit", u.key, err)
	}
	return u.info()
}

func (u *upload) complete() error {
	if len(u.buf) > 0 {
		if err := u.flush(); err != nil {
			return err
		}
	}
	err := u.store.o.Write(u.ctx, func(ctx context.Context) error {
		_, err := u.store.client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
			Bucket: &u.store.o.Bucket, Key: u.full, UploadId: u.id,
			MultipartUpload: &types.CompletedMultipartUpload{Parts: u.parts},
		})
		return err
	})
	u.ended = err == nil
	return err
}

// info describes the object without asking: its size is known, its time is the server's.
func (u *upload) info() (objstore.Info, error) {
	return objstore.Info{Key: u.key, Size: u.size}, nil
}

// Abort implements [objstore.Upload]. It works after the end of the upload's context too.
func (u *upload) Abort() error {
	if u.ended {
		return nil
	}
	u.ended, u.buf = true, nil
	if u.id == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(u.ctx), abortLimit)
	defer cancel()
	err := u.store.o.Write(ctx, func(ctx context.Context) error {
		_, err := u.store.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{
			Bucket: &u.store.o.Bucket, Key: u.full, UploadId: u.id,
		})
		return err
	})
	return wrap("abort", u.key, err)
}
