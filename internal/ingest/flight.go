package ingest

import (
	"context"
	"sync"
)

// flight counts what was taken and is not yet answered, and refuses what would pass the bounds.
type flight struct {
	maxMessages int
	maxBytes    int64

	mu       sync.Mutex
	messages int
	bytes    int64
	empty    chan struct{} // closed when the last message is answered; nil while nobody waits
}

func newFlight(maxMessages int, maxBytes int64) *flight {
	return &flight{maxMessages: maxMessages, maxBytes: maxBytes}
}

// take admits a message of size bytes. One above the bound of bytes is admitted when it is alone.
func (f *flight) take(size int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.messages >= f.maxMessages || f.messages > 0 && f.bytes+size > f.maxBytes {
		return false
	}
	f.messages++
	f.bytes += size
	return true
}

// forget gives back bytes of a message that stays in flight.
func (f *flight) forget(size int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.bytes -= size
}

// done gives back a message that was answered.
func (f *flight) done(size int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.messages--
	f.bytes -= size
	if f.messages == 0 && f.empty != nil {
		close(f.empty)
		f.empty = nil
	}
}

// wait returns when nothing is in flight, or ctx ends; left is what is still in flight.
func (f *flight) wait(ctx context.Context) (left int) {
	f.mu.Lock()
	if f.messages == 0 {
		f.mu.Unlock()
		return 0
	}
	if f.empty == nil {
		f.empty = make(chan struct{})
	}
	empty := f.empty
	f.mu.Unlock()
	select {
	case <-empty:
		return 0
	case <-ctx.Done():
		left, _ := f.load()
		return left
	}
}

// load is what is in flight now.
func (f *flight) load() (messages int, bytes int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.messages, f.bytes
}
