//go:build interop

// The driver against versitygw, an S3 server that is a process of its own and dies. `make s3` builds it and runs this.
package s3store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/internal/testkit"
	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/faulthttp"
	"github.com/foldline/foldline/objstore/objstoretest"
	"github.com/foldline/foldline/objstore/s3store"
)

// startGateway starts a gateway with one bucket, and lets this process and its children have its keys.
func startGateway(t *testing.T) *testkit.Gateway {
	t.Helper()
	for name, value := range testkit.GatewayEnv() {
		t.Setenv(name, value)
	}
	return testkit.StartGateway(t, bucketName)
}

func TestItConformsOnVersityGW(t *testing.T) {
	g, n := startGateway(t), 0
	objstoretest.Run(t, func(t *testing.T) objstore.Store {
		n++
		return openS3(t, g.URL, func(o *s3store.Options) { o.Prefix = fmt.Sprintf("store%d", n) })
	})
}

// X1 rests on it: two processes of ours, ten writers each, and exactly one winner for each of a hundred keys.
func TestTwoProcessesOnVersityGW(t *testing.T) {
	g := startGateway(t)
	objstoretest.Race(t, openURL, gatewayURL(g, "race"))
}

// The same with two gateways before one directory, each process at its own.
func TestTwoProcessesAtTwoGateways(t *testing.T) {
	a := startGateway(t)
	b := testkit.StartGatewayOn(t, a.Dir)
	objstoretest.Race(t, openURL, gatewayURL(a, "race"), gatewayURL(b, "race"))
}

func gatewayURL(g *testkit.Gateway, prefix string) string {
	return fmt.Sprintf("s3://%s/%s?endpoint=%s", bucketName, prefix, g.URL)
}

// openAtGateway is a store that gives up soon enough for a test that kills its server.
func openAtGateway(t *testing.T, g *testkit.Gateway, prefix string) *s3store.Store {
	return openS3(t, g.URL, func(o *s3store.Options) {
		o.Prefix, o.Attempts, o.AttemptTimeout = prefix, 3, 5*time.Second
	})
}

// killDuring kills the gateway while work goes on, starts it again, and returns when work has ended.
func killDuring(t *testing.T, g *testkit.Gateway, began func() bool, work func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		work()
	}()
	testkit.WaitFor(t, "work to begin", began)
	g.Kill()
	<-done
	g.Start()
}

// X3: the gateway dies while conditional puts are on their way. What was confirmed is there; what was refused for sure
// is not; what is unknown is settled by reading back, and a put that is repeated then has one outcome.
func TestKilledInTheMiddleOfPuts(t *testing.T) {
	g := startGateway(t)
	for round := range 5 {
		s := openAtGateway(t, g, fmt.Sprintf("puts%d", round))
		const writers = 8
		var landed atomic.Int64
		outcomes := make([]map[string]error, writers)
		killDuring(t, g, func() bool { return landed.Load() > int64(10+20*round) }, func() {
			inParallel(writers, func(w int) {
				outcomes[w] = putUntilItFails(t.Context(), s, w, &landed)
			})
		})
		unknown := 0
		for w, of := range outcomes {
			for key, err := range of {
				unknown += settle(t, s, key, body(w, key), err)
			}
		}
		t.Logf("round %d: %d puts confirmed, %d of unknown outcome", round, landed.Load(), unknown)
	}
}

func inParallel(n int, work func(i int)) {
	done := make(chan struct{})
	for i := range n {
		go func() {
			work(i)
			done <- struct{}{}
		}()
	}
	for range n {
		<-done
	}
}

// body is 100 KB that only this writer writes to this key.
func body(w int, key string) []byte {
	return bytes.Repeat(fmt.Appendf(nil, "%d %s ", w, key), 8000)
}

// putUntilItFails puts new keys until a put fails, and returns what became of each.
func putUntilItFails(ctx context.Context, s objstore.Store, w int, landed *atomic.Int64) map[string]error {
	outcomes := map[string]error{}
	for i := 0; ; i++ {
		key := fmt.Sprintf("w%d/%04d", w, i)
		err := s.PutIfAbsent(ctx, key, body(w, key))
		outcomes[key] = err
		if err != nil {
			return outcomes
		}
		landed.Add(1)
	}
}

// settle checks one outcome against what is there, and reports 1 for an unknown one.
func settle(t *testing.T, s objstore.Store, key string, want []byte, outcome error) int {
	t.Helper()
	got, err := s.Get(t.Context(), key)
	there := !errors.Is(err, objstore.ErrNotFound)
	if there {
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, got), "%s is torn: %d of %d bytes", key, len(got), len(want))
	}
	switch {
	case outcome == nil:
		require.True(t, there, "%s was confirmed and is gone", key)
	case errors.Is(outcome, objstore.ErrUnknownOutcome):
		again := s.PutIfAbsent(t.Context(), key, want)
		if there {
			require.ErrorIs(t, again, objstore.ErrExists)
		} else {
			require.NoError(t, again)
		}
		return 1
	default:
		require.ErrorIs(t, outcome, objstore.ErrBusy)
		require.False(t, there, "%s is there, and its put was known not to be done", key)
	}
	return 0
}

