package countstore_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/countstore"
	"github.com/foldline/foldline/objstore/objstoretest"
)

func TestItConforms(t *testing.T) {
	objstoretest.Run(t, func(*testing.T) objstore.Store { return countstore.New(objstore.NewMemory()) })
}

func TestCounts(t *testing.T) {
	ctx := t.Context()
	s := countstore.New(objstore.NewMemory())
	require.NoError(t, s.Put(ctx, "a/1", make([]byte, 10)))
	require.NoError(t, s.PutIfAbsent(ctx, "b/1", make([]byte, 5)))
	require.Error(t, s.PutIfAbsent(ctx, "b/1", make([]byte, 5)))
	u, err := s.Create(ctx, "a/2")
	require.NoError(t, err)
	for range 3 {
		_, err = u.Write(make([]byte, 100))
		require.NoError(t, err)
	}
	_, err = u.Commit()
	require.NoError(t, err)
	_, err = s.Get(ctx, "a/1")
	require.NoError(t, err)
	_, err = s.GetRange(ctx, "a/2", 0, 7)
	require.NoError(t, err)
	_, _, err = s.GetTail(ctx, "a/2", 1000)
	require.NoError(t, err)
	_, err = s.List(ctx, "a/", "", 0)
	require.NoError(t, err)
	_, err = s.Stat(ctx, "none")
	require.ErrorIs(t, err, objstore.ErrNotFound)
	require.NoError(t, s.Delete(ctx, "b/1"))

	all := countstore.Counts{Get: 1, GetRange: 1, GetTail: 1, Put: 1, PutIfAbsent: 2, Upload: 1, List: 1, Stat: 1, Delete: 1,
		ReadBytes: 10 + 7 + 300, WrittenBytes: 10 + 5 + 300}
	require.Equal(t, all, s.Counts(), s.Calls())
	require.Equal(t, 10, s.Counts().Requests())
	require.Equal(t, countstore.Counts{PutIfAbsent: 2, Delete: 1, WrittenBytes: 5}, s.Under("b/"))
	s.Reset()
	require.Zero(t, s.Counts())
}

func TestConcurrentCallsAreAllCounted(t *testing.T) {
	s := countstore.New(objstore.NewMemory())
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				_ = s.Put(t.Context(), "k", nil)
			}
		})
	}
	wg.Wait()
	require.Equal(t, 800, s.Counts().Put)
}
