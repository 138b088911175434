package s3store

import (
	"context"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/internal/bucket"
)

const (
	driverName = "s3store"
	// idleConns are kept for the next request: a publish talks to the store for all its tables at once, and a new
	// connection costs two or three round trips.
	idleConns = 128
)

// Store is a bucket, or what is below a prefix of one. Make one with [Open].
type Store struct{ *bucket.Store }

// Open makes the client of a bucket. It reads the standard configuration, but does not call the server;
// [objstore.Probe] does. Without a region, given or in the configuration, it is objstore.ErrUnsupported.
func Open(ctx context.Context, o Options) (*Store, error) {
	o.EnsureDefaults()
	if err := o.Validate(); err != nil {
		return nil, err
	}
	cfg, err := config.LoadDefaultConfig(ctx,
		config.WithRegion(o.Region), // empty: what the configuration says
		// Repeats are made by package retry, where it is known what a repeat means.
		config.WithRetryer(func() aws.Retryer { return aws.NopRetryer{} }),
		config.WithHTTPClient(awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
			t.MaxIdleConns, t.MaxIdleConnsPerHost = idleConns, idleConns
		})),
	)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", driverName, err)
	}
	credentials := &credentials{chain: cfg.Credentials}
	o.Judge = judge{credentials}.error
	client := s3.NewFromConfig(cfg, o.configure, func(so *s3.Options) { so.Credentials = credentials })
	if client.Options().Region == "" {
		return nil, fmt.Errorf("%w: %s: no region: set it in the URL (region=), in AWS_REGION or in a profile", objstore.ErrUnsupported, driverName)
	}
	return &Store{bucket.New(driverName, "s3", &driver{client: client, bucket: o.Bucket}, o.Options)}, nil
}

// configure sets what depends on whose server it is. The SDK has put in what the configuration says before.
func (o *Options) configure(so *s3.Options) {
	if o.Endpoint != "" {
		so.BaseEndpoint = &o.Endpoint
	}
	if so.BaseEndpoint != nil {
		so.UsePathStyle = true
		if so.Region == "" {
			so.Region = "us-east-1"
		}
		// Servers other than Amazon's may not know the checksums that the SDK adds by itself.
		so.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		so.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
	}
	if o.PathStyle != nil {
		so.UsePathStyle = *o.PathStyle
	}
}
