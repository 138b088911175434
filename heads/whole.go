package heads

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/foldline/foldline/objstore"
)

// wholeReads is a store that reads each data file by one Get of the whole object and answers every later range of it from
// memory. The fragments of a manifest are small and always read completely, so this makes a resolve's requests countable: one for
// each file. After drop it is a plain pass-through, which keeps the table usable for commits.
type wholeReads struct {
	objstore.Store
	mu     sync.Mutex
	files  map[string][]byte // nil after drop; guarded by mu
	prefix string
}

func newWholeReads(store objstore.Store, tableRoot string) *wholeReads {
	return &wholeReads{Store: store, files: map[string][]byte{}, prefix: tableRoot + "/data/"}
}

func (w *wholeReads) drop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.files = nil
}

// forget lets go of the files read so far; later ones are read whole again.
func (w *wholeReads) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.files)
}

// load holds the lock over the read: a second reader of the same file must wait for it, not repeat it.
func (w *wholeReads) load(ctx context.Context, key string) ([]byte, bool, error) {
	if !strings.HasPrefix(key, w.prefix) {
		return nil, false, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.files == nil {
		return nil, false, nil
	}
	if data, ok := w.files[key]; ok {
		return data, true, nil
	}
	data, err := w.Get(ctx, key)
	if err != nil {
		return nil, true, err
	}
	w.files[key] = data
	return data, true, nil
}

func (w *wholeReads) GetRange(ctx context.Context, key string, off, n int64) ([]byte, error) {
	data, mine, err := w.load(ctx, key)
	if !mine {
		return w.Store.GetRange(ctx, key, off, n)
	}
	if err != nil {
		return nil, err
	}
	if off < 0 || n < 0 || off > int64(len(data)) || n > int64(len(data))-off {
		return nil, fmt.Errorf("%w: %q [%d,+%d) of %d bytes", objstore.ErrRange, key, off, n, len(data))
	}
	return append([]byte(nil), data[off:off+n]...), nil
}

func (w *wholeReads) GetTail(ctx context.Context, key string, n int64) ([]byte, int64, error) {
	data, mine, err := w.load(ctx, key)
	if !mine {
		return w.Store.GetTail(ctx, key, n)
	}
	if err != nil {
		return nil, 0, err
	}
	from := max(0, int64(len(data))-max(0, n))
	return append([]byte(nil), data[from:]...), int64(len(data)), nil
}
