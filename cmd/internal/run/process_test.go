package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/internal/ingest"
	"github.com/foldline/foldline/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func TestDataDirIsHeldByOneProcess(t *testing.T) {
	d := DataDir(filepath.Join(t.TempDir(), "data"))
	unlock, err := d.lock()
	require.NoError(t, err)
	_, err = d.lock()
	require.ErrorIs(t, err, ErrInUse)
	require.ErrorContains(t, err, "process "+strconv.Itoa(os.Getpid()))
	require.NoError(t, unlock())
	unlock, err = d.lock()
	require.NoError(t, err)
	require.NoError(t, unlock())
}

func TestServerURLIsLeftForOthers(t *testing.T) {
	d := DataDir(t.TempDir())
	require.Empty(t, d.ServerURL())
	require.NoError(t, d.setServerURL("nats://127.0.0.1:4222"))
	require.Equal(t, "nats://127.0.0.1:4222", d.ServerURL())
}

func TestEmbeddedServerHasJetStreamOnLoopback(t *testing.T) {
	taken := testkit.StartNATS(t)
	s, err := startServer(t.Context(), t.TempDir(), 0, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer testkit.StopNATS(s)
	require.True(t, s.Addr().(*net.TCPAddr).IP.IsLoopback())
	nc, err := Connect(NATS{URL: s.ClientURL()}, "test", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer nc.Close()
	require.True(t, s.JetStreamEnabled())
	_, err = nc.Request("nobody.listens", nil, nats.DefaultTimeout)
	require.ErrorIs(t, err, nats.ErrNoResponders)
	require.NotEqual(t, taken.ClientURL(), s.ClientURL())
}

// Two development lines that start at once both want the default port: the one that is late takes another. A port that was asked for is refused at once.
func TestEmbeddedServerOnATakenPort(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	holder, err := startServer(t.Context(), t.TempDir(), 0, log) // on the default port, unless somebody else is there
	require.NoError(t, err)
	defer testkit.StopNATS(holder)
	other, err := startServer(t.Context(), t.TempDir(), 0, log)
	require.NoError(t, err)
	defer testkit.StopNATS(other)
	require.NotEqual(t, holder.ClientURL(), other.ClientURL())
	require.True(t, other.JetStreamEnabled())
	_, err = startServer(t.Context(), t.TempDir(), holder.Addr().(*net.TCPAddr).Port, log)
	require.ErrorIs(t, err, errNoListen)
	require.ErrorContains(t, err, "--port")
}

func TestConnectNamesNoSecret(t *testing.T) {
	_, err := Connect(NATS{URL: "nats://user:secret@127.0.0.1:1"}, "test", slog.New(slog.DiscardHandler))
	require.ErrorIs(t, err, ErrUnreachable)
	require.NotContains(t, err.Error(), "secret")
}

func TestEndpoint(t *testing.T) {
	var notReady error
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w, "metric 1") })
	server := httptest.NewServer(routes(metrics, func(context.Context) error { return notReady }))
	defer server.Close()
	get := func(path string) (int, string) {
		resp, err := server.Client().Get(server.URL + path)
		require.NoError(t, err)
		defer func() { _ = resp.Body.Close() }()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(body)
	}
	for _, c := range []struct {
		path, body string
		code       int
		err        error
	}{
		{"/metrics", "metric 1\n", 200, nil},
		{"/healthz", "ok\n", 200, errors.New("down")},
		{"/readyz", "ready\n", 200, nil},
		{"/readyz", "not ready: down\n", 503, errors.New("down")},
	} {
		notReady = c.err
		code, body := get(c.path)
		require.Equal(t, c.code, code, c.path)
		require.Equal(t, c.body, body, c.path)
	}
}

// A process that is asked to stop while the lane count changes stops well.
func TestLanesGoOnAfterAChange(t *testing.T) {
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	broken, changed := errors.New("broken"), fmt.Errorf("lane 0: %w", ingest.ErrLanesChanged)
	for _, c := range []struct {
		ctx   context.Context
		err   error
		again bool
		left  error
	}{
		{t.Context(), nil, false, nil}, {t.Context(), broken, false, broken}, {t.Context(), changed, true, nil},
		{stopped, nil, false, nil}, {stopped, broken, false, broken}, {stopped, changed, false, nil},
	} {
		again, left := goesOn(c.ctx, c.err)
		require.Equal(t, c.again, again, "%v", c.err)
		require.ErrorIs(t, left, c.left)
	}
}

func TestStageEndsWithItsFirstMember(t *testing.T) {
	waits := func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	for _, c := range []struct {
		name string
		err  error
	}{{"error", errors.New("first")}, {"clean", nil}} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t.Context())
			s.run("other", waits)
			s.run("member", func(context.Context) error { return c.err })
			err := s.wait()
			require.ErrorIs(t, err, c.err)
			if c.err != nil {
				require.EqualError(t, err, "member: first")
			}
		})
	}
	t.Run("stopped", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := newStage(ctx)
		s.run("other", waits)
		cancel()
		require.NoError(t, s.wait())
	})
}
