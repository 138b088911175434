package s3store

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/internal/bucket"
)

// maxPage is how many objects S3 lists at once.
const maxPage = 1000

// driver is the requests of S3.
type driver struct {
	client *s3.Client
	bucket string
}

// Head implements bucket.Driver.
func (d *driver) Head(ctx context.Context, name string) (objstore.Info, error) {
	out, err := d.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &d.bucket, Key: &name})
	if err != nil {
		return objstore.Info{}, err
	}
	return objstore.Info{Size: aws.ToInt64(out.ContentLength), ModTime: aws.ToTime(out.LastModified), ETag: aws.ToString(out.ETag)}, nil
}

// Get implements bucket.Driver.
func (d *driver) Get(ctx context.Context, name string, r bucket.Range) (bucket.Body, error) {
	in := &s3.GetObjectInput{Bucket: &d.bucket, Key: &name}
	if !r.Whole {
		in.Range = aws.String(r.Header())
	}
	out, err := d.client.GetObject(ctx, in)
	if err != nil {
		return bucket.Body{}, err
	}
	return bucket.NewBody(out.Body, out.ContentLength, out.ContentRange)
}

// Put implements bucket.Driver.
func (d *driver) Put(ctx context.Context, name string, data []byte, absent bool) error {
	in := &s3.PutObjectInput{Bucket: &d.bucket, Key: &name, Body: bytes.NewReader(data)}
	if absent {
		in.IfNoneMatch = aws.String("*")
	}
	_, err := d.client.PutObject(ctx, in)
	return err
}

// Delete implements bucket.Driver.
func (d *driver) Delete(ctx context.Context, name string) error {
	_, err := d.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &d.bucket, Key: &name})
	return err
}

// List implements bucket.Driver.
func (d *driver) List(ctx context.Context, q bucket.Query) (bucket.Page, error) {
	in := &s3.ListObjectsV2Input{Bucket: &d.bucket}
	if q.Prefix != "" {
		in.Prefix = &q.Prefix
	}
	if q.After != "" {
		in.StartAfter = &q.After
	}
	if q.Max > 0 {
		in.MaxKeys = aws.Int32(int32(min(q.Max, maxPage)))
	}
	if q.Token != "" {
		in.ContinuationToken = &q.Token
	}
	out, err := d.client.ListObjectsV2(ctx, in)
	if err != nil {
		return bucket.Page{}, err
	}
	var page bucket.Page
	for _, o := range out.Contents {
		page.Infos = append(page.Infos, objstore.Info{
			Key: aws.ToString(o.Key), Size: aws.ToInt64(o.Size), ModTime: aws.ToTime(o.LastModified), ETag: aws.ToString(o.ETag),
		})
	}
	if aws.ToBool(out.IsTruncated) {
		page.Token = aws.ToString(out.NextContinuationToken)
		if page.Token == "" {
			return bucket.Page{}, fmt.Errorf("%w: the listing is cut short and cannot be continued", objstore.ErrUnsupported)
		}
	}
	return page, nil
}

// Upload implements bucket.Driver. An upload whose process dies leaves its parts in the bucket; a lifecycle rule for
// incomplete multipart uploads removes them.
func (d *driver) Upload(_ context.Context, name string) bucket.Parts {
	return &parts{driver: d, name: name}
}

// parts is a multipart upload.
type parts struct {
	*driver
	name string
	id   *string
	done []types.CompletedPart
}

// Begin implements bucket.Parts.
func (p *parts) Begin(ctx context.Context) error {
	out, err := p.client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: &p.bucket, Key: &p.name})
	if err == nil {
		p.id = out.UploadId
	}
	return err
}

// Part implements bucket.Parts.
func (p *parts) Part(ctx context.Context, i int, data []byte) error {
	if i >= maxParts {
		return fmt.Errorf("%w: more than %d parts", objstore.ErrTooLarge, maxParts)
	}
	number := aws.Int32(int32(i) + 1)
	out, err := p.client.UploadPart(ctx, &s3.UploadPartInput{
		Bucket: &p.bucket, Key: &p.name, UploadId: p.id, PartNumber: number, Body: bytes.NewReader(data),
	})
	if err == nil {
		p.done = append(p.done[:i], types.CompletedPart{ETag: out.ETag, PartNumber: number})
	}
	return err
}

// Complete implements bucket.Parts.
func (p *parts) Complete(ctx context.Context) error {
	_, err := p.client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket: &p.bucket, Key: &p.name, UploadId: p.id, MultipartUpload: &types.CompletedMultipartUpload{Parts: p.done},
	})
	return err
}

// Abort implements bucket.Parts. That the upload is gone is what is wanted.
func (p *parts) Abort(ctx context.Context) error {
	_, err := p.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &p.bucket, Key: &p.name, UploadId: p.id})
	var api smithy.APIError
	if errors.As(err, &api) && api.ErrorCode() == "NoSuchUpload" {
		return nil
	}
	return err
}
