package gcsstore

import (
	"errors"
	"fmt"

	"github.com/foldline/foldline/objstore/internal/bucket"
)

// Options say which bucket, and how it is reached. Zero values mean the defaults.
type Options struct {
	// Options: PartBytes is a multiple of 256 KiB.
	bucket.Options

	// Endpoint is the URL of another server of the JSON API, such as http://127.0.0.1:4443/storage/v1/.
	Endpoint string
	// Anonymous sends no credentials: for emulators and public buckets.
	Anonymous bool
}

const partUnit = 256 << 10

// Validate reports every fault at once.
func (o *Options) Validate() error {
	var faults []error
	if o.PartBytes%partUnit != 0 {
		faults = append(faults, fmt.Errorf("part size of %d bytes is not a multiple of %d", o.PartBytes, partUnit))
	}
	return o.Options.Validate(driverName, faults...)
}

// ParseURL reads gs://bucket/prefix?endpoint=…&anonymous=true. Faults are objstore.ErrUnsupported.
func ParseURL(rawURL string) (o Options, err error) {
	o.Options, err = bucket.ParseURL("gs", rawURL, bucket.Parameters{
		"endpoint": bucket.EndpointInto(&o.Endpoint),
		"anonymous": func(value string) error {
			if o.Anonymous = value == "true"; !o.Anonymous {
				return errors.New("only true is a value of it")
			}
			return nil
		},
	})
	if err != nil {
		return Options{}, err
	}
	return o, nil
}
