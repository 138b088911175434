package bucket

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/retry"
)

// DefaultPartBytes is the memory of one streaming put, and the size of its parts, unless an option says
// otherwise: large enough that a table's data file is one request, a multiple of what GCS demands.
const DefaultPartBytes = 8 << 20

// Options are those that every driver has. Zero values mean the defaults.
type Options struct {
	// Bucket is the bucket's name (Azure: the container's). Required.
	Bucket string
	// Prefix is put in front of every key, with a slash between; empty for the whole bucket.
	Prefix string
	// PartBytes is the memory of one streaming put and the size of its parts. Default 8 MiB.
	PartBytes int
	// Policy bounds repeats and time.
	retry.Policy
}

// EnsureDefaults fills in what is zero.
func (o *Options) EnsureDefaults() {
	if o.PartBytes == 0 {
		o.PartBytes = DefaultPartBytes
	}
	o.Policy.EnsureDefaults()
}

// Validate reports every fault at once, those that the driver found itself included.
func (o *Options) Validate(driver string, own ...error) error {
	faults := own
	if o.Bucket == "" {
		faults = append(faults, errors.New("bucket is required"))
	}
	if o.Prefix != "" {
		if err := objstore.ValidateKey(o.Prefix); err != nil {
			faults = append(faults, fmt.Errorf("prefix: %w", err))
		}
	}
	if o.PartBytes < 1 {
		faults = append(faults, errors.New("part size must be above 0"))
	}
	faults = append(faults, o.Policy.Validate())
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("%s: options: %w", driver, err)
	}
	return nil
}

// Parameters are the parameters that a driver's URL may have, each with what takes its value. An error is
// one of the value.
type Parameters map[string]func(value string) error

// ParseURL reads scheme://bucket/prefix?parameters. Faults are objstore.ErrUnsupported and do not quote
// what may hold a secret: credentials do not belong in a URL and are refused, as are unknown parameters.
func ParseURL(scheme, rawURL string, parameters Parameters) (Options, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return Options{}, fmt.Errorf("%w: malformed %s URL", objstore.ErrUnsupported, scheme)
	}
	if u.Scheme != scheme || u.Host == "" || u.User != nil || u.Fragment != "" {
		return Options{}, fmt.Errorf("%w: not of the form %s://bucket/prefix?parameters, without credentials", objstore.ErrUnsupported, scheme)
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return Options{}, fmt.Errorf("%w: malformed parameters of a %s URL", objstore.ErrUnsupported, scheme)
	}
	for name, values := range query {
		take, known := parameters[name]
		if !known || len(values) != 1 {
			return Options{}, fmt.Errorf("%w: parameter %q of a %s URL", objstore.ErrUnsupported, name, scheme)
		}
		if err := take(values[0]); err != nil {
			return Options{}, fmt.Errorf("%w: parameter %q of a %s URL: %w", objstore.ErrUnsupported, name, scheme, err)
		}
	}
	return Options{Bucket: u.Host, Prefix: strings.Trim(u.Path, "/")}, nil
}

// EndpointInto takes the parameter endpoint, the URL of a server, into to. A user part is refused.
func EndpointInto(to *string) func(value string) error {
	return func(value string) error {
		u, err := url.Parse(value)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
			return errors.New("not of the form http://host:port, without credentials")
		}
		*to = value
		return nil
	}
}
