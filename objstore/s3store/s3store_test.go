package s3store_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/objstoretest"
	"github.com/foldline/foldline/objstore/s3store"
)

func TestMain(m *testing.M) {
	objstoretest.Helper(openURL) // with the environment of the test that starts it
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_EC2_METADATA_DISABLED": "true",
	} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	// Connections that are kept for the next request belong to the SDK's shared transport.
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

func openURL(ctx context.Context, rawURL string) (objstore.Store, error) {
	o, err := s3store.ParseURL(rawURL)
	if err != nil {
		return nil, err
	}
	return s3store.Open(ctx, o)
}

const bucketName = "foldline-test"

// startS3 runs an S3 server in this process and returns its URL. Middleware, if any, stands before it.
func startS3(t *testing.T, middleware ...func(http.Handler) http.Handler) string {
	t.Helper()
	backend := s3mem.New()
	require.NoError(t, backend.CreateBucket(bucketName))
	handler := gofakes3.New(backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server()
	for _, m := range middleware {
		handler = m(handler)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

func openS3(t *testing.T, endpoint string, change ...func(*s3store.Options)) *s3store.Store {
	t.Helper()
	o := s3store.Options{Endpoint: endpoint}
	o.Bucket = bucketName
	o.Backoff = time.Millisecond
	for _, c := range change {
		c(&o)
	}
	s, err := s3store.Open(t.Context(), o)
	require.NoError(t, err)
	return s
}

func TestItConforms(t *testing.T) {
	objstoretest.Run(t, func(t *testing.T) objstore.Store { return openS3(t, startS3(t)) })
}

func TestItConformsBelowAPrefix(t *testing.T) {
	objstoretest.Run(t, func(t *testing.T) objstore.Store {
		endpoint := startS3(t)
		require.NoError(t, openS3(t, endpoint).Put(t.Context(), "graphs/demo2/neighbour", nil))
		return openS3(t, endpoint, func(o *s3store.Options) { o.Prefix = "graphs/demo" })
	})
}

func TestTwoProcesses(t *testing.T) {
	objstoretest.Race(t, openURL, fmt.Sprintf("s3://%s/race?endpoint=%s", bucketName, startS3(t)))
}

func TestListingSpansPages(t *testing.T) {
	s := openS3(t, startS3(t))
	const n = 1234
	for i := range n {
		require.NoError(t, s.Put(t.Context(), fmt.Sprintf("k/%05d", i), nil))
	}
	infos, err := s.List(t.Context(), "k/", "", 0)
	require.NoError(t, err)
	require.Len(t, infos, n)
	infos, err = s.List(t.Context(), "k/", "k/00010", 1100)
	require.NoError(t, err)
	require.Len(t, infos, 1100)
	require.Equal(t, "k/00011", infos[0].Key)
}

func TestParseURL(t *testing.T) {
	o, err := s3store.ParseURL("s3://bucket/a/b/?region=eu-west-1&endpoint=http://127.0.0.1:9000")
	require.NoError(t, err)
	require.Equal(t, []any{"bucket", "a/b", "eu-west-1", "http://127.0.0.1:9000"}, []any{o.Bucket, o.Prefix, o.Region, o.Endpoint})
	require.Nil(t, o.PathStyle)
	o, err = s3store.ParseURL("s3://bucket?endpoint=https://s3.example.com&path_style=false")
	require.NoError(t, err)
	require.False(t, *o.PathStyle)
	require.Empty(t, o.Prefix)
	for _, bad := range []string{
		"s3://", "s3:///a", "gs://b/a", "s3://key:secret@b/a", "s3://b?secret=x", "s3://b?path_style=maybe", "s3://b/%zz", "s3://b#f",
		"s3://b?endpoint=http://key:secret@host", "s3://b?endpoint=host:9000", "s3://b?region=a&region=b", "s3://b?%zz=secret@",
	} {
		_, err := s3store.ParseURL(bad)
		require.ErrorIs(t, err, objstore.ErrUnsupported, bad)
		require.NotContains(t, err.Error(), "secret@")
	}
}

func TestOptionsReportAllFaults(t *testing.T) {
	bad := s3store.Options{}
	bad.Prefix, bad.PartBytes, bad.Attempts, bad.Backoff = "../x", 1, -1, -1
	_, err := s3store.Open(t.Context(), bad)
	for _, part := range []string{"bucket", "prefix", "part size", "attempts", "backoff"} {
		require.ErrorContains(t, err, part)
	}
}
