package gcsstore

import (
	"context"
	"errors"
	"fmt"

	"cloud.google.com/go/storage"
	"google.golang.org/api/iterator"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/internal/bucket"
)

// maxPage is how many objects the service lists at once.
const maxPage = 1000

// driver is the requests of Google Cloud Storage.
type driver struct {
	bucket *storage.BucketHandle
	o      bucket.Options
}

// Head implements bucket.Driver.
func (d *driver) Head(ctx context.Context, name string) (objstore.Info, error) {
	attrs, err := d.bucket.Object(name).Attrs(ctx)
	if err != nil {
		return objstore.Info{}, err
	}
	return info(attrs), nil
}

func info(attrs *storage.ObjectAttrs) objstore.Info {
	return objstore.Info{Key: attrs.Name, Size: attrs.Size, ModTime: attrs.Updated, ETag: attrs.Etag}
}

// Get implements bucket.Driver.
func (d *driver) Get(ctx context.Context, name string, r bucket.Range) (bucket.Body, error) {
	off, n := r.Off, r.N
	switch {
	case r.Whole:
		off, n = 0, -1
	case r.Suffix:
		off, n = -r.N, -1
	}
	reader, err := d.bucket.Object(name).NewRangeReader(ctx, off, n)
	if err != nil {
		return bucket.Body{}, err
	}
	body := bucket.Body{ReadCloser: reader, Off: reader.Attrs.StartOffset, Length: reader.Remain(), Size: reader.Attrs.Size}
	if body.Length < 0 || body.Length > body.Size {
		return bucket.Body{}, errors.Join(
			fmt.Errorf("%w: an answer of %d bytes of an object of %d", objstore.ErrUnsupported, body.Length, body.Size), reader.Close())
	}
	return body, nil
}

// Put implements bucket.Driver, in one request.
func (d *driver) Put(ctx context.Context, name string, data []byte, absent bool) error {
	object := d.bucket.Object(name)
	if absent {
		object = object.If(storage.Conditions{DoesNotExist: true})
	}
	w := object.NewWriter(ctx)
	w.ChunkSize = 0
	if _, err := w.Write(data); err != nil {
		return errors.Join(err, w.Close())
	}
	return w.Close()
}

// Delete implements bucket.Driver.
func (d *driver) Delete(ctx context.Context, name string) error {
	return d.bucket.Object(name).Delete(ctx)
}

// List implements bucket.Driver. The service begins at a name, that one included.
func (d *driver) List(ctx context.Context, q bucket.Query) (bucket.Page, error) {
	query := &storage.Query{Prefix: q.Prefix, StartOffset: q.After}
	if err := query.SetAttrSelection([]string{"Name", "Size", "Updated", "Etag"}); err != nil {
		return bucket.Page{}, err
	}
	size := maxPage
	if q.Max > 0 {
		size = min(q.Max+1, maxPage)
	}
	var objects []*storage.ObjectAttrs
	var page bucket.Page
	var err error
	if page.Token, err = iterator.NewPager(d.bucket.Objects(ctx, query), size, q.Token).NextPage(&objects); err != nil {
		return bucket.Page{}, err
	}
	for _, attrs := range objects {
		page.Infos = append(page.Infos, info(attrs))
	}
	return page, nil
}

// Upload implements bucket.Driver: a resumable upload, whose parts the client library repeats by itself, since
// their position makes a repeat harmless.
func (d *driver) Upload(ctx context.Context, name string) bucket.Parts {
	ctx, cancel := context.WithCancel(ctx)
	w := d.bucket.Object(name).Retryer(storage.WithPolicy(storage.RetryAlways), storage.WithMaxAttempts(d.o.Attempts)).NewWriter(ctx)
	w.ChunkSize = d.o.PartBytes
	w.ChunkRetryDeadline = d.o.AttemptTimeout
	return &stream{w: w, cancel: cancel}
}

// stream is a resumable upload.
type stream struct {
	w      *storage.Writer
	cancel context.CancelFunc
}

// streamError is an error of a stream, which cannot go on after one.
type streamError struct{ err error }

func (e *streamError) Error() string { return e.err.Error() }
func (e *streamError) Unwrap() error { return e.err }

func streamed(err error) error {
	if err == nil {
		return nil
	}
	return &streamError{err}
}

// Begin implements bucket.Parts.
func (*stream) Begin(context.Context) error { return nil }

// Part implements bucket.Parts. The limits of time are those of the writer.
func (s *stream) Part(_ context.Context, _ int, data []byte) error {
	_, err := s.w.Write(data)
	return streamed(err)
}

// Complete implements bucket.Parts. The last part makes the object, so a lost answer to it leaves the outcome open.
func (s *stream) Complete(context.Context) error {
	err := s.w.Close()
	if err == nil {
		s.cancel()
	}
	return streamed(err)
}

// Abort implements bucket.Parts. The service drops an upload that is not completed.
func (s *stream) Abort(context.Context) error {
	s.cancel()
	_ = s.w.Close() // ends the writer; that it was cut off is what is wanted
	return nil
}
