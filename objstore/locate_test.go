package objstore

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLocalLocate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "real")
	require.NoError(t, os.Mkdir(dir, 0o755))
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(dir, link))
	for _, root := range []string{dir, link} {
		l, err := OpenLocal(root)
		require.NoError(t, err)
		for address, want := range map[string]string{
			root + "/a.lance": "a.lance", "file://" + dir + "/a%20b/c/": "a b/c", dir + "/x/../y.lance": "y.lance",
			root: "", dir + "/../other": "", "/": "", "a.lance": "", "file://host/x": "", "s3://b/a.lance": "", root + "2/a.lance": "",
		} {
			key, ok := l.Locate(address)
			require.Equal(t, want != "", ok, address)
			if ok {
				require.Equal(t, want, key)
			}
		}
	}
}

func TestBelow(t *testing.T) {
	for _, c := range []struct{ base, address, want string }{
		{"s3://b/p", "s3://b/p/t.lance", "t.lance"}, {"s3://b/", "s3://b/p/t.lance/", "p/t.lance"},
		{"s3://b/p", "s3://b/p2/t.lance", ""}, {"s3://b", "s3://b/../c", ""}, {"s3://b", "gs://b/t", ""}, {"s3://b", "s3://b", ""},
	} {
		key, ok := Below(c.base, c.address)
		require.Equal(t, c.want != "", ok, c)
		if ok {
			require.Equal(t, c.want, key)
		}
	}
}
