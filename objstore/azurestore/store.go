package azurestore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/retry"
)

// Store is a container, or what is below a prefix of one. Make one with [Open].
type Store struct {
	container *container.Client
	o         Options
}

var _ objstore.Store = (*Store)(nil)

// Open makes the client of a container. It does not call the service; [objstore.Probe] does.
func Open(o Options) (*Store, error) {
	o.EnsureDefaults()
	o.Judge = judge
	if err := o.Validate(); err != nil {
		return nil, err
	}
	client, err := newClient(o)
	if err != nil {
		return nil, fmt.Errorf("azurestore: %w", err)
	}
	return &Store{container: client, o: o}, nil
}

func newClient(o Options) (*container.Client, error) {
	// Repeats are made here, where it is known what a repeat means.
	options := &container.ClientOptions{ClientOptions: azcore.ClientOptions{Retry: policy.RetryOptions{MaxRetries: -1}}}
	if o.ConnectionString != "" {
		return container.NewClientFromConnectionString(o.ConnectionString, o.Container, options)
	}
	url := strings.TrimSuffix(o.Endpoint, "/") + "/" + o.Container
	if o.Key != "" {
		key, err := container.NewSharedKeyCredential(o.Account, o.Key)
		if err != nil {
			return nil, err
		}
		return container.NewClientWithSharedKeyCredential(url, key, options)
	}
	chain, err := azidentity.NewDefaultAzureCredential(nil)
	if err != nil {
		return nil, err
	}
	return container.NewClient(url, chain, options)
}

// blob is the client of a key, which is checked; with the prefix it must keep the service's bound.
func (s *Store) blob(key string) (*blockblob.Client, error) {
	if err := objstore.ValidateKey(key); err != nil {
		return nil, err
	}
	full := s.full(key)
	if len(full) > objstore.MaxKeyBytes {
		return nil, fmt.Errorf("%w: %d bytes with the prefix, at most %d", objstore.ErrInvalidKey, len(full), objstore.MaxKeyBytes)
	}
	return s.container.NewBlockBlobClient(full), nil
}

func (s *Store) full(key string) string {
	if s.o.Prefix == "" {
		return key
	}
	return s.o.Prefix + "/" + key
}

// Put implements [objstore.Store].
func (s *Store) Put(ctx context.Context, key string, data []byte) error {
	return wrap("put", key, s.put(ctx, key, data, nil))
}

// PutIfAbsent implements [objstore.Store].
func (s *Store) PutIfAbsent(ctx context.Context, key string, data []byte) error {
	anything := azcore.ETagAny
	absent := &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: &anything}}
	return wrap("put if absent", key, s.put(ctx, key, data, absent))
}

func (s *Store) put(ctx context.Context, key string, data []byte, conditions *blob.AccessConditions) error {
	client, err := s.blob(key)
	if err != nil {
		return err
	}
	return s.o.Write(ctx, func(ctx context.Context) error {
		_, err := client.Upload(ctx, streaming.NopCloser(bytes.NewReader(data)), &blockblob.UploadOptions{AccessConditions: conditions})
		return err
	})
}

// Delete implements [objstore.Store].
func (s *Store) Delete(ctx context.Context, key string) error {
	client, err := s.blob(key)
	if err != nil {
		return wrap("delete", key, err)
	}
	err = s.o.Write(ctx, func(ctx context.Context) error {
		_, err := client.Delete(ctx, nil)
		return err
	})
	if errors.Is(err, objstore.ErrNotFound) {
		return nil
	}
	return wrap("delete", key, err)
}

// Stat implements [objstore.Store].
func (s *Store) Stat(ctx context.Context, key string) (objstore.Info, error) {
	client, err := s.blob(key)
	if err != nil {
		return objstore.Info{}, wrap("stat", key, err)
	}
	info, err := retry.Read(ctx, &s.o.Policy, func(ctx context.Context) (objstore.Info, error) {
		p, err := client.GetProperties(ctx, nil)
		if err != nil {
			return objstore.Info{}, err
		}
		return objstore.Info{Key: key, Size: value(p.ContentLength), ModTime: value(p.LastModified), ETag: string(value(p.ETag))}, nil
	})
	return info, wrap("stat", key, err)
}

// List implements [objstore.Store]: one request for each 5,000 objects from the start of the prefix.
func (s *Store) List(ctx context.Context, prefix, after string, max int) ([]objstore.Info, error) {
	if err := errors.Join(objstore.ValidatePrefix(prefix), objstore.ValidatePrefix(after)); err != nil {
		return nil, wrap("list", prefix, err)
	}
	full := s.full(prefix)
	options := &container.ListBlobsFlatOptions{Prefix: &full}
	if max > 0 && after == "" {
		n := int32(min(max, 5000))
		options.MaxResults = &n
	}
	var found []objstore.Info
	for pager := s.container.NewListBlobsFlatPager(options); pager.More() && (max == 0 || len(found) < max); {
		page, err := retry.Read(ctx, &s.o.Policy, pager.NextPage)
		if err != nil {
			return nil, wrap("list", prefix, err)
		}
		for _, item := range page.Segment.BlobItems {
			if info := s.info(item); info.Key > after && !strings.HasSuffix(info.Key, "/") && (max == 0 || len(found) < max) {
				found = append(found, info)
			}
		}
	}
	return found, nil
}

func (s *Store) info(item *container.BlobItem) objstore.Info {
	key := value(item.Name)
	if s.o.Prefix != "" {
		key = strings.TrimPrefix(key, s.o.Prefix+"/")
	}
	info := objstore.Info{Key: key}
	if p := item.Properties; p != nil {
		info.Size, info.ModTime, info.ETag = value(p.ContentLength), value(p.LastModified), string(value(p.ETag))
	}
	return info
}

// judge tells what is known after a request that ended in err.
func judge(err error) (retry.Verdict, error) {
	var response *azcore.ResponseError
	if !errors.As(err, &response) {
		return retry.ByStatus(0, err)
	}
	switch response.ErrorCode {
	case "BlobAlreadyExists":
		return retry.Definite, fmt.Errorf("%w: %w", objstore.ErrExists, err)
	case "ContainerNotFound":
		return retry.Definite, err
	default:
		return retry.ByStatus(response.StatusCode, err)
	}
}

// value is what a pointer of an answer points at, or the zero value.
func value[T any](p *T) T {
	if p == nil {
		var none T
		return none
	}
	return *p
}

// wrap names operation and key.
func wrap(op, key string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("azurestore: %s %q: %w", op, key, err)
}
