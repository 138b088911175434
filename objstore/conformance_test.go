package objstore_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/objstoretest"
)

func openLocal(t *testing.T) objstore.Store {
	s, err := objstore.OpenLocal(t.TempDir())
	require.NoError(t, err)
	return s
}

func TestLocalConforms(t *testing.T) { objstoretest.Run(t, openLocal) }

func TestMemoryConforms(t *testing.T) {
	objstoretest.Run(t, func(*testing.T) objstore.Store { return objstore.NewMemory() })
}

func TestTwoProcessesOnOneDirectory(t *testing.T) {
	objstoretest.Race(t, objstore.Open, t.TempDir())
}

// careless is a store as some S3 servers are: it ignores the condition of a put.
type careless struct{ objstore.Store }

func (c careless) PutIfAbsent(ctx context.Context, key string, data []byte) error {
	return c.Put(ctx, key, data)
}

// late checks the condition, and then writes all the same when asked a third time.
type late struct{ objstore.Store }

func (l late) PutIfAbsent(ctx context.Context, key string, data []byte) error {
	err := l.Store.PutIfAbsent(ctx, key, data)
	if string(data[:4]) == "late" {
		return l.Put(ctx, key, data)
	}
	return err
}

// liar confirms the put that it did not do.
type liar struct{ objstore.Store }

func (l liar) PutIfAbsent(ctx context.Context, key string, data []byte) error {
	if string(data[:4]) == "late" {
		return objstore.ErrExists
	}
	if err := l.Put(ctx, key, []byte("somebody else's")); err != nil {
		return err
	}
	if string(data[:5]) == "first" {
		return nil
	}
	return objstore.ErrExists
}

func TestProbeRefusesAStoreThatIgnoresTheCondition(t *testing.T) {
	for name, wrap := range map[string]func(objstore.Store) objstore.Store{
		"careless": func(s objstore.Store) objstore.Store { return careless{s} },
		"late":     func(s objstore.Store) objstore.Store { return late{s} },
		"liar":     func(s objstore.Store) objstore.Store { return liar{s} },
	} {
		t.Run(name, func(t *testing.T) {
			s := wrap(objstore.NewMemory())
			require.ErrorIs(t, objstore.Probe(t.Context(), s, "p/"), objstore.ErrUnsupported)
			left, err := s.List(t.Context(), "", "", 0)
			require.NoError(t, err)
			require.Empty(t, left, "the probe leaves nothing behind")
		})
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	for _, url := range []string{dir + "/a/b", "file://" + dir + "/c", "file://localhost" + dir + "/d", "mem://"} {
		s, err := objstore.Open(t.Context(), url)
		require.NoError(t, err, url)
		require.NoError(t, s.Put(t.Context(), "k", []byte("x")), url)
	}
	require.DirExists(t, dir+"/a/b")
	for _, url := range []string{"", "ftp://host/x", "file://host/x", "file://relative", "file:///%zz"} {
		_, err := objstore.Open(t.Context(), url)
		require.ErrorIs(t, err, objstore.ErrUnsupported, url)
	}
}
