package objstoretest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/objstore"
)

// testOneWinner races 20 writers for each of 20 keys.
func testOneWinner(t *testing.T, s objstore.Store) {
	const writers, objects = 20, 20
	wins := raceFor(t.Context(), s, "w", writers, objects)
	winners := map[string]string{}
	for _, w := range wins {
		require.NoError(t, w.err)
		require.NotContains(t, winners, w.key, "second winner")
		winners[w.key] = w.body
	}
	require.Len(t, winners, objects)
	for key, body := range winners {
		got, err := s.Get(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, body, string(got), "the object is not its winner's")
	}
}

// win is one conditional put that was confirmed, or the error of one that was neither that nor refused.
type win struct {
	key  string
	body string
	err  error
}

// raceFor lets writers put every object conditionally, and returns what was confirmed.
func raceFor(ctx context.Context, s objstore.Store, name string, writers, objects int) []win {
	var (
		mu   sync.Mutex
		wins []win
		wg   sync.WaitGroup
	)
	for w := range writers {
		wg.Go(func() {
			for o := range objects {
				key, body := numbered(o), fmt.Sprintf("%s %d %s", name, w, bytes.Repeat([]byte{'.'}, 1000))
				err := s.PutIfAbsent(ctx, key, []byte(body))
				if errors.Is(err, objstore.ErrExists) {
					continue
				}
				mu.Lock()
				wins = append(wins, win{key: key, body: body, err: err})
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return wins
}

// testAtomicPut replaces an object while readers look: each sees one of the versions, whole.
func testAtomicPut(t *testing.T, s objstore.Store) {
	ctx := t.Context()
	versions := [][]byte{blob(1, 300_000), blob(2, 200_000), blob(3, 10)}
	require.NoError(t, s.Put(ctx, "k", versions[0]))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	errs := make(chan error, 2)
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := readsOneOf(ctx, s, "k", versions); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	for i := range 30 {
		require.NoError(t, s.Put(ctx, "k", versions[i%len(versions)]))
	}
	close(stop)
	wg.Wait()
	close(errs)
	require.NoError(t, <-errs)
}

func readsOneOf(ctx context.Context, s objstore.Store, key string, versions [][]byte) error {
	got, err := s.Get(ctx, key)
	if err != nil {
		return err
	}
	for _, v := range versions {
		if bytes.Equal(got, v) {
			return nil
		}
	}
	return fmt.Errorf("torn read of %d bytes", len(got))
}

func testUpload(t *testing.T, s objstore.Store) {
	ctx := t.Context()
	require.NoError(t, s.Put(ctx, "u/k", []byte("before")))
	u, err := s.Create(ctx, "u/k")
	require.NoError(t, err)
	for _, part := range []string{"", "one ", "two ", "", "three"} {
		n, err := u.Write([]byte(part))
		require.NoError(t, err)
		require.Equal(t, len(part), n)
		got, err := s.Get(ctx, "u/k")
		require.NoError(t, err)
		require.Equal(t, "before", string(got), "visible before commit")
		requireKeys(t, s, "u/", "", 0, "u/k")
	}
	info, err := u.Commit()
	require.NoError(t, err)
	require.Equal(t, "u/k", info.Key)
	require.Equal(t, int64(13), info.Size)
	got, err := s.Get(ctx, "u/k")
	require.NoError(t, err)
	require.Equal(t, "one two three", string(got))
	require.NoError(t, u.Abort(), "abort after commit does nothing")
	_, err = u.Write([]byte("late"))
	require.ErrorIs(t, err, objstore.ErrClosed)
	_, err = u.Commit()
	require.ErrorIs(t, err, objstore.ErrClosed)
	requireKeys(t, s, "", "", 0, "u/k")

	empty, err := s.Create(ctx, "u/empty")
	require.NoError(t, err)
	_, err = empty.Commit()
	require.NoError(t, err)
	got, err = s.Get(ctx, "u/empty")
	require.NoError(t, err)
	require.Empty(t, got)
}

func testAbort(t *testing.T, s objstore.Store) {
	ctx := t.Context()
	u, err := s.Create(ctx, "dir/k")
	require.NoError(t, err)
	_, err = u.Write(blob(1, 100_000))
	require.NoError(t, err)
	require.NoError(t, u.Abort())
	require.NoError(t, u.Abort())
	_, err = u.Commit()
	require.ErrorIs(t, err, objstore.ErrClosed)
	requireKeys(t, s, "", "", 0)

	cut, cancel := context.WithCancel(ctx)
	u, err = s.Create(cut, "dir/k")
	require.NoError(t, err)
	_, err = u.Write([]byte("x"))
	require.NoError(t, err)
	cancel()
	_, err = u.Commit()
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, u.Abort())
	requireKeys(t, s, "", "", 0)
}

// testLargeUpload is large enough for several parts of a multipart upload.
func testLargeUpload(t *testing.T, s objstore.Store) {
	ctx := t.Context()
	data := blob(9, 17<<20+123)
	u, err := s.Create(ctx, "large")
	require.NoError(t, err)
	for rest := data; len(rest) > 0; {
		n := min(len(rest), 700_001)
		_, err := u.Write(rest[:n])
		require.NoError(t, err)
		rest = rest[n:]
	}
	info, err := u.Commit()
	require.NoError(t, err)
	require.Equal(t, int64(len(data)), info.Size)
	got, err := s.Get(ctx, "large")
	require.NoError(t, err)
	require.True(t, bytes.Equal(data, got))
	tail, size, err := s.GetTail(ctx, "large", 1000)
	require.NoError(t, err)
	require.Equal(t, int64(len(data)), size)
	require.True(t, bytes.Equal(data[len(data)-1000:], tail))
	part, err := s.GetRange(ctx, "large", 8<<20-5, 10)
	require.NoError(t, err)
	require.True(t, bytes.Equal(data[8<<20-5:8<<20+5], part))
}
