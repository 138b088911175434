package gcsstore

import (
	"context"
	"errors"
	"fmt"

	"cloud.google.com/go/storage"
	"golang.org/x/oauth2"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/internal/bucket"
	"github.com/foldline/foldline/objstore/retry"
)

const driverName = "gcsstore"

// Store is a bucket, or what is below a prefix of one. Make one with [Open].
type Store struct {
	*bucket.Store
	client *storage.Client
}

// Open makes the client of a bucket. It reads the credentials, but does not call the service;
// [objstore.Probe] does.
func Open(ctx context.Context, o Options) (*Store, error) {
	o.EnsureDefaults()
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o.Judge = judge
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
		return nil, fmt.Errorf("%w: %s: %w", objstore.ErrDenied, driverName, err) // there are no credentials
	}
	// Repeats are made by package retry, where it is known what a repeat means.
	client.SetRetry(storage.WithPolicy(storage.RetryNever))
	d := &driver{bucket: client.Bucket(o.Bucket), o: o.Options}
	return &Store{Store: bucket.New(driverName, "gs", d, o.Options), client: client}, nil
}

// Close ends the client's connections.
func (s *Store) Close() error { return s.client.Close() }

// judge tells what is known after a request that ended in an error.
func judge(err error) (retry.Verdict, error) {
	var api *googleapi.Error
	var token *oauth2.RetrieveError
	var streamed *streamError
	switch {
	case errors.As(err, &streamed):
		verdict, err := judge(streamed.err)
		return verdict.Final(), err
	case errors.Is(err, storage.ErrObjectNotExist):
		return retry.Definite, fmt.Errorf("%w: %w", objstore.ErrNotFound, err)
	case errors.Is(err, storage.ErrBucketNotExist):
		return retry.Definite, fmt.Errorf("%w: %w", objstore.ErrNoBucket, err)
	case errors.As(err, &token): // no request was sent
		return retry.Definite, fmt.Errorf("%w: %w", objstore.ErrDenied, err)
	case errors.As(err, &api):
		return retry.ByStatus(api.Code, err)
	default:
		return retry.ByStatus(0, err)
	}
}
