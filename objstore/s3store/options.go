package s3store

import (
	"fmt"
	"strconv"

	"github.com/foldline/foldline/objstore/internal/bucket"
)

// Options say which bucket, and how it is reached. Zero values mean the defaults.
type Options struct {
	// Options: PartBytes is at least 5 MiB, which S3 demands; an object has at most 10,000 parts.
	bucket.Options

	// Region defaults to that of the standard chain, and to us-east-1 when it has none and the server is not Amazon's.
	Region string
	// Endpoint is the URL of a compatible server. Default: the standard chain (AWS_ENDPOINT_URL_S3 and so on), then Amazon.
	Endpoint string
	// PathStyle puts the bucket in the path and not in the host name. Nil: when there is an endpoint.
	PathStyle *bool
}

const (
	minPartBytes = 5 << 20
	maxParts     = 10_000
)

// Validate reports every fault at once.
func (o *Options) Validate() error {
	var faults []error
	if o.PartBytes < minPartBytes {
		faults = append(faults, fmt.Errorf("part size of %d bytes is below %d", o.PartBytes, minPartBytes))
	}
	return o.Options.Validate(driverName, faults...)
}

// ParseURL reads s3://bucket/prefix?region=…&endpoint=…&path_style=true|false. Credentials do not
// belong in a URL and are refused, as are other parameters. Faults are objstore.ErrUnsupported.
func ParseURL(rawURL string) (o Options, err error) {
	o.Options, err = bucket.ParseURL("s3", rawURL, bucket.Parameters{
		"region":   func(value string) error { o.Region = value; return nil },
		"endpoint": bucket.EndpointInto(&o.Endpoint),
		"path_style": func(value string) error {
			style, err := strconv.ParseBool(value)
			o.PathStyle = &style
			return err
		},
	})
	if err != nil {
		return Options{}, err
	}
	return o, nil
}
