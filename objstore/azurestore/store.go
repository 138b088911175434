package azurestore

import (
	"errors"
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/internal/bucket"
	"github.com/foldline/foldline/objstore/retry"
)

const driverName = "azurestore"

// Store is a container, or what is below a prefix of one. Make one with [Open].
type Store struct{ *bucket.Store }

// Open makes the client of a container. It does not call the service; [objstore.Probe] does.
func Open(o Options) (*Store, error) {
	o.EnsureDefaults()
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o.Judge = judge
	client, err := newClient(o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", driverName, err)
	}
	return &Store{bucket.New(driverName, "az", &driver{container: client}, o.Options)}, nil
}

func newClient(o Options) (*container.Client, error) {
	// Repeats are made by package retry, where it is known what a repeat means.
	options := &container.ClientOptions{ClientOptions: azcore.ClientOptions{Retry: policy.RetryOptions{MaxRetries: -1}}}
	if o.ConnectionString != "" {
		return container.NewClientFromConnectionString(o.ConnectionString, o.Bucket, options)
	}
	url := strings.TrimSuffix(o.Endpoint, "/") + "/" + o.Bucket
	if o.Key != "" {
		key, err := container.NewSharedKeyCredential(o.Account, o.Key)
		if err != nil {
			return nil, err
		}
		return container.NewClientWithSharedKeyCredential(url, key, options)
	}
	chain, err := azidentity.NewDefaultAzureCredential(nil)
	if err != nil {
		return nil, err
	}
	return container.NewClient(url, chain, options)
}

// judge tells what is known after a request that ended in an error.
func judge(err error) (retry.Verdict, error) {
	var response *azcore.ResponseError
	var denied *azidentity.AuthenticationFailedError
	switch {
	case errors.As(err, &denied): // no request was sent
		return retry.Definite, fmt.Errorf("%w: %w", objstore.ErrDenied, err)
	case !errors.As(err, &response):
		return retry.ByStatus(0, err)
	}
	switch response.ErrorCode {
	case "BlobAlreadyExists":
		return retry.Definite, fmt.Errorf("%w: %w", objstore.ErrExists, err)
	case "ContainerNotFound":
		return retry.Definite, fmt.Errorf("%w: %w", objstore.ErrNoBucket, err)
	default:
		return retry.ByStatus(response.StatusCode, err)
	}
}
