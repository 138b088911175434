package bucket

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/foldline/foldline/objstore"
)

// Driver makes the requests of one service. Names are keys with the prefix of the store, checked. Each method
// makes one request (or as few as the service allows), is given a context with the time limit of one attempt,
// may be called concurrently, and returns the SDK's error as it is: the store's retry.Policy judges it.
type Driver interface {
	// Head describes an object; the Key of the answer is not looked at.
	Head(ctx context.Context, name string) (objstore.Info, error)
	// Get starts a read. The caller closes the body.
	Get(ctx context.Context, name string, r Range) (Body, error)
	// Put writes an object whole; if absent, only when there is none.
	Put(ctx context.Context, name string, data []byte, absent bool) error
	// Delete removes an object; that there is none is no error, or objstore.ErrNotFound after judging.
	Delete(ctx context.Context, name string) error
	// List reads one page. It may begin before q.After and may be shorter than q.Max.
	List(ctx context.Context, q Query) (Page, error)
	// Upload prepares a streaming put in parts. It makes no request; ctx is that of the whole upload.
	Upload(ctx context.Context, name string) Parts
}

// Range is what a read asks for: the whole object, N bytes from Off, or, with Suffix, the last N bytes.
type Range struct {
	Whole  bool
	Suffix bool
	Off, N int64
}

// Header is the range as HTTP spells it. Not for a whole read.
func (r Range) Header() string {
	if r.Suffix {
		return fmt.Sprintf("bytes=-%d", r.N)
	}
	return fmt.Sprintf("bytes=%d-%d", r.Off, r.Off+r.N-1)
}

// Body is an answer to a read: Length bytes from Off of an object of Size bytes.
type Body struct {
	io.ReadCloser
	Off, Length, Size int64
}

// NewBody takes what an answer's headers say. Without a Content-Range the server answered with the whole
// object, which it may do whatever was asked. The reader is closed when the headers contradict each other.
func NewBody(r io.ReadCloser, length *int64, contentRange *string) (Body, error) {
	b := Body{ReadCloser: r}
	if length != nil {
		b.Length = *length
	}
	b.Size = b.Length
	ok := length != nil && b.Length >= 0
	if ok && contentRange != nil && *contentRange != "" {
		ok = b.parse(*contentRange)
	}
	if !ok {
		_ = r.Close() // read only: nothing to lose
		text := ""
		if contentRange != nil {
			text = *contentRange
		}
		return Body{}, fmt.Errorf("%w: an answer of %d bytes with Content-Range %q", objstore.ErrUnsupported, b.Length, text)
	}
	return b, nil
}

// parse reads "bytes first-last/size". A range of no bytes, which a server may answer at the end of an object, has its
// last before its first.
func (b *Body) parse(contentRange string) bool {
	span, size, ok := strings.Cut(strings.TrimPrefix(contentRange, "bytes "), "/")
	first, last, ok2 := strings.Cut(span, "-")
	off, err1 := strconv.ParseInt(first, 10, 64)
	end, err2 := strconv.ParseInt(last, 10, 64)
	total, err3 := strconv.ParseInt(size, 10, 64)
	if !ok || !ok2 || err1 != nil || err2 != nil || err3 != nil || off < 0 || end < off-1 || end >= total {
		return false
	}
	b.Off, b.Size = off, total
	return end-off+1 == b.Length
}

// Query asks for one page of a listing.
type Query struct {
	Prefix string
	After  string // names greater than this; empty for all
	Max    int    // names that are still wanted; 0 for as many as a page holds
	Token  string // of the page before; empty for the first
}

// Page is a page of a listing, its keys being names. An empty Token means that it is the last one.
type Page struct {
	Infos []objstore.Info
	Token string
}

// Parts is a streaming put. One goroutine uses it: Begin, then Part for each part, then Complete; or, at any
// time after Upload, Abort, which ends it.
type Parts interface {
	// Begin opens the upload.
	Begin(ctx context.Context) error
	// Part sends part number i, counted from 0; all but the last have the size of a part. It may be sent twice.
	// ErrTooLarge when the service does not take so many.
	Part(ctx context.Context, i int, data []byte) error
	// Complete makes the object of the parts.
	Complete(ctx context.Context) error
	// Abort drops the parts.
	Abort(ctx context.Context) error
}