// The gateway dies between the parts of an upload, or in its completion: the object is there whole or not at all, and
// an upload begun afresh succeeds.
func TestKilledInTheMiddleOfAnUpload(t *testing.T) {
	g := startGateway(t)
	base, err := url.Parse(g.URL)
	require.NoError(t, err)
	complete := func(r *http.Request) bool { return r.Method == http.MethodPost && r.URL.Query().Has("uploadId") }
	data := bytes.Repeat([]byte("foldline"), 12<<17) // 12 MiB: two parts
	var written atomic.Int64
	for round := range 9 {
		// The last rounds kill when the completion is on its way, further on its way each time.
		proxy := faulthttp.New(faulthttp.To(base), complete, faulthttp.Fault{Delay: time.Duration(max(0, 6-round)) * time.Millisecond})
		front := httptest.NewServer(proxy)
		s := openS3(t, front.URL, func(o *s3store.Options) { o.Prefix, o.Attempts = "uploads", 3 })
		killAt := min(int64(1+4*round)<<20, int64(len(data)))
		began := func() bool { return written.Load() >= killAt && (killAt < int64(len(data)) || proxy.Requests() > 0) }
		key := fmt.Sprintf("u%d", round)
		var outcome error
		written.Store(0)
		killDuring(t, g, began, func() { outcome = upload(t.Context(), s, key, data, &written) })
		got, err := s.Get(t.Context(), key)
		if errors.Is(err, objstore.ErrNotFound) {
			require.Error(t, outcome, "the upload was confirmed and is gone")
		} else {
			require.NoError(t, err)
			require.True(t, bytes.Equal(data, got))
			require.True(t, outcome == nil || errors.Is(outcome, objstore.ErrUnknownOutcome), "%v", outcome)
		}
		t.Logf("killed at %d MiB: there: %v, outcome: %v", killAt>>20, err == nil, outcome)
		require.NoError(t, upload(t.Context(), s, key, data, &written))
		front.Close()
	}
	left, err := openAtGateway(t, g, "").List(t.Context(), "uploads/", "", 0)
	require.NoError(t, err)
	require.Len(t, left, 9, "the parts of an upload that died are no objects")
}

func upload(ctx context.Context, s objstore.Store, key string, data []byte, written *atomic.Int64) error {
	u, err := s.Create(ctx, key)
	if err != nil {
		return err
	}
	for rest := data; len(rest) > 0; {
		n, err := u.Write(rest[:min(len(rest), 1<<20)])
		if err != nil {
			return errors.Join(err, u.Abort())
		}
		rest = rest[n:]
		written.Add(int64(n))
	}
	_, err = u.Commit()
	return err
}

// The gateway dies while listings are read: a listing that is answered is whole and in order, one that is not says so.
func TestKilledInTheMiddleOfListings(t *testing.T) {
	g := startGateway(t)
	s := openAtGateway(t, g, "list")
	const n = 300
	var want []string
	for i := range n {
		want = append(want, fmt.Sprintf("k/%05d", i))
	}
	inParallel(8, func(w int) {
		for i := w; i < n; i += 8 {
			if err := s.Put(t.Context(), want[i], nil); err != nil {
				t.Error(err)
			}
		}
	})
	require.False(t, t.Failed())
	for range 5 {
		var listed atomic.Int64
		var failed error
		killDuring(t, g, func() bool { return listed.Load() >= 3 }, func() {
			for failed == nil {
				var infos []objstore.Info
				if infos, failed = s.List(t.Context(), "k/", "", 0); failed == nil {
					if len(infos) != n {
						t.Errorf("%d of %d objects listed", len(infos), n)
					}
					listed.Add(1)
				}
			}
		})
		require.NotErrorIs(t, failed, objstore.ErrNotFound)
		require.NotErrorIs(t, failed, objstore.ErrUnknownOutcome, "a read changes nothing")
		infos, err := s.List(t.Context(), "k/", "", 0)
		require.NoError(t, err)
		for i, info := range infos {
			require.Equal(t, want[i], info.Key)
		}
		require.Len(t, infos, n)
	}
}

// Wrong keys, a bucket that is not there and a dead endpoint each have their class.
func TestWhatVersityGWRefuses(t *testing.T) {
	g := startGateway(t)
	s := openAtGateway(t, g, "x")
	require.NoError(t, objstore.Probe(t.Context(), s, "probe/"))
	missing := openS3(t, g.URL, func(o *s3store.Options) { o.Bucket = "another-bucket" })
	_, err := missing.Get(t.Context(), "k")
	require.ErrorIs(t, err, objstore.ErrNoBucket)
	require.NotErrorIs(t, err, objstore.ErrNotFound)
	_, err = missing.List(t.Context(), "", "", 0)
	require.ErrorIs(t, err, objstore.ErrNoBucket)
	require.ErrorIs(t, missing.PutIfAbsent(t.Context(), "k", nil), objstore.ErrNoBucket)

	require.NoError(t, os.Setenv("AWS_SECRET_ACCESS_KEY", "SECMARK-of-somebody-else")) // t.Setenv puts it back
	wrong := openAtGateway(t, g, "x")
	_, err = wrong.Get(t.Context(), "k")
	require.ErrorIs(t, err, objstore.ErrDenied)
	require.NotContains(t, err.Error(), "SECMARK")
	require.ErrorIs(t, objstore.Probe(t.Context(), wrong, "probe/"), objstore.ErrDenied)

	g.Kill()
	require.ErrorIs(t, s.PutIfAbsent(t.Context(), "k", nil), objstore.ErrBusy)
}
