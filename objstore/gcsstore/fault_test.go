package gcsstore_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/faulthttp"
	"github.com/foldline/foldline/objstore/gcsstore"
)

// withFaults is a store whose requests pass a proxy that spoils them.
func withFaults(t *testing.T, match faulthttp.Match, faults ...faulthttp.Fault) (*gcsstore.Store, *faulthttp.Proxy) {
	t.Helper()
	base, err := url.Parse(startGCS(t))
	require.NoError(t, err)
	p := faulthttp.New(faulthttp.To(&url.URL{Scheme: base.Scheme, Host: base.Host}), match, faults...)
	front := httptest.NewServer(p)
	t.Cleanup(front.Close)
	return openGCS(t, front.URL+base.Path, "graphs/demo"), p
}

func isUpload(r *http.Request) bool { return strings.Contains(r.URL.Path, "/upload/") }

// X3: what each answer to a conditional put means, alone and after a lost one; a lost one is settled by reading back.
func TestAnswersToAConditionalPut(t *testing.T) {
	taken := faulthttp.Fault{Before: 412, Code: "conditionNotMet"}
	for _, c := range []struct {
		name     string
		faults   []faulthttp.Fault
		want     error
		requests int
		there    bool
	}{
		{"created", nil, nil, 1, true},
		{"taken", []faulthttp.Fault{taken}, objstore.ErrExists, 1, false},
		{"throttled, then created", []faulthttp.Fault{{Before: 429}, {Before: 503}, {Before: 500}}, nil, 4, true},
		{"answer cut off, then taken by the first try", []faulthttp.Fault{{Drop: true}}, objstore.ErrUnknownOutcome, 2, true},
		{"503 after it was done", []faulthttp.Fault{{After: 503}}, objstore.ErrUnknownOutcome, 2, true},
		{"throttled, then taken", []faulthttp.Fault{{Before: 503}, taken}, objstore.ErrUnknownOutcome, 2, false},
		{"always throttled", faulthttp.Times(9, faulthttp.Fault{Before: 503}), objstore.ErrUnknownOutcome, 5, false},
		{"no permission", []faulthttp.Fault{{Before: 403}}, objstore.ErrDenied, 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, p := withFaults(t, isUpload, c.faults...)
			err := s.PutIfAbsent(t.Context(), "k", []byte("ours"))
			if c.want == nil {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, c.want)
				require.Equal(t, errors.Is(c.want, objstore.ErrExists), errors.Is(err, objstore.ErrExists))
			}
			require.Equal(t, c.requests, p.Requests())
			got, err := s.Get(t.Context(), "k")
			if c.there {
				require.NoError(t, err)
				require.Equal(t, "ours", string(got))
			} else {
				require.ErrorIs(t, err, objstore.ErrNotFound)
			}
		})
	}
}

func TestReadsAreRepeated(t *testing.T) {
	s, p := withFaults(t, faulthttp.Method(http.MethodGet), faulthttp.Fault{Before: 503}, faulthttp.Fault{Cut: true}, faulthttp.Fault{Drop: true})
	want := []byte(strings.Repeat("foldline ", 10_000))
	require.NoError(t, s.Put(t.Context(), "k", want))
	got, err := s.Get(t.Context(), "k")
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Equal(t, 4, p.Requests())
}

// A proxy that strips the precondition is found by the probe (report C141).
func TestProbeRefusesAServerThatIgnoresTheCondition(t *testing.T) {
	base, err := url.Parse(startGCS(t))
	require.NoError(t, err)
	to := faulthttp.To(&url.URL{Scheme: base.Scheme, Host: base.Host})
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		query.Del("ifGenerationMatch")
		r.URL.RawQuery = query.Encode()
		to.ServeHTTP(w, r)
	}))
	defer front.Close()
	s := openGCS(t, front.URL+base.Path, "")
	require.ErrorIs(t, objstore.Probe(t.Context(), s, "_foldline/"), objstore.ErrUnsupported)
}

// A part of an upload is refused: nothing is there, and the refusal is a sure one.
func TestUploadThatIsRefused(t *testing.T) {
	s, p := withFaults(t, isUpload, append(make([]faulthttp.Fault, 2), faulthttp.Times(20, faulthttp.Fault{Before: 403})...)...)
	u, err := s.Create(t.Context(), "k")
	require.NoError(t, err)
	_, err = u.Write(make([]byte, 9<<20))
	require.NoError(t, err)
	_, err = u.Commit()
	require.ErrorIs(t, err, objstore.ErrDenied)
	require.Equal(t, 3, p.Requests(), "a refusal is not repeated")
	_, err = s.Stat(t.Context(), "k")
	require.ErrorIs(t, err, objstore.ErrNotFound)
}
