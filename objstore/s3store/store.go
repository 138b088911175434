package s3store

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/retry"
)

// Store is a bucket, or what is below a prefix of one. Make one with [Open].
type Store struct {
	client *s3.Client
	o      Options
}

var _ objstore.Store = (*Store)(nil)

// Open makes the client of a bucket. It reads the standard configuration, but does not call the server;
// [objstore.Probe] does.
func Open(ctx context.Context, o Options) (*Store, error) {
	o.EnsureDefaults()
	o.Judge = judge
	if err := o.Validate(); err != nil {
		return nil, err
	}
	// Repeats are made here, where it is known what a repeat means.
	load := []func(*config.LoadOptions) error{config.WithRetryer(func() aws.Retryer { return aws.NopRetryer{} })}
	if o.Region != "" {
		load = append(load, config.WithRegion(o.Region))
	}
	cfg, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return nil, fmt.Errorf("s3store: %w", err)
	}
	if cfg.Region == "" && o.Endpoint != "" {
		cfg.Region = "us-east-1"
	}
	client := s3.NewFromConfig(cfg, func(so *s3.Options) {
		so.UsePathStyle = o.PathStyle
		if o.Endpoint != "" {
			so.BaseEndpoint = &o.Endpoint
			// Servers other than Amazon's may not know the checksums that the SDK adds by itself.
			so.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
			so.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		}
	})
	return &Store{client: client, o: o}, nil
}

// key is a key in the bucket, checked; with the prefix it must keep the bound of S3.
func (s *Store) key(key string) (*string, error) {
	if err := objstore.ValidateKey(key); err != nil {
		return nil, err
	}
	full := s.full(key)
	if len(full) > objstore.MaxKeyBytes {
		return nil, fmt.Errorf("%w: %d bytes with the prefix, at most %d", objstore.ErrInvalidKey, len(full), objstore.MaxKeyBytes)
	}
	return &full, nil
}

func (s *Store) full(key string) string {
	if s.o.Prefix == "" {
		return key
	}
	return s.o.Prefix + "/" + key
}

// Put implements [objstore.Store].
func (s *Store) Put(ctx context.Context, key string, data []byte) error {
	return wrap("put", key, s.put(ctx, key, data))
}

func (s *Store) put(ctx context.Context, key string, data []byte) error {
	full, err := s.key(key)
	if err != nil {
		return err
	}
	return s.o.Write(ctx, func(ctx context.Context) error {
		_, err := s.client.PutObject(ctx, &s3.PutObjectInput{Bucket: &s.o.Bucket, Key: full, Body: bytes.NewReader(data)})
		return err
	})
}

// PutIfAbsent implements [objstore.Store].
func (s *Store) PutIfAbsent(ctx context.Context, key string, data []byte) error {
	full, err := s.key(key)
	if err != nil {
		return wrap("put if absent", key, err)
	}
	return wrap("put if absent", key, s.o.Write(ctx, func(ctx context.Context) error {
		_, err := s.client.PutObject(ctx, &s3.PutObjectInput{
			Bucket: &s.o.Bucket, Key: full, Body: bytes.NewReader(data), IfNoneMatch: aws.String("*"),
		})
		return err
	}))
}

// Delete implements [objstore.Store].
func (s *Store) Delete(ctx context.Context, key string) error {
	full, err := s.key(key)
	if err != nil {
		return wrap("delete", key, err)
	}
	err = s.o.Write(ctx, func(ctx context.Context) error {
		_, err := s.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.o.Bucket, Key: full})
		return err
	})
	return wrap("delete", key, err)
}

// Stat implements [objstore.Store].
func (s *Store) Stat(ctx context.Context, key string) (objstore.Info, error) {
	full, err := s.key(key)
	if err != nil {
		return objstore.Info{}, wrap("stat", key, err)
	}
	info, err := retry.Read(ctx, &s.o.Policy, func(ctx context.Context) (objstore.Info, error) {
		out, err := s.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &s.o.Bucket, Key: full})
		if err != nil {
			return objstore.Info{}, err
		}
		return objstore.Info{
			Key: key, Size: aws.ToInt64(out.ContentLength), ModTime: aws.ToTime(out.LastModified), ETag: aws.ToString(out.ETag),
		}, nil
	})
	return info, wrap("stat", key, err)
}

// List implements [objstore.Store]: one request for each 1,000 objects.
func (s *Store) List(ctx context.Context, prefix, after string, max int) ([]objstore.Info, error) {
	for _, text := range []string{prefix, after} {
		if err := objstore.ValidatePrefix(text); err != nil {
			return nil, wrap("list", prefix, err)
		}
	}
	in := &s3.ListObjectsV2Input{Bucket: &s.o.Bucket, Prefix: aws.String(s.full(prefix))}
	if s.full(prefix) == "" {
		in.Prefix = nil
	}
	if after != "" {
		in.StartAfter = aws.String(s.full(after))
	}
	var found []objstore.Info
	for {
		if max > 0 {
			in.MaxKeys = aws.Int32(int32(min(max-len(found), 1000)))
		}
		out, err := retry.Read(ctx, &s.o.Policy, func(ctx context.Context) (*s3.ListObjectsV2Output, error) {
			return s.client.ListObjectsV2(ctx, in)
		})
		if err == nil {
			found, err = s.addPage(found, out)
		}
		if err != nil {
			return nil, wrap("list", prefix, err)
		}
		if !aws.ToBool(out.IsTruncated) || max > 0 && len(found) >= max {
			return found, nil
		}
		in.ContinuationToken = out.NextContinuationToken
	}
}

// addPage adds the objects of a page. Markers of directories, which tools make, are no objects of ours.
func (s *Store) addPage(found []objstore.Info, page *s3.ListObjectsV2Output) ([]objstore.Info, error) {
	if aws.ToBool(page.IsTruncated) && aws.ToString(page.NextContinuationToken) == "" {
		return nil, fmt.Errorf("%w: the listing is cut short and cannot be continued", objstore.ErrUnsupported)
	}
	for _, o := range page.Contents {
		key := aws.ToString(o.Key)
		if s.o.Prefix != "" {
			key = strings.TrimPrefix(key, s.o.Prefix+"/")
		}
		if strings.HasSuffix(key, "/") {
			continue
		}
		if len(found) > 0 && key <= found[len(found)-1].Key {
			return nil, fmt.Errorf("%w: the bucket does not list in key order", objstore.ErrUnsupported)
		}
		found = append(found, objstore.Info{Key: key, Size: aws.ToInt64(o.Size), ModTime: aws.ToTime(o.LastModified), ETag: aws.ToString(o.ETag)})
	}
	return found, nil
}

// wrap names operation and key.
func wrap(op, key string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("s3store: %s %q: %w", op, key, err)
}
