package gcsstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"cloud.google.com/go/storage"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/iterator"
	"google.golang.org/api/option"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/retry"
)

// Store is a bucket, or what is below a prefix of one. Make one with [Open].
type Store struct {
	client *storage.Client
	bucket *storage.BucketHandle
	o      Options
}

var _ objstore.Store = (*Store)(nil)

// Open makes the client of a bucket. It reads the credentials, but does not call the service;
// [objstore.Probe] does.
func Open(ctx context.Context, o Options) (*Store, error) {
	o.EnsureDefaults()
	o.Judge = judge
	if err := o.Validate(); err != nil {
		return nil, err
	}
	// One API for reads and writes, so that they agree on what is there.
	options := []option.ClientOption{storage.WithJSONReads()}
	if o.Endpoint != "" {
		options = append(options, option.WithEndpoint(o.Endpoint))
	}
	if o.Anonymous {
		options = append(options, option.WithoutAuthentication())
	}
	client, err := storage.NewClient(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("gcsstore: %w", err)
	}
	// Repeats are made here, where it is known what a repeat means.
	client.SetRetry(storage.WithPolicy(storage.RetryNever))
	return &Store{client: client, bucket: client.Bucket(o.Bucket), o: o}, nil
}

// Close ends the client's connections.
func (s *Store) Close() error { return s.client.Close() }

// object is the handle of a key, which is checked; with the prefix it must keep the service's bound.
func (s *Store) object(key string) (*storage.ObjectHandle, error) {
	if err := objstore.ValidateKey(key); err != nil {
		return nil, err
	}
	full := s.full(key)
	if len(full) > objstore.MaxKeyBytes {
		return nil, fmt.Errorf("%w: %d bytes with the prefix, at most %d", objstore.ErrInvalidKey, len(full), objstore.MaxKeyBytes)
	}
	return s.bucket.Object(full), nil
}

func (s *Store) full(key string) string {
	if s.o.Prefix == "" {
		return key
	}
	return s.o.Prefix + "/" + key
}

// Put implements [objstore.Store].
func (s *Store) Put(ctx context.Context, key string, data []byte) error {
	object, err := s.object(key)
	if err != nil {
		return wrap("put", key, err)
	}
	return wrap("put", key, s.put(ctx, object, data))
}

// PutIfAbsent implements [objstore.Store].
func (s *Store) PutIfAbsent(ctx context.Context, key string, data []byte) error {
	object, err := s.object(key)
	if err != nil {
		return wrap("put if absent", key, err)
	}
	return wrap("put if absent", key, s.put(ctx, object.If(storage.Conditions{DoesNotExist: true}), data))
}

// put writes an object in one request.
func (s *Store) put(ctx context.Context, object *storage.ObjectHandle, data []byte) error {
	return s.o.Write(ctx, func(ctx context.Context) error {
		w := object.NewWriter(ctx)
		w.ChunkSize = 0
		if _, err := w.Write(data); err != nil {
			return errors.Join(err, w.Close())
		}
		return w.Close()
	})
}

// Delete implements [objstore.Store].
func (s *Store) Delete(ctx context.Context, key string) error {
	object, err := s.object(key)
	if err != nil {
		return wrap("delete", key, err)
	}
	err = s.o.Write(ctx, func(ctx context.Context) error {
		err := object.Delete(ctx)
		if errors.Is(err, storage.ErrObjectNotExist) {
			return nil
		}
		return err
	})
	return wrap("delete", key, err)
}

// Stat implements [objstore.Store].
func (s *Store) Stat(ctx context.Context, key string) (objstore.Info, error) {
	object, err := s.object(key)
	if err != nil {
		return objstore.Info{}, wrap("stat", key, err)
	}
	info, err := retry.Read(ctx, &s.o.Policy, func(ctx context.Context) (objstore.Info, error) {
		attrs, err := object.Attrs(ctx)
		if err != nil {
			return objstore.Info{}, err
		}
		return info(key, attrs), nil
	})
	return info, wrap("stat", key, err)
}

func info(key string, attrs *storage.ObjectAttrs) objstore.Info {
	return objstore.Info{Key: key, Size: attrs.Size, ModTime: attrs.Updated, ETag: attrs.Etag}
}

// List implements [objstore.Store]: one request for each 1,000 objects.
func (s *Store) List(ctx context.Context, prefix, after string, max int) ([]objstore.Info, error) {
	if err := errors.Join(objstore.ValidatePrefix(prefix), objstore.ValidatePrefix(after)); err != nil {
		return nil, wrap("list", prefix, err)
	}
	found, err := retry.Read(ctx, &s.o.Policy, func(ctx context.Context) ([]objstore.Info, error) {
		return s.list(ctx, prefix, after, max)
	})
	return found, wrap("list", prefix, err)
}

func (s *Store) list(ctx context.Context, prefix, after string, max int) ([]objstore.Info, error) {
	query := &storage.Query{Prefix: s.full(prefix)}
	if after != "" {
		query.StartOffset = s.full(after) // the object at it included
	}
	if err := query.SetAttrSelection([]string{"Name", "Size", "Updated", "Etag"}); err != nil {
		return nil, err
	}
	objects := s.bucket.Objects(ctx, query)
	if max > 0 {
		objects.PageInfo().MaxSize = min(max+1, 1000)
	}
	var found []objstore.Info
	for max == 0 || len(found) < max {
		attrs, err := objects.Next()
		if errors.Is(err, iterator.Done) {
			break
		}
		if err != nil {
			return nil, err
		}
		key := attrs.Name
		if s.o.Prefix != "" {
			key = strings.TrimPrefix(key, s.o.Prefix+"/")
		}
		if key > after && !strings.HasSuffix(key, "/") { // a marker of a directory is no object of ours
			found = append(found, info(key, attrs))
		}
	}
	return found, nil
}

// judge tells what is known after a request that ended in err.
func judge(err error) (retry.Verdict, error) {
	var api *googleapi.Error
	switch {
	case errors.Is(err, storage.ErrObjectNotExist):
		return retry.Definite, fmt.Errorf("%w: %w", objstore.ErrNotFound, err)
	case errors.Is(err, storage.ErrBucketNotExist):
		return retry.Definite, err
	case errors.As(err, &api):
		return retry.ByStatus(api.Code, err)
	default:
		return retry.ByStatus(0, err)
	}
}

// wrap names operation and key.
func wrap(op, key string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("gcsstore: %s %q: %w", op, key, err)
}
