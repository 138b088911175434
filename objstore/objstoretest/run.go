package objstoretest

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/objstore"
)

// Run checks that the stores made by open keep the contract. Each part gets a store of its own, which
// must be empty.
func Run(t *testing.T, open func(t *testing.T) objstore.Store) {
	for _, part := range []struct {
		name string
		run  func(t *testing.T, s objstore.Store)
	}{
		{"reads", testReads},
		{"ranges", testRanges},
		{"absent", testAbsent},
		{"put", testPut},
		{"put if absent", testPutIfAbsent},
		{"one winner", testOneWinner},
		{"whole or not at all", testAtomicPut},
		{"upload", testUpload},
		{"upload aborted", testAbort},
		{"large upload", testLargeUpload},
		{"list", testList},
		{"list order", testListOrder},
		{"list against a model", testListModel},
		{"delete", testDelete},
		{"invalid keys", testInvalidKeys},
		{"cancelled", testCancelled},
		{"slices are copied", testCopies},
		{"probe", testProbe},
	} {
		t.Run(part.name, func(t *testing.T) { part.run(t, open(t)) })
	}
}

func testReads(t *testing.T, s objstore.Store) {
	ctx := t.Context()
	for _, data := range [][]byte{{}, []byte("x"), bytes.Repeat([]byte("foldline"), 50_000)} {
		require.NoError(t, s.Put(ctx, "a/object", data))
		got, err := s.Get(ctx, "a/object")
		require.NoError(t, err)
		require.True(t, bytes.Equal(data, got))
		info, err := s.Stat(ctx, "a/object")
		require.NoError(t, err)
		require.Equal(t, "a/object", info.Key)
		require.Equal(t, int64(len(data)), info.Size)
		require.False(t, info.ModTime.IsZero())
	}
}

func testRanges(t *testing.T, s objstore.Store) {
	ctx := t.Context()
	require.NoError(t, s.Put(ctx, "r", []byte("0123456789")))
	require.NoError(t, s.Put(ctx, "empty", nil))
	for _, c := range []struct {
		off, n int64
		want   string
	}{{0, 10, "0123456789"}, {0, 1, "0"}, {9, 1, "9"}, {3, 4, "3456"}, {3, 0, ""}, {10, 0, ""}} {
		got, err := s.GetRange(ctx, "r", c.off, c.n)
		require.NoError(t, err, "%+v", c)
		require.Equal(t, c.want, string(got), "%+v", c)
	}
	for _, c := range [][2]int64{{0, 11}, {10, 1}, {11, 0}, {-1, 2}, {0, -1}, {5, 1 << 60}, {1 << 62, 1 << 62}, {1<<63 - 1, 1<<63 - 1}} {
		_, err := s.GetRange(ctx, "r", c[0], c[1])
		require.ErrorIs(t, err, objstore.ErrRange, "%v", c)
	}
	for _, c := range []struct {
		key  string
		n    int64
		want string
	}{{"r", 4, "6789"}, {"r", 10, "0123456789"}, {"r", 1 << 40, "0123456789"}, {"r", 0, ""}, {"empty", 8, ""}} {
		got, size, err := s.GetTail(ctx, c.key, c.n)
		require.NoError(t, err, "%+v", c)
		require.Equal(t, c.want, string(got), "%+v", c)
		if c.key == "r" {
			require.Equal(t, int64(10), size)
		} else {
			require.Zero(t, size)
		}
	}
	_, _, err := s.GetTail(ctx, "r", -1)
	require.ErrorIs(t, err, objstore.ErrRange)
}

func testAbsent(t *testing.T, s objstore.Store) {
	ctx := t.Context()
	require.NoError(t, s.Put(ctx, "dir/object", []byte("x")))
	for _, key := range []string{"none", "dir", "dir/other", "dir/object/below", "no/such/dir"} {
		_, err := s.Get(ctx, key)
		require.ErrorIs(t, err, objstore.ErrNotFound, key)
		_, err = s.GetRange(ctx, key, 0, 1)
		require.ErrorIs(t, err, objstore.ErrNotFound, key)
		_, _, err = s.GetTail(ctx, key, 1)
		require.ErrorIs(t, err, objstore.ErrNotFound, key)
		_, err = s.Stat(ctx, key)
		require.ErrorIs(t, err, objstore.ErrNotFound, key)
		require.NoError(t, s.Delete(ctx, key), key)
	}
	got, err := s.Get(ctx, "dir/object")
	require.NoError(t, err)
	require.Equal(t, "x", string(got))
}

func testPut(t *testing.T, s objstore.Store) {
	ctx := t.Context()
	for i := range 3 {
		require.NoError(t, s.Put(ctx, "k", []byte{byte(i)}))
		got, err := s.Get(ctx, "k")
		require.NoError(t, err)
		require.Equal(t, []byte{byte(i)}, got)
	}
	requireKeys(t, s, "", "", 0, "k")
}

func testPutIfAbsent(t *testing.T, s objstore.Store) {
	ctx := t.Context()
	require.NoError(t, s.PutIfAbsent(ctx, "v/1", []byte("first")))
	require.ErrorIs(t, s.PutIfAbsent(ctx, "v/1", []byte("second")), objstore.ErrExists)
	got, err := s.Get(ctx, "v/1")
	require.NoError(t, err)
	require.Equal(t, "first", string(got))
	requireKeys(t, s, "", "", 0, "v/1")
	require.NoError(t, s.Delete(ctx, "v/1"))
	require.NoError(t, s.PutIfAbsent(ctx, "v/1", nil))
	require.ErrorIs(t, s.PutIfAbsent(ctx, "v/1", []byte("x")), objstore.ErrExists, "an empty object counts")
}

