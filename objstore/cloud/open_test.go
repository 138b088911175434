package cloud_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/azurestore"
	"github.com/foldline/foldline/objstore/cloud"
	"github.com/foldline/foldline/objstore/gcsstore"
	"github.com/foldline/foldline/objstore/s3store"
)

func TestOpenChoosesByScheme(t *testing.T) {
	for url, want := range map[string]objstore.Store{
		t.TempDir():              &objstore.Local{},
		"file://" + t.TempDir():  &objstore.Local{},
		"mem://":                 &objstore.Memory{},
		"s3://bucket/p?region=x": &s3store.Store{},
		"gs://bucket/p?anonymous=true&endpoint=http://127.0.0.1:1": &gcsstore.Store{},
		"az://container/p?account=a":                               &azurestore.Store{},
	} {
		s, err := cloud.Open(t.Context(), url, cloud.Secrets{AzureKey: "a2V5"})
		require.NoError(t, err, url)
		require.NoError(t, cloud.Check(url), url)
		require.IsType(t, want, s, url)
	}
	for _, url := range []string{"", "ftp://x", "s3://", "gs://", "az://", "s3://k:s@b"} {
		_, err := cloud.Open(t.Context(), url, cloud.Secrets{})
		require.ErrorIs(t, err, objstore.ErrUnsupported, url)
		require.ErrorIs(t, cloud.Check(url), objstore.ErrUnsupported, url)
	}
}
