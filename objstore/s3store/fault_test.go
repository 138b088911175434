package s3store_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/s3store"
)

// proxy stands before the server and spoils answers. Faults are taken in order, one per request that
// matches; when they are used up all is well.
type proxy struct {
	match func(r *http.Request) bool

	mu     sync.Mutex
	faults []fault
	seen   int
}

type fault struct {
	before int    // status sent in place of doing the request
	after  int    // status sent after doing it
	drop   bool   // the connection is cut after doing it
	code   string // of the error document
	cut    bool   // the body ends early
}

func (p *proxy) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f, ok := p.take(r)
		switch {
		case !ok:
			next.ServeHTTP(w, r)
		case f.before != 0:
			answer(w, f.before, f.code)
		default:
			done := httptest.NewRecorder()
			next.ServeHTTP(done, r)
			spoil(w, f, done)
		}
	})
}

func (p *proxy) take(r *http.Request) (fault, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.match(r) {
		return fault{}, false
	}
	p.seen++
	if len(p.faults) == 0 {
		return fault{}, false
	}
	f := p.faults[0]
	p.faults = p.faults[1:]
	return f, true
}

func (p *proxy) requests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen
}

func spoil(w http.ResponseWriter, f fault, done *httptest.ResponseRecorder) {
	switch {
	case f.after != 0:
		answer(w, f.after, f.code)
	case f.cut:
		for name, values := range done.Header() {
			w.Header()[name] = values
		}
		w.Header().Set("Content-Length", strconv.Itoa(done.Body.Len()))
		w.WriteHeader(done.Code)
		_, _ = w.Write(done.Body.Bytes()[:done.Body.Len()/2]) // the test looks at the other end
		panic(http.ErrAbortHandler)
	default:
		panic(http.ErrAbortHandler) // cuts the connection
	}
}

func answer(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	_, _ = w.Write([]byte("<Error><Code>" + code + "</Code><Message>spoiled</Message></Error>")) // the test looks at the other end
}

func isPut(r *http.Request) bool { return r.Method == http.MethodPut }

func withFaults(t *testing.T, match func(*http.Request) bool, faults ...fault) (*s3store.Store, *proxy) {
	p := &proxy{match: match, faults: faults}
	return openS3(t, startS3(t, p.wrap)), p
}

// X3: an answer was lost. The driver tries again, and does not take the refusal of its own object for
// somebody else's: the caller is told to read back, and finds its bytes.
func TestLostAnswerToAConditionalPutIsUnknown(t *testing.T) {
	for name, f := range map[string]fault{
		"connection cut":    {drop: true},
		"503 after the put": {after: 503, code: "SlowDown"},
		"500 after the put": {after: 500, code: "InternalError"},
	} {
		t.Run(name, func(t *testing.T) {
			s, p := withFaults(t, isPut, f)
			err := s.PutIfAbsent(t.Context(), "k", []byte("ours"))
			require.ErrorIs(t, err, objstore.ErrUnknownOutcome)
			require.NotErrorIs(t, err, objstore.ErrExists)
			require.Equal(t, 2, p.requests())
			got, err := s.Get(t.Context(), "k")
			require.NoError(t, err)
			require.Equal(t, "ours", string(got))
		})
	}
}

func TestRequestThatWasNotDoneIsRepeated(t *testing.T) {
	for name, f := range map[string]fault{
		"503":           {before: 503, code: "SlowDown"},
		"500":           {before: 500, code: "InternalError"},
		"429":           {before: 429, code: "TooManyRequests"},
		"409 of two":    {before: 409, code: "ConditionalRequestConflict"},
		"409 operation": {before: 409, code: "OperationAborted"},
	} {
		t.Run(name, func(t *testing.T) {
			s, p := withFaults(t, isPut, f, f)
			require.NoError(t, s.PutIfAbsent(t.Context(), "k", []byte("ours")))
			require.Equal(t, 3, p.requests())
		})
	}
}

// 409 says that nothing was done, so the 412 that follows is a sure refusal.
func TestConflictThenRefusalIsExists(t *testing.T) {
	s, _ := withFaults(t, isPut, fault{}, fault{before: 409, code: "ConditionalRequestConflict"})
	require.ErrorIs(t, s.PutIfAbsent(t.Context(), "k", []byte("theirs")), objstore.ErrUnknownOutcome)
	err := s.PutIfAbsent(t.Context(), "k", []byte("ours"))
	require.ErrorIs(t, err, objstore.ErrExists)
	require.NotErrorIs(t, err, objstore.ErrUnknownOutcome)
}

