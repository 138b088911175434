package bucket

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/retry"
)

// Store is a bucket, or what is below a prefix of one.
type Store struct {
	driver Driver
	name   string // of the driver, for errors
	scheme string // of the service's URIs
	o      Options
}

var (
	_ objstore.Store   = (*Store)(nil)
	_ objstore.Locator = (*Store)(nil)
)

// New makes a store of a driver, named by URIs of the given scheme. The options must be complete and valid, the Judge included.
func New(name, scheme string, driver Driver, o Options) *Store {
	return &Store{driver: driver, name: name, scheme: scheme, o: o}
}

// Locate implements [objstore.Locator].
func (s *Store) Locate(address string) (string, bool) {
	return objstore.Below(s.scheme+"://"+s.o.Bucket+"/"+s.o.Prefix, address)
}

// key is the name of a key in the bucket, checked; with the prefix it must keep the bound that all services have.
func (s *Store) key(key string) (string, error) {
	if err := objstore.ValidateKey(key); err != nil {
		return "", err
	}
	name := s.full(key)
	if len(name) > objstore.MaxKeyBytes {
		return "", fmt.Errorf("%w: %d bytes with the prefix, at most %d", objstore.ErrInvalidKey, len(name), objstore.MaxKeyBytes)
	}
	return name, nil
}

func (s *Store) full(key string) string {
	if s.o.Prefix == "" {
		return key
	}
	return s.o.Prefix + "/" + key
}

// Put implements [objstore.Store].
func (s *Store) Put(ctx context.Context, key string, data []byte) error {
	return s.wrap("put", key, s.put(ctx, key, data, false))
}

// PutIfAbsent implements [objstore.Store].
func (s *Store) PutIfAbsent(ctx context.Context, key string, data []byte) error {
	return s.wrap("put if absent", key, s.put(ctx, key, data, true))
}

func (s *Store) put(ctx context.Context, key string, data []byte, absent bool) error {
	name, err := s.key(key)
	if err != nil {
		return err
	}
	return s.o.Write(ctx, func(ctx context.Context) error { return s.driver.Put(ctx, name, data, absent) })
}

// Delete implements [objstore.Store].
func (s *Store) Delete(ctx context.Context, key string) error {
	name, err := s.key(key)
	if err == nil {
		err = s.o.Write(ctx, func(ctx context.Context) error { return s.driver.Delete(ctx, name) })
	}
	if errors.Is(err, objstore.ErrNotFound) {
		return nil
	}
	return s.wrap("delete", key, err)
}

// Stat implements [objstore.Store].
func (s *Store) Stat(ctx context.Context, key string) (objstore.Info, error) {
	info, err := s.stat(ctx, key)
	return info, s.wrap("stat", key, err)
}

func (s *Store) stat(ctx context.Context, key string) (objstore.Info, error) {
	name, err := s.key(key)
	if err != nil {
		return objstore.Info{}, err
	}
	info, err := retry.Read(ctx, &s.o.Policy, func(ctx context.Context) (objstore.Info, error) { return s.driver.Head(ctx, name) })
	if err == nil && info.Size < 0 {
		err = fmt.Errorf("%w: an object of %d bytes", objstore.ErrUnsupported, info.Size)
	}
	info.Key = key
	return info, err
}

// List implements [objstore.Store]: one request for each page of the service.
func (s *Store) List(ctx context.Context, prefix, after string, max int) ([]objstore.Info, error) {
	found, err := s.list(ctx, prefix, after, max)
	return found, s.wrap("list", prefix, err)
}

func (s *Store) list(ctx context.Context, prefix, after string, max int) ([]objstore.Info, error) {
	if err := errors.Join(objstore.ValidatePrefix(prefix), objstore.ValidatePrefix(after)); err != nil {
		return nil, err
	}
	q := Query{Prefix: s.full(prefix)}
	if after != "" {
		q.After = s.full(after)
	}
	var found []objstore.Info
	for {
		if max > 0 {
			q.Max = max - len(found)
		}
		page, err := retry.Read(ctx, &s.o.Policy, func(ctx context.Context) (Page, error) { return s.driver.List(ctx, q) })
		if err != nil {
			return nil, err
		}
		if found, err = s.add(found, page, after, max); err != nil {
			return nil, err
		}
		if page.Token == "" || max > 0 && len(found) >= max {
			return found, nil
		}
		q.Token = page.Token
	}
}

// add adds the objects of a page that were asked for. Markers of directories, which tools make, are no objects
// of ours. A service that does not list in key order cannot tell what is newest, and is refused.
func (s *Store) add(found []objstore.Info, page Page, after string, max int) ([]objstore.Info, error) {
	last := ""
	for _, o := range page.Infos {
		if s.o.Prefix != "" {
			o.Key = strings.TrimPrefix(o.Key, s.o.Prefix+"/")
		}
		if len(found) > 0 {
			last = found[len(found)-1].Key
		}
		switch {
		case strings.HasSuffix(o.Key, "/"), o.Key <= after:
			continue
		case o.Key <= last:
			return nil, fmt.Errorf("%w: the bucket does not list in key order", objstore.ErrUnsupported)
		case max > 0 && len(found) >= max:
			return found, nil
		}
		found = append(found, o)
	}
	return found, nil
}

// wrap names driver, operation and key.
func (s *Store) wrap(op, key string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %s %q: %w", s.name, op, key, err)
}
