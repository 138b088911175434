package s3store_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/faulthttp"
	"github.com/foldline/foldline/objstore/s3store"
)

// gate lets in requests that are signed with one access key, and refuses the others with a code, as S3 does.
type gate struct {
	next http.Handler

	mu      sync.Mutex
	access  string
	status  int
	code    string
	refused int
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	ok := strings.Contains(r.Header.Get("Authorization"), "Credential="+g.access+"/")
	if !ok {
		g.refused++
	}
	g.mu.Unlock()
	if !ok {
		w.WriteHeader(g.status)
		_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code></Error>", g.code) // the test looks at the other end
		return
	}
	g.next.ServeHTTP(w, r)
}

func (g *gate) rotate(access string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.access = access
}

// Report C142: keys end, or are replaced, while a process runs. A request meets it, reads the chain again and goes on with
// what the file holds now; while the file holds only old keys the error says so, is of the class of denied access, and
// leaves no outcome open.
func TestReportC142KeysThatEnd(t *testing.T) {
	for code, status := range map[string]int{"ExpiredToken": 400, "InvalidAccessKeyId": 403} {
		t.Run(code, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "credentials")
			keys := func(access string) {
				text := fmt.Sprintf("[default]\naws_access_key_id = %s\naws_secret_access_key = SECMARK2\n", access)
				require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
			}
			t.Setenv("AWS_SHARED_CREDENTIALS_FILE", file)
			t.Setenv("AWS_ACCESS_KEY_ID", "")
			t.Setenv("AWS_SECRET_ACCESS_KEY", "")
			keys("FIRST")
			g := &gate{access: "FIRST", status: status, code: code}
			s := openS3(t, startS3(t, func(next http.Handler) http.Handler { g.next = next; return g }))
			require.NoError(t, s.PutIfAbsent(t.Context(), "k", []byte("1")))

			g.rotate("SECOND")
			err := s.PutIfAbsent(t.Context(), "k2", []byte("2"))
			require.ErrorIs(t, err, objstore.ErrDenied)
			require.ErrorContains(t, err, code)
			require.NotErrorIs(t, err, objstore.ErrUnknownOutcome)
			require.NotContains(t, err.Error(), "SECMARK2")
			require.Equal(t, 5, g.refused, "as often as any request is made")

			keys("SECOND")
			require.NoError(t, s.PutIfAbsent(t.Context(), "k2", []byte("2")))
			g.rotate("THIRD")
			keys("THIRD")
			require.NoError(t, s.PutIfAbsent(t.Context(), "k3", nil), "within one call")
			got, err := s.Get(t.Context(), "k2")
			require.NoError(t, err)
			require.Equal(t, "2", string(got))
		})
	}
}

// Report C143: the server throttles most requests. Each is repeated with growing pauses, so that it comes through, and
// gives up after a bounded number.
func TestReportC143Throttled(t *testing.T) {
	var p *faulthttp.Proxy
	n := 0
	s := openS3(t, startS3(t, func(next http.Handler) http.Handler {
		p = faulthttp.New(next, faulthttp.All)
		p.Always(func(*http.Request) faulthttp.Fault { // under the proxy's lock
			if n++; n%10 < 7 {
				return faulthttp.Fault{Before: 503, Code: "SlowDown"}
			}
			return faulthttp.Fault{}
		})
		return p
	}), func(o *s3store.Options) { o.Attempts, o.PartBytes = 10, 5<<20 })
	u, err := s.Create(t.Context(), "large")
	require.NoError(t, err)
	_, err = u.Write(bytes.Repeat([]byte("x"), 6<<20))
	require.NoError(t, err)
	_, err = u.Commit()
	require.NoError(t, err)
	for i := range 5 {
		key := fmt.Sprintf("k%d", i)
		require.NoError(t, s.PutIfAbsent(t.Context(), key, []byte(key)))
		got, err := s.Get(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, key, string(got))
	}
	infos, err := s.List(t.Context(), "", "", 0)
	require.NoError(t, err)
	require.Len(t, infos, 6)
}

// Pauses grow and are not the same for two requests: those that were refused together do not come back together.
func TestPausesGrowWithJitter(t *testing.T) {
	var mu sync.Mutex
	var at []time.Time
	endpoint := startS3(t, func(next http.Handler) http.Handler {
		return faulthttp.New(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			at = append(at, time.Now())
			mu.Unlock()
			w.WriteHeader(http.StatusServiceUnavailable)
		}), faulthttp.All)
	})
	s := openS3(t, endpoint, func(o *s3store.Options) { o.Backoff = 20 * time.Millisecond })
	_, err := s.Get(t.Context(), "k")
	require.ErrorIs(t, err, objstore.ErrBusy)
	require.Len(t, at, 5)
	for i := range 4 {
		require.GreaterOrEqual(t, at[i+1].Sub(at[i]), 10*time.Millisecond<<i, "half of the pause at the least")
	}
}

// What an upload costs, part by part: one put below a part, else one request for each part and two more; nothing is sent
// twice, and an upload that was given up is removed.
func TestRequestsOfAnUpload(t *testing.T) {
	const part = 5 << 20
	for _, c := range []struct {
		bytes, requests int
		abort           bool
	}{
		{0, 1, false}, {part - 1, 1, false}, {part, 3, false}, {part + 1, 4, false}, {2*part + 1, 5, false}, {1, 0, true}, {part + 1, 3, true},
	} {
		var p *faulthttp.Proxy
		s := openS3(t, startS3(t, func(next http.Handler) http.Handler {
			p = faulthttp.New(next, faulthttp.All)
			return p
		}), func(o *s3store.Options) { o.PartBytes = part })
		u, err := s.Create(t.Context(), "k")
		require.NoError(t, err)
		_, err = u.Write(make([]byte, c.bytes))
		require.NoError(t, err)
		if c.abort {
			require.NoError(t, u.Abort())
		} else {
			_, err = u.Commit()
			require.NoError(t, err)
		}
		require.Equal(t, c.requests, p.Requests(), "%+v", c)
	}
}

// What each operation costs.
func TestRequestsOfEachOperation(t *testing.T) {
	s, p := withFaults(t, faulthttp.All)
	seen := 0
	costs := func(want int, what string, err error) {
		t.Helper()
		require.NoError(t, err)
		require.Equal(t, want, p.Requests()-seen, what)
		seen = p.Requests()
	}
	costs(1, "put", s.Put(t.Context(), "k", []byte("0123456789")))
	costs(1, "put if absent", s.PutIfAbsent(t.Context(), "k2", nil))
	_, err := s.Get(t.Context(), "k")
	costs(1, "get", err)
	_, err = s.GetRange(t.Context(), "k", 2, 3)
	costs(1, "get range", err)
	_, _, err = s.GetTail(t.Context(), "k", 4)
	costs(1, "get tail", err)
	_, err = s.Stat(t.Context(), "k")
	costs(1, "stat", err)
	_, err = s.List(t.Context(), "", "", 1)
	costs(1, "list", err)
	costs(1, "delete", s.Delete(t.Context(), "k"))
}
