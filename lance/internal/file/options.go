package file

import (
	"fmt"

	"github.com/apache/arrow/go/v17/arrow/memory"
)

const (
	defaultPageBytes   = 8 << 20
	defaultWindowBytes = 8 << 20
	defaultBatchRows   = 8192

	minPageBytes = 4 << 10
	maxPageBytes = 1 << 30
)

// WriterOptions tunes a Writer. The zero value is ready to use.
type WriterOptions struct {
	// Version of the file; zero is V21.
	Version Version
	// PageBytes is the uncompressed size at which the page of a column is cut, and so what a Writer holds per
	// column; zero is 8 MiB, at least 4 KiB, at most 1 GiB. Small pages cost size and requests, large ones
	// memory. A single row may be larger and makes a page of its own.
	PageBytes int64
}

func (o *WriterOptions) ensureDefaults() error {
	if o.Version == (Version{}) {
		o.Version = V21
	}
	if o.PageBytes == 0 {
		o.PageBytes = defaultPageBytes
	}
	if o.Version != V20 && o.Version != V21 && o.Version != V22 {
		return fmt.Errorf("%w: writing version %s", ErrUnsupported, o.Version)
	}
	if o.PageBytes < minPageBytes || o.PageBytes > maxPageBytes {
		return fmt.Errorf("%w: pages of %d bytes", ErrInvalid, o.PageBytes)
	}
	return nil
}

// ReaderOptions tunes a Reader. The zero value is ready to use.
type ReaderOptions struct {
	// Name of the file in errors.
	Name string
	// Size of the file in bytes; 0 when it is not known, which makes the first request ask for it.
	Size int64
	// Allocator of the records' memory; nil is the Go allocator.
	Allocator memory.Allocator
	// WindowBytes bounds what a scan reads ahead per column; zero is 8 MiB. A chunk or value that is larger is
	// read whole.
	WindowBytes int64
}

func (o *ReaderOptions) ensureDefaults() {
	if o.Allocator == nil {
		o.Allocator = memory.DefaultAllocator
	}
	if o.WindowBytes <= 0 {
		o.WindowBytes = defaultWindowBytes
	}
}
