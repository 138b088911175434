package s3store

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/retry"
)

// Options say which bucket, and how it is reached. Zero values mean the defaults.
type Options struct {
	Bucket string // required
	Prefix string // put in front of every key, with a slash between; empty for the whole bucket

	Region    string // default: the standard chain; us-east-1 when it has none and Endpoint is set
	Endpoint  string // URL of a compatible server; default: the standard chain, then Amazon
	PathStyle bool   // bucket in the path and not in the host name; default: true when Endpoint is set

	// PartBytes is the memory of one streaming put and the size of its parts. Default 8 MiB, at least
	// 5 MiB, which S3 demands; an object has at most 10,000 parts.
	PartBytes int64
	// Policy bounds repeats and time.
	retry.Policy
}

const (
	minPartBytes = 5 << 20
	maxParts     = 10_000
)

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
	if o.PartBytes < minPartBytes {
		faults = append(faults, fmt.Errorf("part size of %d bytes is below %d", o.PartBytes, minPartBytes))
	}
	faults = append(faults, o.Policy.Validate())
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("s3store: options: %w", err)
	}
	return nil
}

// ParseURL reads s3://bucket/prefix?region=…&endpoint=…&path_style=true|false. Credentials do not
// belong in a URL and are refused, as are other parameters. Faults are objstore.ErrUnsupported.
func ParseURL(rawURL string) (Options, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return Options{}, fmt.Errorf("%w: malformed s3 URL", objstore.ErrUnsupported) // the URL may hold a secret
	}
	if u.Scheme != "s3" || u.Host == "" || u.User != nil || u.Fragment != "" {
		return Options{}, fmt.Errorf("%w: not of the form s3://bucket/prefix?region=…", objstore.ErrUnsupported)
	}
	o := Options{Bucket: u.Host, Prefix: strings.Trim(u.Path, "/")}
	query := u.Query()
	o.Region, o.Endpoint = query.Get("region"), query.Get("endpoint")
	o.PathStyle = o.Endpoint != ""
	if text := query.Get("path_style"); text != "" {
		if o.PathStyle, err = strconv.ParseBool(text); err != nil {
			return Options{}, fmt.Errorf("%w: path_style %q", objstore.ErrUnsupported, text)
		}
	}
	for name := range query {
		if name != "region" && name != "endpoint" && name != "path_style" {
			return Options{}, fmt.Errorf("%w: parameter %q of an s3 URL", objstore.ErrUnsupported, name)
		}
	}
	return o, nil
}
