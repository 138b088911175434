package objstore

import (
	"net/url"
	"path/filepath"
	"strings"
)

// Locator is a store that knows its own address, so that what others name by URI can be found in it. All backends but memory are.
type Locator interface {
	// Locate returns the key of what a URI, or an absolute path of a local disk, names; false when that does not lie in the store.
	Locate(address string) (key string, ok bool)
}

// Below is [Locator.Locate] for a store whose keys stand behind base, such as "s3://bucket/prefix".
func Below(base, address string) (key string, ok bool) {
	key, ok = strings.CutPrefix(strings.TrimSuffix(address, "/"), strings.TrimSuffix(base, "/")+"/")
	return key, ok && ValidateKey(key) == nil
}

// Locate implements [Locator]. Links on the way to the store's directory are followed, those in it are not.
func (l *Local) Locate(address string) (string, bool) {
	path := address
	if rest, ok := strings.CutPrefix(address, "file://"); ok {
		plain, err := url.PathUnescape(rest)
		if err != nil {
			return "", false
		}
		path = plain
	}
	if !filepath.IsAbs(path) {
		return "", false
	}
	path = filepath.ToSlash(filepath.Clean(path))
	if key, ok := Below(filepath.ToSlash(l.dir), path); ok {
		return key, true
	}
	real, err := filepath.EvalSymlinks(l.dir)
	if err != nil {
		return "", false
	}
	return Below(filepath.ToSlash(real), path)
}