func testDelete(t *testing.T, s objstore.Store) {
	ctx := t.Context()
	require.NoError(t, s.Put(ctx, "a/b", []byte("x")))
	require.NoError(t, s.Put(ctx, "a/c", []byte("x")))
	require.NoError(t, s.Delete(ctx, "a"))
	require.NoError(t, s.Delete(ctx, "a/b"))
	require.NoError(t, s.Delete(ctx, "a/b"))
	requireKeys(t, s, "", "", 0, "a/c")
	require.NoError(t, s.Delete(ctx, "a/c"))
	requireKeys(t, s, "", "", 0)
	require.NoError(t, s.Put(ctx, "a/b", []byte("again")))
	requireKeys(t, s, "a/", "", 0, "a/b")
}

func testInvalidKeys(t *testing.T, s objstore.Store) {
	ctx := t.Context()
	for _, key := range InvalidKeys() {
		_, err := s.Get(ctx, key)
		require.ErrorIs(t, err, objstore.ErrInvalidKey, "%q", key)
		_, err = s.GetRange(ctx, key, 0, 1)
		require.ErrorIs(t, err, objstore.ErrInvalidKey, "%q", key)
		_, _, err = s.GetTail(ctx, key, 1)
		require.ErrorIs(t, err, objstore.ErrInvalidKey, "%q", key)
		_, err = s.Stat(ctx, key)
		require.ErrorIs(t, err, objstore.ErrInvalidKey, "%q", key)
		_, err = s.Create(ctx, key)
		require.ErrorIs(t, err, objstore.ErrInvalidKey, "%q", key)
		require.ErrorIs(t, s.Put(ctx, key, nil), objstore.ErrInvalidKey, "%q", key)
		require.ErrorIs(t, s.PutIfAbsent(ctx, key, nil), objstore.ErrInvalidKey, "%q", key)
		require.ErrorIs(t, s.Delete(ctx, key), objstore.ErrInvalidKey, "%q", key)
	}
	for _, prefix := range []string{"/", "/a", "a//", "../", "a/../b", "./a", "a\x00", "a\\b"} {
		_, err := s.List(ctx, prefix, "", 0)
		require.ErrorIs(t, err, objstore.ErrInvalidKey, "%q", prefix)
		_, err = s.List(ctx, "", prefix, 0)
		require.ErrorIs(t, err, objstore.ErrInvalidKey, "%q", prefix)
	}
	requireKeys(t, s, "", "", 0)
}

func testCancelled(t *testing.T, s objstore.Store) {
	require.NoError(t, s.Put(t.Context(), "k", []byte("x")))
	u, err := s.Create(t.Context(), "u")
	require.NoError(t, err)
	require.NoError(t, u.Abort())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.Get(ctx, "k")
	require.ErrorIs(t, err, context.Canceled)
	_, err = s.GetRange(ctx, "k", 0, 1)
	require.ErrorIs(t, err, context.Canceled)
	_, _, err = s.GetTail(ctx, "k", 1)
	require.ErrorIs(t, err, context.Canceled)
	_, err = s.Stat(ctx, "k")
	require.ErrorIs(t, err, context.Canceled)
	_, err = s.List(ctx, "", "", 0)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, s.Put(ctx, "k", nil), context.Canceled)
	require.ErrorIs(t, s.PutIfAbsent(ctx, "new", nil), context.Canceled)
	require.ErrorIs(t, s.Delete(ctx, "k"), context.Canceled)
	requireKeys(t, s, "", "", 0, "k")
}

func testCopies(t *testing.T, s objstore.Store) {
	ctx := t.Context()
	data := []byte("kept")
	require.NoError(t, s.Put(ctx, "k", data))
	copy(data, "lost")
	for range 2 {
		got, err := s.Get(ctx, "k")
		require.NoError(t, err)
		require.Equal(t, "kept", string(got))
		copy(got, "lost")
		got, err = s.GetRange(ctx, "k", 0, 4)
		require.NoError(t, err)
		require.Equal(t, "kept", string(got))
		copy(got, "lost")
		got, _, err = s.GetTail(ctx, "k", 4)
		require.NoError(t, err)
		require.Equal(t, "kept", string(got))
		copy(got, "lost")
	}
}

func testProbe(t *testing.T, s objstore.Store) {
	for range 5 {
		require.NoError(t, objstore.Probe(t.Context(), s, "_foldline"))
	}
	requireKeys(t, s, "", "", 0)
}

// InvalidKeys are keys that every store refuses.
func InvalidKeys() []string {
	long := string(bytes.Repeat([]byte("x"), objstore.MaxSegmentBytes+1))
	deep := string(bytes.Repeat([]byte("x/"), objstore.MaxKeyBytes/2)) + "xx"
	return []string{
		"", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/..", "a/./b", "a\\b", "a\x00b", "a\nb",
		"a/\xff", ".tmp-1", "a/.tmp-1", long, "a/" + long, deep,
	}
}

// requireKeys checks a listing's keys, and that sizes come with them.
func requireKeys(t *testing.T, s objstore.Store, prefix, after string, max int, want ...string) {
	t.Helper()
	infos, err := s.List(t.Context(), prefix, after, max)
	require.NoError(t, err)
	got := make([]string, 0, len(infos))
	for _, info := range infos {
		got = append(got, info.Key)
		require.False(t, info.ModTime.IsZero(), "time of %q", info.Key)
	}
	require.Equal(t, append([]string{}, want...), got, "prefix %q, after %q, max %d", prefix, after, max)
}

// blob is reproducible data that does not repeat.
func blob(seed uint64, n int) []byte {
	data := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}).Read(data) // never fails
	return data
}

func numbered(i int) string { return fmt.Sprintf("race/%06d", i) }
