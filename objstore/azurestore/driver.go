package azurestore

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/google/uuid"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/internal/bucket"
)

// maxPage is how many blobs the service lists at once.
const maxPage = 5000

// driver is the requests of Azure Blob Storage.
type driver struct{ container *container.Client }

func (d *driver) blob(name string) *blockblob.Client { return d.container.NewBlockBlobClient(name) }

// Head implements bucket.Driver.
func (d *driver) Head(ctx context.Context, name string) (objstore.Info, error) {
	p, err := d.blob(name).GetProperties(ctx, nil)
	if err != nil {
		return objstore.Info{}, err
	}
	return objstore.Info{Size: value(p.ContentLength), ModTime: value(p.LastModified), ETag: string(value(p.ETag))}, nil
}

// Get implements bucket.Driver. The service has no suffix ranges: such a read asks for the size first.
func (d *driver) Get(ctx context.Context, name string, r bucket.Range) (bucket.Body, error) {
	span := blob.HTTPRange{Offset: r.Off, Count: r.N}
	if r.Suffix {
		info, err := d.Head(ctx, name)
		if err != nil {
			return bucket.Body{}, err
		}
		if info.Size == 0 {
			return bucket.Body{ReadCloser: io.NopCloser(strings.NewReader(""))}, nil
		}
		span.Count = min(r.N, info.Size)
		span.Offset = info.Size - span.Count
	}
	out, err := d.blob(name).DownloadStream(ctx, &blob.DownloadStreamOptions{Range: span}) // the zero span is all
	if err != nil {
		return bucket.Body{}, err
	}
	return bucket.NewBody(out.Body, out.ContentLength, out.ContentRange)
}

// Put implements bucket.Driver.
func (d *driver) Put(ctx context.Context, name string, data []byte, absent bool) error {
	options := &blockblob.UploadOptions{}
	if absent {
		anything := azcore.ETagAny
		options.AccessConditions = &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: &anything}}
	}
	_, err := d.blob(name).Upload(ctx, streaming.NopCloser(bytes.NewReader(data)), options)
	return err
}

// Delete implements bucket.Driver.
func (d *driver) Delete(ctx context.Context, name string) error {
	_, err := d.blob(name).Delete(ctx, nil)
	return err
}

// List implements bucket.Driver. The service cannot begin after a name.
func (d *driver) List(ctx context.Context, q bucket.Query) (bucket.Page, error) {
	options := &container.ListBlobsFlatOptions{Prefix: &q.Prefix}
	if q.Max > 0 && q.After == "" {
		n := int32(min(q.Max, maxPage))
		options.MaxResults = &n
	}
	if q.Token != "" {
		options.Marker = &q.Token
	}
	out, err := d.container.NewListBlobsFlatPager(options).NextPage(ctx)
	if err != nil {
		return bucket.Page{}, err
	}
	page := bucket.Page{Token: value(out.NextMarker)}
	for _, item := range out.Segment.BlobItems {
		info := objstore.Info{Key: value(item.Name)}
		if p := item.Properties; p != nil {
			info.Size, info.ModTime, info.ETag = value(p.ContentLength), value(p.LastModified), string(value(p.ETag))
		}
		page.Infos = append(page.Infos, info)
	}
	return page, nil
}

// Upload implements bucket.Driver.
func (d *driver) Upload(_ context.Context, name string) bucket.Parts {
	return &blocks{client: d.blob(name), id: uuid.New()}
}

// blocks is an upload. Blocks that are never committed are dropped by the service after a week.
type blocks struct {
	client *blockblob.Client
	id     uuid.UUID // keeps the names of its blocks apart from those of another upload of the key
	names  []string
}

// Begin implements bucket.Parts.
func (*blocks) Begin(context.Context) error { return nil }

// Part implements bucket.Parts.
func (b *blocks) Part(ctx context.Context, i int, data []byte) error {
	if i >= maxBlocks {
		return fmt.Errorf("%w: more than %d blocks", objstore.ErrTooLarge, maxBlocks)
	}
	name := base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(b.id[:], uint32(i)))
	_, err := b.client.StageBlock(ctx, name, streaming.NopCloser(bytes.NewReader(data)), nil)
	if err == nil {
		b.names = append(b.names[:i], name)
	}
	return err
}

// Complete implements bucket.Parts.
func (b *blocks) Complete(ctx context.Context) error {
	_, err := b.client.CommitBlockList(ctx, b.names, &blockblob.CommitBlockListOptions{})
	return err
}

// Abort implements bucket.Parts.
func (*blocks) Abort(context.Context) error { return nil }

// value is what a pointer of an answer points at, or the zero value.
func value[T any](p *T) T {
	if p == nil {
		var none T
		return none
	}
	return *p
}
