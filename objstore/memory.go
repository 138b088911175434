package objstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Memory is a store in the memory of one process, for tests and for graphs that need not outlive it.
// It keeps the semantics of the real ones; what is lost with the process is the difference.
type Memory struct {
	mu      sync.RWMutex
	objects map[string]object
	keys    []string // of objects, sorted
	puts    uint64   // makes the tags
}

type object struct {
	data    []byte // never changed once stored
	modTime time.Time
	tag     string
}

var _ Store = (*Memory)(nil)

// NewMemory makes an empty store.
func NewMemory() *Memory { return &Memory{objects: map[string]object{}} }

// Get implements [Store].
func (m *Memory) Get(ctx context.Context, key string) ([]byte, error) {
	o, err := m.find(ctx, key)
	if err == nil && len(o.data) > MaxGetBytes {
		err = ErrTooLarge
	}
	if err != nil {
		return nil, opError("get", key, err)
	}
	return bytes.Clone(o.data), nil
}

// GetRange implements [Store].
func (m *Memory) GetRange(ctx context.Context, key string, off, n int64) ([]byte, error) {
	o, err := m.find(ctx, key)
	if err == nil {
		err = checkRange(off, n, int64(len(o.data)))
	}
	if err != nil {
		return nil, opError("get range of", key, err)
	}
	return bytes.Clone(o.data[off : off+n]), nil
}

// GetTail implements [Store].
func (m *Memory) GetTail(ctx context.Context, key string, n int64) ([]byte, int64, error) {
	o, err := m.find(ctx, key)
	if err != nil {
		return nil, 0, opError("get tail of", key, err)
	}
	size := int64(len(o.data))
	off, n, err := tailRange(n, size)
	if err != nil {
		return nil, 0, opError("get tail of", key, err)
	}
	return bytes.Clone(o.data[off : off+n]), size, nil
}

// Stat implements [Store].
func (m *Memory) Stat(ctx context.Context, key string) (Info, error) {
	o, err := m.find(ctx, key)
	if err != nil {
		return Info{}, opError("stat", key, err)
	}
	return o.info(key), nil
}

// Put implements [Store].
func (m *Memory) Put(ctx context.Context, key string, data []byte) error {
	_, err := m.store(ctx, key, bytes.Clone(data), false)
	return opError("put", key, err)
}

// PutIfAbsent implements [Store].
func (m *Memory) PutIfAbsent(ctx context.Context, key string, data []byte) error {
	_, err := m.store(ctx, key, bytes.Clone(data), true)
	return opError("put if absent", key, err)
}

// Delete implements [Store].
func (m *Memory) Delete(ctx context.Context, key string) error {
	if err := check(ctx, key); err != nil {
		return opError("delete", key, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.objects[key]; ok {
		delete(m.objects, key)
		i := sort.SearchStrings(m.keys, key)
		m.keys = slices.Delete(m.keys, i, i+1)
	}
	return nil
}

// List implements [Store].
func (m *Memory) List(ctx context.Context, prefix, after string, max int) ([]Info, error) {
	if err := errors.Join(ValidatePrefix(prefix), ValidatePrefix(after), ctx.Err()); err != nil {
		return nil, opError("list", prefix, err)
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	var found []Info
	for _, key := range m.keys[sort.SearchStrings(m.keys, prefix):] {
		if !strings.HasPrefix(key, prefix) || max > 0 && len(found) >= max {
			break
		}
		if key > after {
			found = append(found, m.objects[key].info(key))
		}
	}
	return found, nil
}

// Create implements [Store]. The object is held in memory whole.
func (m *Memory) Create(ctx context.Context, key string) (Upload, error) {
	if err := check(ctx, key); err != nil {
		return nil, opError("create", key, err)
	}
	return &memoryUpload{ctx: ctx, store: m, key: key}, nil
}

type memoryUpload struct {
	ctx   context.Context // of Create: an upload is one call that is spread over several methods
	store *Memory
	key   string
	data  []byte
	ended bool
}

// Write implements io.Writer.
func (u *memoryUpload) Write(p []byte) (int, error) {
	if u.ended {
		return 0, opError("write", u.key, ErrClosed)
	}
	if err := u.ctx.Err(); err != nil {
		return 0, opError("write", u.key, err)
	}
	u.data = append(u.data, p...)
	return len(p), nil
}

// Commit implements [Upload].
func (u *memoryUpload) Commit() (Info, error) {
	if u.ended {
		return Info{}, opError("commit", u.key, ErrClosed)
	}
	u.ended = true
	info, err := u.store.store(u.ctx, u.key, u.data, false)
	return info, opError("commit", u.key, err)
}

// Abort implements [Upload].
func (u *memoryUpload) Abort() error {
	u.ended, u.data = true, nil
	return nil
}

func (m *Memory) find(ctx context.Context, key string) (object, error) {
	if err := check(ctx, key); err != nil {
		return object{}, err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	o, ok := m.objects[key]
	if !ok {
		return object{}, ErrNotFound
	}
	return o, nil
}

// store keeps data, which it takes over.
func (m *Memory) store(ctx context.Context, key string, data []byte, ifAbsent bool) (Info, error) {
	if err := check(ctx, key); err != nil {
		return Info{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.objects[key]; !ok {
		i := sort.SearchStrings(m.keys, key)
		m.keys = slices.Insert(m.keys, i, key)
	} else if ifAbsent {
		return Info{}, ErrExists
	}
	m.puts++
	o := object{data: data, modTime: time.Now(), tag: strconv.FormatUint(m.puts, 36)}
	m.objects[key] = o
	return o.info(key), nil
}

func (o object) info(key string) Info {
	return Info{Key: key, Size: int64(len(o.data)), ModTime: o.modTime, ETag: o.tag}
}

// check is what every call with a key begins with.
func check(ctx context.Context, key string) error {
	if err := ValidateKey(key); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("not started: %w", err)
	}
	return nil
}
