package objstore_test

import (
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/objstoretest"
)

func TestValidateKey(t *testing.T) {
	for _, key := range []string{
		"a", "a/b", "_foldline/__manifest.lance/_versions/18446744073709551614.manifest", "node_Airport.lance/data/x.lance",
		"é/日本", "...", "a/..b", "with space", ".hidden/.tmp", strings.Repeat("x", objstore.MaxSegmentBytes),
	} {
		require.NoError(t, objstore.ValidateKey(key), key)
		require.NoError(t, objstore.ValidatePrefix(key), key)
	}
	for _, key := range objstoretest.InvalidKeys() {
		require.ErrorIs(t, objstore.ValidateKey(key), objstore.ErrInvalidKey, "%q", key)
	}
}

// FuzzValidateKey: what passes stays below the root of a local store, whatever the key.
func FuzzValidateKey(f *testing.F) {
	for _, key := range append(objstoretest.InvalidKeys(), "a/b", "é", "a/..b") {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		if objstore.ValidateKey(key) != nil {
			return
		}
		require.NoError(t, objstore.ValidatePrefix(key))
		require.Equal(t, key, path.Clean(key))
		require.True(t, strings.HasPrefix(path.Join("/root", key), "/root/"))
		require.LessOrEqual(t, len(key), objstore.MaxKeyBytes)
		for i := range key {
			require.NoError(t, objstore.ValidatePrefix(key[:i]))
		}
	})
}
