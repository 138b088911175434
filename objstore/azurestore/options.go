package azurestore

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/retry"
)

// Options say which container, and how it is reached. Zero values mean the defaults.
type Options struct {
	Container string // required
	Prefix    string // put in front of every key, with a slash between; empty for the whole container

	// Account is the storage account; not needed with a connection string.
	Account string
	// Endpoint is the URL of the account. Default https://ACCOUNT.blob.core.windows.net.
	Endpoint string
	// Key is the account's shared key, and ConnectionString stands for all three. Secrets: neither may
	// be logged. Both empty means the default chain of credentials.
	Key, ConnectionString string

	// PartBytes is the memory of one streaming put and the size of its blocks. Default 8 MiB; an object
	// has at most 50,000 blocks.
	PartBytes int
	// Policy bounds repeats and time.
	retry.Policy
}

const maxBlocks = 50_000

// EnsureDefaults fills in what is zero.
func (o *Options) EnsureDefaults() {
	if o.PartBytes == 0 {
		o.PartBytes = 8 << 20
	}
	if o.Endpoint == "" && o.Account != "" {
		o.Endpoint = "https://" + o.Account + ".blob.core.windows.net"
	}
	o.Policy.EnsureDefaults()
}

// Validate reports every fault at once.
func (o *Options) Validate() error {
	var faults []error
	if o.Container == "" {
		faults = append(faults, errors.New("container is required"))
	}
	if o.Prefix != "" {
		if err := objstore.ValidateKey(o.Prefix); err != nil {
			faults = append(faults, fmt.Errorf("prefix: %w", err))
		}
	}
	if o.ConnectionString == "" && o.Endpoint == "" {
		faults = append(faults, errors.New("account, endpoint or connection string is required"))
	}
	if o.Key != "" && o.Account == "" {
		faults = append(faults, errors.New("a shared key needs the account"))
	}
	if o.PartBytes < 1 {
		faults = append(faults, errors.New("part size must be above 0"))
	}
	faults = append(faults, o.Policy.Validate())
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("azurestore: options: %w", err)
	}
	return nil
}

// ParseURL reads az://container/prefix?account=…&endpoint=…. Secrets do not belong in a URL: the
// caller puts them in from its environment. Faults are objstore.ErrUnsupported.
func ParseURL(rawURL string) (Options, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return Options{}, fmt.Errorf("%w: malformed az URL", objstore.ErrUnsupported) // the URL may hold a secret
	}
	if u.Scheme != "az" || u.Host == "" || u.User != nil || u.Fragment != "" {
		return Options{}, fmt.Errorf("%w: not of the form az://container/prefix?account=…", objstore.ErrUnsupported)
	}
	o := Options{Container: u.Host, Prefix: strings.Trim(u.Path, "/")}
	for name, values := range u.Query() {
		switch name {
		case "account":
			o.Account = values[0]
		case "endpoint":
			o.Endpoint = values[0]
		default:
			return Options{}, fmt.Errorf("%w: parameter %q of an az URL", objstore.ErrUnsupported, name)
		}
	}
	return o, nil
}
