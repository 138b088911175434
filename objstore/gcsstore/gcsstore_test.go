package gcsstore_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/fsouza/fake-gcs-server/fakestorage"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/gcsstore"
	"github.com/foldline/foldline/objstore/objstoretest"
)

func TestMain(m *testing.M) {
	objstoretest.Helper(openURL)
	goleak.VerifyTestMain(m,
		// Once per process, by the client library's telemetry.
		goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"))
}

func openURL(ctx context.Context, rawURL string) (objstore.Store, error) {
	o, err := gcsstore.ParseURL(rawURL)
	if err != nil {
		return nil, err
	}
	return gcsstore.Open(ctx, o)
}

const bucketName = "foldline-test"

// startGCS runs a server of the JSON API in this process and returns its endpoint.
func startGCS(t *testing.T) string {
	t.Helper()
	server, err := fakestorage.NewServerWithOptions(fakestorage.Options{Scheme: "http", Host: "127.0.0.1"})
	require.NoError(t, err)
	t.Cleanup(server.Stop)
	server.CreateBucketWithOpts(fakestorage.CreateBucketOpts{Name: bucketName})
	return server.URL() + "/storage/v1/"
}

func openGCS(t *testing.T, endpoint, prefix string) *gcsstore.Store {
	t.Helper()
	o := gcsstore.Options{Endpoint: endpoint, Anonymous: true}
	o.Bucket, o.Prefix, o.Backoff = bucketName, prefix, time.Millisecond
	s, err := gcsstore.Open(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestItConforms(t *testing.T) {
	objstoretest.Run(t, func(t *testing.T) objstore.Store { return openGCS(t, startGCS(t), "graphs/demo") })
}

func TestTwoProcesses(t *testing.T) {
	objstoretest.Race(t, openURL, fmt.Sprintf("gs://%s/race?anonymous=true&endpoint=%s", bucketName, startGCS(t)))
}

func TestParseURL(t *testing.T) {
	o, err := gcsstore.ParseURL("gs://bucket/a/b/")
	require.NoError(t, err)
	require.Equal(t, []any{"bucket", "a/b", "", false}, []any{o.Bucket, o.Prefix, o.Endpoint, o.Anonymous})
	for _, bad := range []string{"gs://", "s3://b", "gs://key:secret@b/a", "gs://b?x=y", "gs://b?anonymous=no"} {
		_, err := gcsstore.ParseURL(bad)
		require.ErrorIs(t, err, objstore.ErrUnsupported, bad)
		require.NotContains(t, err.Error(), "secret@")
	}
}
