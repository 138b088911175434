package azurestore

import (
	"errors"

	"github.com/foldline/foldline/objstore/internal/bucket"
)

// Options say which container, and how it is reached. Zero values mean the defaults.
type Options struct {
	// Options: the Bucket is the container; an object has at most 50,000 parts.
	bucket.Options

	// Account is the storage account; not needed with a connection string.
	Account string
	// Endpoint is the URL of the account. Default https://ACCOUNT.blob.core.windows.net.
	Endpoint string
	// Key is the account's shared key, and ConnectionString stands for all three. Secrets: neither may
	// be logged. Both empty means the default chain of credentials.
	Key, ConnectionString string
}

const maxBlocks = 50_000

// EnsureDefaults fills in what is zero.
func (o *Options) EnsureDefaults() {
	if o.Endpoint == "" && o.Account != "" {
		o.Endpoint = "https://" + o.Account + ".blob.core.windows.net"
	}
	o.Options.EnsureDefaults()
}

// Validate reports every fault at once.
func (o *Options) Validate() error {
	var faults []error
	if o.ConnectionString == "" && o.Endpoint == "" {
		faults = append(faults, errors.New("account, endpoint or connection string is required"))
	}
	if o.Key != "" && o.Account == "" {
		faults = append(faults, errors.New("a shared key needs the account"))
	}
	return o.Options.Validate(driverName, faults...)
}

// ParseURL reads az://container/prefix?account=…&endpoint=…. Secrets do not belong in a URL: the
// caller puts them in from its environment. Faults are objstore.ErrUnsupported.
func ParseURL(rawURL string) (o Options, err error) {
	o.Options, err = bucket.ParseURL("az", rawURL, bucket.Parameters{
		"account":  func(value string) error { o.Account = value; return nil },
		"endpoint": bucket.EndpointInto(&o.Endpoint),
	})
	if err != nil {
		return Options{}, err
	}
	return o, nil
}
