package cloud

import (
	"context"
	"fmt"
	"strings"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/azurestore"
	"github.com/foldline/foldline/objstore/gcsstore"
	"github.com/foldline/foldline/objstore/s3store"
)

// Secrets come from the caller's environment, never from a URL.
type Secrets struct {
	AzureKey, AzureConnectionString string
}

// Check reads a URL as Open does and opens nothing; its error is the one that Open would return.
func Check(rawURL string) (err error) {
	scheme, _, isURL := strings.Cut(rawURL, "://")
	switch scheme {
	case "s3":
		_, err = s3store.ParseURL(rawURL)
	case "gs":
		_, err = gcsstore.ParseURL(rawURL)
	case "az":
		_, err = azurestore.ParseURL(rawURL)
	default:
		if rawURL == "" || isURL && scheme != "file" && scheme != "mem" {
			err = fmt.Errorf("%w: scheme %q", objstore.ErrUnsupported, scheme)
		}
	}
	return err
}

// Open opens the store of a URL:
//
//	path, file:///path                            a local directory, made when it does not exist
//	mem://                                        a new store in memory
//	s3://bucket/prefix?region=&endpoint=&path_style=
//	gs://bucket/prefix?endpoint=&anonymous=true
//	az://container/prefix?account=&endpoint=
//
// Unknown schemes and parameters are objstore.ErrUnsupported. Credentials come from each vendor's
// standard chain, and for Azure from secrets when they are set. Only the local directory is touched;
// [objstore.Probe] asks the others.
func Open(ctx context.Context, rawURL string, secrets Secrets) (objstore.Store, error) {
	scheme, _, _ := strings.Cut(rawURL, "://")
	switch scheme {
	case "s3":
		o, err := s3store.ParseURL(rawURL)
		if err != nil {
			return nil, err
		}
		return s3store.Open(ctx, o)
	case "gs":
		o, err := gcsstore.ParseURL(rawURL)
		if err != nil {
			return nil, err
		}
		return gcsstore.Open(ctx, o)
	case "az":
		o, err := azurestore.ParseURL(rawURL)
		if err != nil {
			return nil, err
		}
		o.Key, o.ConnectionString = secrets.AzureKey, secrets.AzureConnectionString
		return azurestore.Open(o)
	default:
		return objstore.Open(ctx, rawURL)
	}
}
