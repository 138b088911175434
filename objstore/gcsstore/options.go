package gcsstore

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/retry"
)

// Options say which bucket, and how it is reached. Zero values mean the defaults.
type Options struct {
	Bucket string // required
	Prefix string // put in front of every key, with a slash between; empty for the whole bucket

	// Endpoint is the URL of another server of the JSON API, such as http://127.0.0.1:4443/storage/v1/.
	Endpoint string
	// Anonymous sends no credentials: for emulators and public buckets.
	Anonymous bool

	// PartBytes is the memory of one streaming put. Default 8 MiB, a multiple of 256 KiB.
	PartBytes int
	// Policy bounds repeats and time.
	retry.Policy
}

const partUnit = 256 << 10

// EnsureDefaults fills in what is zero.
func (o *Options) EnsureDefaults() {
	if o.PartBytes == 0 {
		o.PartBytes = 8 << 20
	}
	o.Policy.EnsureDefaults()
}

// Validate reports every fault at once.
func (o *Options) Validate() error {
	var faults []error
	if o.Bucket == "" {
		faults = append(faults, errors.New("bucket is required"))
	}
	if o.Prefix != "" {
		if err := objstore.ValidateKey(o.Prefix); err != nil {
			faults = append(faults, fmt.Errorf("prefix: %w", err))
		}
	}
	if o.PartBytes < partUnit || o.PartBytes%partUnit != 0 {
		faults = append(faults, fmt.Errorf("part size of %d bytes is not a multiple of %d", o.PartBytes, partUnit))
	}
	faults = append(faults, o.Policy.Validate())
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("gcsstore: options: %w", err)
	}
	return nil
}

// ParseURL reads gs://bucket/prefix?endpoint=…&anonymous=true. Faults are objstore.ErrUnsupported.
func ParseURL(rawURL string) (Options, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return Options{}, fmt.Errorf("%w: malformed gs URL", objstore.ErrUnsupported) // the URL may hold a secret
	}
	if u.Scheme != "gs" || u.Host == "" || u.User != nil || u.Fragment != "" {
		return Options{}, fmt.Errorf("%w: not of the form gs://bucket/prefix", objstore.ErrUnsupported)
	}
	o := Options{Bucket: u.Host, Prefix: strings.Trim(u.Path, "/")}
	for name, values := range u.Query() {
		switch {
		case name == "endpoint":
			o.Endpoint = values[0]
		case name == "anonymous" && values[0] == "true":
			o.Anonymous = true
		default:
			return Options{}, fmt.Errorf("%w: parameter %q of a gs URL", objstore.ErrUnsupported, name)
		}
	}
	return o, nil
}