func TestAttemptsAreBounded(t *testing.T) {
	always := make([]fault, 100)
	for i := range always {
		always[i] = fault{before: 503, code: "SlowDown"}
	}
	s, p := withFaults(t, func(*http.Request) bool { return true }, always...)
	require.ErrorIs(t, s.PutIfAbsent(t.Context(), "k", nil), objstore.ErrUnknownOutcome)
	require.Equal(t, 5, p.requests())
	_, err := s.Get(t.Context(), "k")
	require.ErrorIs(t, err, objstore.ErrBusy)
	require.Equal(t, 10, p.requests())
}

func TestDefiniteRefusalIsNotRepeated(t *testing.T) {
	s, p := withFaults(t, isPut, fault{before: 403, code: "AccessDenied"})
	err := s.PutIfAbsent(t.Context(), "k", nil)
	require.ErrorContains(t, err, "AccessDenied")
	require.NotErrorIs(t, err, objstore.ErrUnknownOutcome)
	require.Equal(t, 1, p.requests())
}

func TestUnreachableServerHasDoneNothing(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	err := openS3(t, server.URL).PutIfAbsent(t.Context(), "k", nil)
	require.ErrorIs(t, err, objstore.ErrBusy)
	require.NotErrorIs(t, err, objstore.ErrUnknownOutcome)
}

func TestServerThatDoesNotAnswerInTime(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	endpoint := startS3(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-release:
			case <-r.Context().Done():
			}
		})
	})
	s := openS3(t, endpoint, func(o *s3store.Options) { o.AttemptTimeout, o.Attempts = 20*time.Millisecond, 2 })
	require.ErrorIs(t, s.PutIfAbsent(t.Context(), "k", nil), objstore.ErrUnknownOutcome)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	_, err := s.Get(ctx, "k")
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestBodyCutShortIsReadAgain(t *testing.T) {
	s, p := withFaults(t, func(r *http.Request) bool { return r.Method == http.MethodGet }, fault{cut: true}, fault{cut: true})
	want := []byte(strings.Repeat("foldline ", 10_000))
	require.NoError(t, s.Put(t.Context(), "k", want))
	got, err := s.Get(t.Context(), "k")
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Equal(t, 3, p.requests())
}

// A server, or something on the way to it, that drops the condition is found by the probe.
func TestProbeRefusesAServerThatIgnoresTheCondition(t *testing.T) {
	endpoint := startS3(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Header.Del("If-None-Match")
			next.ServeHTTP(w, r)
		})
	})
	require.ErrorIs(t, objstore.Probe(t.Context(), openS3(t, endpoint), "_foldline/"), objstore.ErrUnsupported)
}

// A bucket that does not list in key order cannot tell what is newest.
func TestUnorderedListingIsRefused(t *testing.T) {
	endpoint := startS3(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("list-type") != "2" {
				next.ServeHTTP(w, r)
				return
			}
			_, _ = w.Write([]byte(`<ListBucketResult><Contents><Key>b</Key></Contents><Contents><Key>a</Key></Contents></ListBucketResult>`))
		})
	})
	_, err := openS3(t, endpoint).List(t.Context(), "", "", 0)
	require.ErrorIs(t, err, objstore.ErrUnsupported)
}

// What an upload leaves behind when it fails is removed, and the commit of a lost answer is unknown.
func TestMultipartFaults(t *testing.T) {
	isComplete := func(r *http.Request) bool { return r.Method == http.MethodPost && r.URL.Query().Has("uploadId") }
	s, _ := withFaults(t, isComplete, fault{drop: true})
	u, err := s.Create(t.Context(), "k")
	require.NoError(t, err)
	_, err = u.Write(make([]byte, 9<<20))
	require.NoError(t, err)
	_, err = u.Commit()
	require.ErrorIs(t, err, objstore.ErrUnknownOutcome)
	info, err := s.Stat(t.Context(), "k")
	require.NoError(t, err)
	require.Equal(t, int64(9<<20), info.Size)

	isPart := func(r *http.Request) bool { return isPut(r) && r.URL.Query().Has("partNumber") }
	s, p := withFaults(t, isPart, fault{before: 500, code: "InternalError"}, fault{drop: true})
	u, err = s.Create(t.Context(), "k")
	require.NoError(t, err)
	_, err = u.Write(make([]byte, 9<<20))
	require.NoError(t, err, "a part may be sent again")
	_, err = u.Commit()
	require.NoError(t, err)
	require.Equal(t, 4, p.requests())
}
