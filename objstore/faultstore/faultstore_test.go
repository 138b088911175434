package faultstore_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/faultstore"
	"github.com/foldline/foldline/objstore/objstoretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWithoutFaultsItConforms(t *testing.T) {
	objstoretest.Run(t, func(*testing.T) objstore.Store { return faultstore.New(objstore.NewMemory()) })
}

func TestOnCallFailsOnceAndDoesNothing(t *testing.T) {
	ctx := t.Context()
	s := faultstore.New(objstore.NewMemory(), faultstore.OnCall(2, faultstore.Ops(faultstore.Put), nil))
	require.NoError(t, s.Put(ctx, "a", nil))
	_, err := s.Get(ctx, "a")
	require.NoError(t, err, "another operation does not count")
	require.ErrorIs(t, s.Put(ctx, "b", nil), faultstore.ErrInjected)
	_, err = s.Get(ctx, "b")
	require.ErrorIs(t, err, objstore.ErrNotFound)
	require.NoError(t, s.Put(ctx, "b", nil))
	require.Equal(t, 5, s.Calls())
}

// X3: the write happened, and its caller does not know.
func TestLoseDoesTheCall(t *testing.T) {
	ctx := t.Context()
	s := faultstore.New(objstore.NewMemory(), faultstore.Lose(1, faultstore.Under("v/", faultstore.PutIfAbsent)))
	require.NoError(t, s.PutIfAbsent(ctx, "other", nil))
	require.ErrorIs(t, s.PutIfAbsent(ctx, "v/1", []byte("ours")), objstore.ErrUnknownOutcome)
	require.ErrorIs(t, s.PutIfAbsent(ctx, "v/1", []byte("ours")), objstore.ErrExists)
	got, err := s.Get(ctx, "v/1")
	require.NoError(t, err)
	require.Equal(t, "ours", string(got))
}

func TestLoseKeepsARefusal(t *testing.T) {
	ctx := t.Context()
	s := faultstore.New(objstore.NewMemory(), faultstore.Lose(2, faultstore.Ops(faultstore.PutIfAbsent)))
	require.NoError(t, s.PutIfAbsent(ctx, "k", nil))
	require.ErrorIs(t, s.PutIfAbsent(ctx, "k", nil), objstore.ErrExists, "only an answer that means success is lost")
}

func TestFromCallCutsOff(t *testing.T) {
	ctx := t.Context()
	s := faultstore.New(objstore.NewMemory(), faultstore.FromCall(2, faultstore.Ops(), io.ErrClosedPipe))
	require.NoError(t, s.Put(ctx, "a", nil))
	for range 3 {
		require.ErrorIs(t, s.Delete(ctx, "a"), io.ErrClosedPipe)
	}
	_, _, err := s.GetTail(ctx, "a", 1)
	require.ErrorIs(t, err, io.ErrClosedPipe)
}

func TestUploadsFailInEachStep(t *testing.T) {
	for _, op := range []faultstore.Op{faultstore.Create, faultstore.Write, faultstore.Commit} {
		inner := objstore.NewMemory()
		s := faultstore.New(inner, faultstore.OnCall(1, faultstore.Ops(op), nil))
		err := func() error {
			u, err := s.Create(t.Context(), "k")
			if err != nil {
				return err
			}
			if _, err := u.Write([]byte("x")); err != nil {
				return errors.Join(err, u.Abort())
			}
			_, err = u.Commit()
			return err
		}()
		require.ErrorIs(t, err, faultstore.ErrInjected, op)
		_, err = inner.Stat(t.Context(), "k")
		require.ErrorIs(t, err, objstore.ErrNotFound, op)
	}
}

func TestDelayEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := faultstore.New(objstore.NewMemory(),
		faultstore.Delay(time.Hour, faultstore.Ops(faultstore.Put)),
		faultstore.Watch(faultstore.Ops(faultstore.Put), func(faultstore.Call) { cancel() }))
	require.ErrorIs(t, s.Put(ctx, "k", nil), context.Canceled)
	_, err := s.Get(t.Context(), "k")
	require.ErrorIs(t, err, objstore.ErrNotFound)
}

func TestWatchSeesCallsInOrder(t *testing.T) {
	var seen []faultstore.Call
	s := faultstore.New(objstore.NewMemory(), faultstore.Watch(faultstore.Ops(), func(c faultstore.Call) { seen = append(seen, c) }))
	require.NoError(t, s.Put(t.Context(), "a", nil))
	_, err := s.List(t.Context(), "p/", "", 1)
	require.NoError(t, err)
	require.Equal(t, []faultstore.Call{{Number: 1, Op: faultstore.Put, Key: "a"}, {Number: 2, Op: faultstore.List, Key: "p/"}}, seen)
}

func TestInOrder(t *testing.T) {
	var ends []int
	put := func(key string) faultstore.Match { return faultstore.Under(key, faultstore.Put) }
	s := faultstore.New(objstore.NewMemory(), faultstore.InOrder(func(n int) { ends = append(ends, n) }, put("c"), put("a"), put("b")),
		faultstore.OnCall(1, put("a"), nil))
	var g errgroup.Group
	for _, key := range []string{"a", "b", "c"} {
		g.Go(func() error {
			err := s.Put(t.Context(), key, nil)
			if key == "a" {
				require.ErrorIs(t, err, faultstore.ErrInjected)
				return nil
			}
			return errors.Join(err, s.Put(t.Context(), key, nil)) // a second call of a match is not held up
		})
	}
	require.NoError(t, g.Wait())
	require.Equal(t, []int{1, 2, 3}, ends, "one that fails has ended too")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s = faultstore.New(objstore.NewMemory(), faultstore.InOrder(nil, put("never"), put("a")))
	require.ErrorIs(t, s.Put(ctx, "a", nil), context.Canceled)
}
