package azurestore

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/objstore"
)

// answers is a server that gives its answers one after the other, the last one for ever, and counts.
func answers(t *testing.T, requests *atomic.Int64, all ...func(w http.ResponseWriter)) *Store {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		i := int(requests.Add(1))
		all[min(i, len(all))-1](w)
	}))
	t.Cleanup(server.Close)
	o := Options{Account: "a", Endpoint: server.URL, Key: "a2V5"}
	o.Bucket, o.Backoff = "c", time.Millisecond
	s, err := Open(o)
	require.NoError(t, err)
	return s
}

func refuse(status int, code string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("x-ms-error-code", code)
		w.WriteHeader(status)
	}
}

func created(w http.ResponseWriter)    { w.WriteHeader(http.StatusCreated) }
func cutOff(_ http.ResponseWriter)     { panic(http.ErrAbortHandler) }
func notReached(_ http.ResponseWriter) { panic("one request too many") }

// X3: what each answer to a conditional put means, alone and after a lost one.
func TestAnswersToAConditionalPut(t *testing.T) {
	exists := refuse(http.StatusConflict, "BlobAlreadyExists")
	for _, c := range []struct {
		name    string
		answers []func(http.ResponseWriter)
		want    error
	}{
		{"created", []func(http.ResponseWriter){created, notReached}, nil},
		{"taken", []func(http.ResponseWriter){exists, notReached}, objstore.ErrExists},
		{"condition not met", []func(http.ResponseWriter){refuse(412, "ConditionNotMet"), notReached}, objstore.ErrExists},
		{"busy, then created", []func(http.ResponseWriter){refuse(503, "ServerBusy"), refuse(500, "OperationTimedOut"), created}, nil},
		{"cut off, then taken", []func(http.ResponseWriter){cutOff, exists, notReached}, objstore.ErrUnknownOutcome},
		{"busy, then taken", []func(http.ResponseWriter){refuse(503, "ServerBusy"), exists, notReached}, objstore.ErrUnknownOutcome},
		{"always busy", []func(http.ResponseWriter){refuse(503, "ServerBusy")}, objstore.ErrUnknownOutcome},
	} {
		t.Run(c.name, func(t *testing.T) {
			var requests atomic.Int64
			err := answers(t, &requests, c.answers...).PutIfAbsent(t.Context(), "k", []byte("x"))
			if c.want == nil {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, c.want)
			require.Equal(t, errors.Is(c.want, objstore.ErrExists), errors.Is(err, objstore.ErrExists))
		})
	}
}

func TestDefiniteRefusals(t *testing.T) {
	for code, c := range map[string]struct {
		status int
		want   error
	}{"AuthorizationFailure": {403, objstore.ErrDenied}, "ContainerNotFound": {404, objstore.ErrNoBucket}} {
		var requests atomic.Int64
		s := answers(t, &requests, refuse(c.status, code), notReached)
		_, err := s.Get(t.Context(), "k")
		require.ErrorContains(t, err, code)
		require.ErrorIs(t, err, c.want)
		require.NotErrorIs(t, err, objstore.ErrNotFound, "that there is no container says nothing about an object")
		require.Equal(t, int64(1), requests.Load())
	}
}

func TestParseURL(t *testing.T) {
	o, err := ParseURL("az://container/a/b/?account=acc")
	require.NoError(t, err)
	require.Equal(t, []string{"container", "a/b", "acc"}, []string{o.Bucket, o.Prefix, o.Account})
	o.EnsureDefaults()
	require.Equal(t, "https://acc.blob.core.windows.net", o.Endpoint)
	for _, bad := range []string{"az://", "s3://b", "az://acc:secret@c/a", "az://c?key=secret"} {
		_, err := ParseURL(bad)
		require.ErrorIs(t, err, objstore.ErrUnsupported, bad)
		require.NotContains(t, err.Error(), "secret@")
	}
}

func TestOptionsReportAllFaults(t *testing.T) {
	bad := Options{Key: "k"}
	bad.Prefix, bad.PartBytes = "/", -1
	_, err := Open(bad)
	for _, part := range []string{"bucket is required", "prefix", "endpoint", "shared key", "part size"} {
		require.ErrorContains(t, err, part)
	}
}
