package countstore

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/foldline/foldline/objstore"
)

// Call is one call that was made. The Op is the method's name in lower case with underscores; an upload
// is recorded once, as "upload", when it is committed.
type Call struct {
	Op    string
	Key   string // the prefix of a list
	Bytes int64  // read or written
	Err   error
}

// String is the call for a test's message.
func (c Call) String() string {
	text := fmt.Sprintf("%s %s (%d bytes)", c.Op, c.Key, c.Bytes)
	if c.Err != nil {
		text += ": " + c.Err.Error()
	}
	return text
}

// Counts are calls per operation, failed ones included, and bytes of those that succeeded.
type Counts struct {
	Get, GetRange, GetTail, Put, PutIfAbsent, Upload, List, Stat, Delete int
	ReadBytes, WrittenBytes                                              int64
}

// Reads is how many requests read: gets of all kinds, lists and stats.
func (c Counts) Reads() int { return c.Get + c.GetRange + c.GetTail + c.List + c.Stat }

// Writes is how many requests write: puts of both kinds, uploads and deletes. A large upload takes more
// requests of an object store than the one that is counted.
func (c Counts) Writes() int { return c.Put + c.PutIfAbsent + c.Upload + c.Delete }

// Requests is Reads and Writes.
func (c Counts) Requests() int { return c.Reads() + c.Writes() }

// Store is a store that counts. Make one with [New]; it may be called concurrently.
type Store struct {
	inner objstore.Store

	mu    sync.Mutex
	calls []Call
}

var _ objstore.Store = (*Store)(nil)

// New wraps inner.
func New(inner objstore.Store) *Store { return &Store{inner: inner} }

// Reset forgets all calls so far.
func (s *Store) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = nil
}

// Calls are the calls since the last Reset, in the order in which they ended.
func (s *Store) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Call(nil), s.calls...)
}

// Counts sums up all calls since the last Reset.
func (s *Store) Counts() Counts { return s.Under("") }

// Under sums up the calls since the last Reset whose keys start with prefix.
func (s *Store) Under(prefix string) Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	var sum Counts
	for _, c := range s.calls {
		if strings.HasPrefix(c.Key, prefix) {
			sum.add(c)
		}
	}
	return sum
}

func (c *Counts) add(call Call) {
	count, bytes := c.of(call.Op)
	*count++
	if call.Err == nil && bytes != nil {
		*bytes += call.Bytes
	}
}

// of are the counter of an operation and the sum of its bytes, if it has any.
func (c *Counts) of(op string) (count *int, bytes *int64) {
	switch op {
	case "get":
		return &c.Get, &c.ReadBytes
	case "get_range":
		return &c.GetRange, &c.ReadBytes
	case "get_tail":
		return &c.GetTail, &c.ReadBytes
	case "put":
		return &c.Put, &c.WrittenBytes
	case "put_if_absent":
		return &c.PutIfAbsent, &c.WrittenBytes
	case "upload":
		return &c.Upload, &c.WrittenBytes
	case "list":
		return &c.List, nil
	case "stat":
		return &c.Stat, nil
	default:
		return &c.Delete, nil
	}
}

func (s *Store) record(op, key string, bytes int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, Call{Op: op, Key: key, Bytes: int64(bytes), Err: err})
}

// Get implements [objstore.Store].
func (s *Store) Get(ctx context.Context, key string) ([]byte, error) {
	data, err := s.inner.Get(ctx, key)
	s.record("get", key, len(data), err)
	return data, err
}

// GetRange implements [objstore.Store].
func (s *Store) GetRange(ctx context.Context, key string, off, n int64) ([]byte, error) {
	data, err := s.inner.GetRange(ctx, key, off, n)
	s.record("get_range", key, len(data), err)
	return data, err
}

// GetTail implements [objstore.Store].
func (s *Store) GetTail(ctx context.Context, key string, n int64) ([]byte, int64, error) {
	data, size, err := s.inner.GetTail(ctx, key, n)
	s.record("get_tail", key, len(data), err)
	return data, size, err
}

// Put implements [objstore.Store].
func (s *Store) Put(ctx context.Context, key string, data []byte) error {
	err := s.inner.Put(ctx, key, data)
	s.record("put", key, len(data), err)
	return err
}

// PutIfAbsent implements [objstore.Store].
func (s *Store) PutIfAbsent(ctx context.Context, key string, data []byte) error {
	err := s.inner.PutIfAbsent(ctx, key, data)
	s.record("put_if_absent", key, len(data), err)
	return err
}

// List implements [objstore.Store].
func (s *Store) List(ctx context.Context, prefix, after string, max int) ([]objstore.Info, error) {
	infos, err := s.inner.List(ctx, prefix, after, max)
	s.record("list", prefix, 0, err)
	return infos, err
}

// Stat implements [objstore.Store].
func (s *Store) Stat(ctx context.Context, key string) (objstore.Info, error) {
	info, err := s.inner.Stat(ctx, key)
	s.record("stat", key, 0, err)
	return info, err
}

// Delete implements [objstore.Store].
func (s *Store) Delete(ctx context.Context, key string) error {
	err := s.inner.Delete(ctx, key)
	s.record("delete", key, 0, err)
	return err
}

// Create implements [objstore.Store].
func (s *Store) Create(ctx context.Context, key string) (objstore.Upload, error) {
	u, err := s.inner.Create(ctx, key)
	if err != nil {
		return nil, err
	}
	return &upload{Upload: u, store: s, key: key}, nil
}

type upload struct {
	objstore.Upload
	store *Store
	key   string
}

// Commit implements [objstore.Upload].
func (u *upload) Commit() (objstore.Info, error) {
	info, err := u.Upload.Commit()
	u.store.record("upload", u.key, int(info.Size), err)
	return info, err
}
