package objstore

import (
	"context"
	"io"
	"time"
)

// MaxGetBytes bounds an object that Get reads whole; larger ones are read by range. It keeps a hostile
// or damaged directory from exhausting memory, and is far above any manifest or fold record.
const MaxGetBytes = 1 << 30

// Info describes one stored object.
type Info struct {
	Key     string
	Size    int64     // bytes
	ModTime time.Time // the store's clock, not ours; orders nothing
	ETag    string    // changes when the content does; empty when a backend has none
}

// Store is a flat space of objects named by keys.
//
// Methods block on disk or network, honour their context, may be called concurrently, and neither keep
// nor change the slices given to them; slices they return belong to the caller. Every error wraps one
// of this package's sentinels, a context's error, or the system's own error, and names operation and key.
// A malformed key is [ErrInvalidKey] everywhere. Repeating a read, a Put or a Delete is harmless.
type Store interface {
	// Get reads a whole object. ErrNotFound when there is none, ErrTooLarge above MaxGetBytes.
	Get(ctx context.Context, key string) ([]byte, error)

	// GetRange reads exactly n bytes from offset off (both not negative). ErrNotFound when there is no
	// such object, ErrRange when it ends before off+n; nothing is allocated for bytes that are not there.
	GetRange(ctx context.Context, key string, off, n int64) ([]byte, error)

	// GetTail reads the last min(n, size) bytes and reports the object's size, in one request.
	GetTail(ctx context.Context, key string, n int64) (data []byte, size int64, err error)

	// Put writes an object, replacing what is there. Durable when it returns nil. ErrUnknownOutcome
	// when the object may or may not have been replaced.
	Put(ctx context.Context, key string, data []byte) error

	// PutIfAbsent writes an object unless the key is taken. Durable when it returns nil. ErrExists when
	// there is one, and then nothing was changed; ErrUnknownOutcome when the answer was lost.
	PutIfAbsent(ctx context.Context, key string, data []byte) error

	// Create starts a put of an object whose size is not known yet, with memory bounded by the backend.
	// The context must outlive the upload. Nothing is visible before Commit.
	Create(ctx context.Context, key string) (Upload, error)

	// List returns objects whose keys start with prefix (plain text, it need not end at a slash) and
	// are greater than after, ordered by the bytes of the key, at most max of them (0 means all). A
	// local disk reads only the directories that can hold such keys.
	List(ctx context.Context, prefix, after string, max int) ([]Info, error)

	// Stat describes one object. ErrNotFound when there is none.
	Stat(ctx context.Context, key string) (Info, error)

	// Delete removes an object; that there is none is no error. A crash of the machine soon after may
	// bring it back on a local disk.
	Delete(ctx context.Context, key string) error
}

// Upload is a put in progress. It belongs to one goroutine and must end in Commit or Abort.
type Upload interface {
	io.Writer

	// Commit makes the object durable and visible, replacing what was at its key, and describes it.
	// ErrUnknownOutcome when the answer was lost. After an error the upload is aborted.
	Commit() (Info, error)

	// Abort drops what was written. After Commit, or a second time, it does nothing.
	Abort() error
}
