package client_test

import (
	"go/build"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A producer pulls in neither Arrow nor a store, whatever the contract's own packages come to import.
func TestClientIsLight(t *testing.T) {
	for _, dir := range []string{".", "../internal/envelope"} {
		pkg, err := build.ImportDir(dir, 0)
		require.NoError(t, err)
		for _, path := range pkg.Imports {
			for _, heavy := range []string{"arrow", "pebble", "objstore", "envelope/rows", "/lance", "otel/sdk"} {
				require.False(t, strings.Contains(path, heavy), "%s imports %s", dir, path)
			}
		}
	}
}
