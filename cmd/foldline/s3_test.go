package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/cmd/internal/exit"
	"github.com/foldline/foldline/objstore/faulthttp"
)

// The markers of report C154: none of them may be in anything that a command prints.
const keyMarker, secretMarker, tokenMarker = "KEYMARK1", "SECMARK2", "TOKMARK3"

// startS3 runs an S3 server in this process, with one bucket and with faults before it, and gives the process keys for it.
func startS3(t *testing.T, match faulthttp.Match, faults ...faulthttp.Fault) (endpoint string) {
	t.Helper()
	endpoint, _ = startSpoiledS3(t, match, faults...)
	return endpoint
}

func startSpoiledS3(t *testing.T, match faulthttp.Match, faults ...faulthttp.Fault) (endpoint string, p *faulthttp.Proxy) {
	t.Helper()
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": keyMarker, "AWS_SECRET_ACCESS_KEY": secretMarker, "AWS_SESSION_TOKEN": tokenMarker, "AWS_REGION": "us-east-1",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_EC2_METADATA_DISABLED": "true",
	} {
		t.Setenv(name, value)
	}
	backend := s3mem.New()
	require.NoError(t, backend.CreateBucket("graphs"))
	p = faulthttp.New(gofakes3.New(backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server(), match, faults...)
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	return server.URL, p
}

func requireNoSecret(t *testing.T, r result) {
	t.Helper()
	for _, marker := range []string{keyMarker, secretMarker, tokenMarker} {
		require.NotContains(t, r.stdout+r.stderr, marker)
	}
}

// The whole line and every reader on s3://bucket/prefix, the endpoint from the URL or from the environment.
func TestDevOnS3(t *testing.T) {
	endpoint := startS3(t, faulthttp.All)
	data := filepath.Join(t.TempDir(), "data")
	root := "s3://graphs/a/demo?endpoint=" + endpoint
	out := ok(t, "dev", "--data", data, "--root", root, "--once", "--log-level", "debug", "--table", "node:Thing", "--input", write(t, things))
	require.Contains(t, out, "4 sent, 4 durable, 4 visible, 0 refused")
	require.NoDirExists(t, filepath.Join(data, "graph"), "the graph is in the bucket")

	t.Setenv("AWS_ENDPOINT_URL_S3", endpoint)
	for _, root := range []string{root, "s3://graphs/a/demo"} {
		require.Equal(t, 3, strings.Count(ok(t, "--root", root, "scan", "node:Thing"), "\n"))
		require.Contains(t, ok(t, "--root", root, "heads"), "node:Thing")
		require.NotEmpty(t, ok(t, "--root", root, "log"))
	}
	r := foldline(t, "--root", "s3://graphs/a", "heads")
	require.Equal(t, exit.Invalid, r.code, "there is no graph at the prefix above: %s", r.stderr)
}

// One request in five is throttled, refused after it was done, answered by a cut connection, or cut in the middle of its
// body: the line goes on, and every row is there, once (X3; report C143).
func TestDevOnAnUnreliableS3(t *testing.T) {
	endpoint, p := startSpoiledS3(t, faulthttp.All)
	faults := []faulthttp.Fault{
		{Before: 503, Code: "SlowDown"}, {Drop: true}, {After: 500, Code: "InternalError"}, {Cut: true}, {Before: 409, Code: "OperationAborted"},
	}
	n := 0
	p.Always(func(*http.Request) faulthttp.Fault { // under the proxy's lock
		if n++; n%5 == 0 {
			return faults[n/5%len(faults)]
		}
		return faulthttp.Fault{}
	})
	root := "s3://graphs/demo?endpoint=" + endpoint
	out := ok(t, "dev", "--data", t.TempDir(), "--root", root, "--once", "--sample")
	require.Contains(t, out, "7254 sent, 7254 durable, 7254 visible, 0 refused")
	for table, rows := range map[string]int{"node:Airport": 208, "node:Route": 2046, "edge:Flight": 5000} {
		require.Equal(t, rows, strings.Count(ok(t, "--root", root, "scan", table), "\n"), table)
	}
	require.Empty(t, ok(t, "--root", root, "rejects"))
	require.Greater(t, p.Requests(), 50)
}

// Every way in which a root can be wrong has its exit code, says what is wrong in one line, and shows no secret (report C154).
func TestWrongRoots(t *testing.T) {
	endpoint := startS3(t, faulthttp.All)
	dead := httptest.NewServer(http.NotFoundHandler())
	dead.Close()
	for _, c := range []struct {
		name, root string
		code       int
		says       string
		env        map[string]string
	}{
		{"no such bucket", "s3://another/demo?endpoint=" + endpoint, exit.Invalid, "no such bucket", nil},
		{"dead endpoint", "s3://graphs/demo?endpoint=" + dead.URL, exit.Busy, "connection refused", nil},
		{"no credentials", "s3://graphs/demo?endpoint=" + endpoint, exit.Invalid, "no credentials", map[string]string{"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}},
		{"no region", "s3://graphs/demo", exit.Invalid, "no region", map[string]string{"AWS_REGION": ""}},
		{"keys in the URL", "s3://" + keyMarker + ":" + secretMarker + "@graphs/demo", exit.Invalid, "without credentials", nil},
		{"unknown parameter", "s3://graphs/demo?secret=" + secretMarker, exit.Invalid, "parameter", nil},
		{"not a URL", "s3://graphs:" + secretMarker + "/demo", exit.Invalid, "malformed", nil},
		{"unknown scheme", "hdfs://graphs/demo", exit.Invalid, "scheme", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			for _, args := range [][]string{
				{"dev", "--data", t.TempDir(), "--root", c.root, "--once", "--log-level", "debug", "--table", "node:T", "--input", write(t, `{"id":"a"}`)},
				{"--root", c.root, "heads"},
			} {
				r := foldline(t, args...)
				require.Equal(t, c.code, r.code, "%v: %s", args, r.stderr)
				require.Contains(t, r.stderr, c.says)
				requireNoSecret(t, r)
			}
		})
	}
}

// What the server refuses: wrong keys, no permission, a condition that is ignored on the way (report C141).
func TestStoresThatRefuse(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault faulthttp.Fault
		code  int
		says  string
	}{
		{"wrong key", faulthttp.Fault{Before: 403, Code: "SignatureDoesNotMatch"}, exit.Invalid, "SignatureDoesNotMatch"},
		{"ended keys", faulthttp.Fault{Before: 400, Code: "ExpiredToken"}, exit.Invalid, "ExpiredToken"},
		{"no permission", faulthttp.Fault{Before: 403, Code: "AccessDenied"}, exit.Invalid, "AccessDenied"},
		{"another region", faulthttp.Fault{Before: 301, Code: "PermanentRedirect"}, exit.Invalid, "PermanentRedirect"},
		{"throttled for ever", faulthttp.Fault{Before: 503, Code: "SlowDown"}, exit.Busy, "SlowDown"},
		{"the condition is stripped", faulthttp.Fault{Strip: "If-None-Match"}, exit.Invalid, "conditional put"},
	} {
		t.Run(c.name, func(t *testing.T) {
			endpoint := startS3(t, faulthttp.All, faulthttp.Times(100, c.fault)...)
			r := foldline(t, "dev", "--data", t.TempDir(), "--root", "s3://graphs/demo?endpoint="+endpoint, "--once", "--table", "node:T", "--input", write(t, `{"id":"a"}`))
			require.Equal(t, c.code, r.code, r.stderr)
			require.Contains(t, r.stderr, c.says)
			requireNoSecret(t, r)
		})
	}
}
