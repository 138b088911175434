package s3store_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/faulthttp"
	"github.com/foldline/foldline/objstore/s3store"
)

var isPut = faulthttp.Method(http.MethodPut)

func withFaults(t *testing.T, match faulthttp.Match, faults ...faulthttp.Fault) (*s3store.Store, *faulthttp.Proxy) {
	var p *faulthttp.Proxy
	endpoint := startS3(t, func(next http.Handler) http.Handler {
		p = faulthttp.New(next, match, faults...)
		return p
	})
	return openS3(t, endpoint), p
}

// X3: an answer was lost. The driver tries again, and does not take the refusal of its own object for
// somebody else's: the caller is told to read back, and finds its bytes.
func TestLostAnswerToAConditionalPutIsUnknown(t *testing.T) {
	for name, f := range map[string]faulthttp.Fault{
		"connection cut":    {Drop: true},
		"503 after the put": {After: 503, Code: "SlowDown"},
		"500 after the put": {After: 500, Code: "InternalError"},
	} {
		t.Run(name, func(t *testing.T) {
			s, p := withFaults(t, isPut, f)
			err := s.PutIfAbsent(t.Context(), "k", []byte("ours"))
			require.ErrorIs(t, err, objstore.ErrUnknownOutcome)
			require.NotErrorIs(t, err, objstore.ErrExists)
			require.Equal(t, 2, p.Requests())
			got, err := s.Get(t.Context(), "k")
			require.NoError(t, err)
			require.Equal(t, "ours", string(got))
		})
	}
}

func TestRequestThatWasNotDoneIsRepeated(t *testing.T) {
	for name, f := range map[string]faulthttp.Fault{
		"503":           {Before: 503, Code: "SlowDown"},
		"500":           {Before: 500, Code: "InternalError"},
		"429":           {Before: 429, Code: "TooManyRequests"},
		"409 of two":    {Before: 409, Code: "ConditionalRequestConflict"},
		"409 operation": {Before: 409, Code: "OperationAborted"},
	} {
		t.Run(name, func(t *testing.T) {
			s, p := withFaults(t, isPut, f, f)
			require.NoError(t, s.PutIfAbsent(t.Context(), "k", []byte("ours")))
			require.Equal(t, 3, p.Requests())
		})
	}
}

// The answer to a HEAD has no body, so its 409 has no code either.
func TestConflictWithoutACodeIsRepeated(t *testing.T) {
	isHead := func(r *http.Request) bool { return r.Method == http.MethodHead }
	s, p := withFaults(t, isHead, faulthttp.Fault{Before: 409, Code: "OperationAborted"})
	require.NoError(t, s.Put(t.Context(), "k", []byte("ours")))
	info, err := s.Stat(t.Context(), "k")
	require.NoError(t, err)
	require.Equal(t, int64(4), info.Size)
	require.Equal(t, 2, p.Requests())
}

// 409 says that nothing was done, so the 412 that follows is a sure refusal.
func TestConflictThenRefusalIsExists(t *testing.T) {
	s, _ := withFaults(t, isPut, faulthttp.Fault{Drop: true}, faulthttp.Fault{Before: 409, Code: "ConditionalRequestConflict"})
	require.ErrorIs(t, s.PutIfAbsent(t.Context(), "k", []byte("theirs")), objstore.ErrUnknownOutcome)
	err := s.PutIfAbsent(t.Context(), "k", []byte("ours"))
	require.ErrorIs(t, err, objstore.ErrExists)
	require.NotErrorIs(t, err, objstore.ErrUnknownOutcome)
}

func TestAttemptsAreBounded(t *testing.T) {
	s, p := withFaults(t, faulthttp.All, faulthttp.Times(100, faulthttp.Fault{Before: 503, Code: "SlowDown"})...)
	require.ErrorIs(t, s.PutIfAbsent(t.Context(), "k", nil), objstore.ErrUnknownOutcome)
	require.Equal(t, 5, p.Requests())
	_, err := s.Get(t.Context(), "k")
	require.ErrorIs(t, err, objstore.ErrBusy)
	require.Equal(t, 10, p.Requests())
}

func TestDefiniteRefusalIsNotRepeated(t *testing.T) {
	s, p := withFaults(t, isPut, faulthttp.Fault{Before: 403, Code: "AccessDenied"})
	err := s.PutIfAbsent(t.Context(), "k", nil)
	require.ErrorContains(t, err, "AccessDenied")
	require.NotErrorIs(t, err, objstore.ErrUnknownOutcome)
	require.Equal(t, 1, p.Requests())
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
	s := openS3(t, endpoint, func(o *s3store.Options) { o.AttemptTimeout, o.Attempts = 200*time.Millisecond, 2 })
	require.ErrorIs(t, s.PutIfAbsent(t.Context(), "k", nil), objstore.ErrUnknownOutcome)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	_, err := s.Get(ctx, "k")
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestBodyCutShortIsReadAgain(t *testing.T) {
	s, p := withFaults(t, faulthttp.Method(http.MethodGet), faulthttp.Fault{Cut: true}, faulthttp.Fault{Cut: true})
	want := []byte(strings.Repeat("foldline ", 10_000))
	require.NoError(t, s.Put(t.Context(), "k", want))
	got, err := s.Get(t.Context(), "k")
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Equal(t, 3, p.Requests())
}

// A server, or something on the way to it, that drops the condition is found by the probe.
func TestProbeRefusesAServerThatIgnoresTheCondition(t *testing.T) {
	endpoint := startS3(t, func(next http.Handler) http.Handler {
		p := faulthttp.New(next, faulthttp.All)
		p.Always(func(*http.Request) faulthttp.Fault { return faulthttp.Fault{Strip: "If-None-Match"} })
		return p
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
	s, _ := withFaults(t, isComplete, faulthttp.Fault{Drop: true})
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
	s, p := withFaults(t, isPart, faulthttp.Fault{Before: 500, Code: "InternalError"}, faulthttp.Fault{Drop: true})
	u, err = s.Create(t.Context(), "k")
	require.NoError(t, err)
	_, err = u.Write(make([]byte, 9<<20))
	require.NoError(t, err, "a part may be sent again")
	_, err = u.Commit()
	require.NoError(t, err)
	require.Equal(t, 4, p.Requests())
}
