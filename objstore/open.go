package objstore

import (
	"context"
	"fmt"
	"net/url"
	"strings"
)

// Open opens the store that rawURL names: a path or file:///path is a local directory (made when it
// does not exist), mem:// is a new, empty store in memory. Schemes of object stores that have no driver
// here, and unknown ones, are ErrUnsupported.
func Open(ctx context.Context, rawURL string) (Store, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	scheme, _, isURL := strings.Cut(rawURL, "://")
	if !isURL {
		if rawURL == "" {
			return nil, fmt.Errorf("%w: empty root", ErrUnsupported)
		}
		return OpenLocal(rawURL)
	}
	switch scheme {
	case "file":
		path, err := filePath(rawURL)
		if err != nil {
			return nil, err
		}
		return OpenLocal(path)
	case "mem":
		return NewMemory(), nil
	default:
		return nil, fmt.Errorf("%w: scheme %q", ErrUnsupported, scheme)
	}
}

// filePath is the path of a file URL. A host other than this one is refused, which also catches the
// common slip file://relative/path.
func filePath(rawURL string) (string, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	if u.Host != "" && u.Host != "localhost" || !strings.HasPrefix(u.Path, "/") {
		return "", fmt.Errorf("%w: %q is not of the form file:///absolute/path", ErrUnsupported, rawURL)
	}
	return u.Path, nil
}
