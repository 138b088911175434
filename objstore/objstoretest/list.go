package objstoretest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/objstore"
)

func testList(t *testing.T, s objstore.Store) {
	ctx := t.Context()
	requireKeys(t, s, "", "", 0)
	requireKeys(t, s, "no/such/", "", 0)
	for _, key := range []string{"t/_versions/3.manifest", "t/_versions/1.manifest", "t/_versions/2.manifest", "t/data/x.lance", "t2/data/y.lance", "top"} {
		require.NoError(t, s.Put(ctx, key, []byte(key)))
	}
	requireKeys(t, s, "t/_versions/", "", 1, "t/_versions/1.manifest")
	requireKeys(t, s, "t/_versions/", "t/_versions/1.manifest", 1, "t/_versions/2.manifest")
	requireKeys(t, s, "t/_versions/", "t/_versions/1.", 2, "t/_versions/1.manifest", "t/_versions/2.manifest")
	requireKeys(t, s, "t/_versions/", "t/_versions/9", 0)
	requireKeys(t, s, "t/_versions/2", "", 0, "t/_versions/2.manifest")
	requireKeys(t, s, "t/_vers", "", 2, "t/_versions/1.manifest", "t/_versions/2.manifest")
	requireKeys(t, s, "t", "t/data/x.lance", 0, "t2/data/y.lance", "top")
	requireKeys(t, s, "t/", "a", 1, "t/_versions/1.manifest")
	requireKeys(t, s, "t/", "u", 0)
	requireKeys(t, s, "top", "", 0, "top")
	requireKeys(t, s, "top/", "", 0)
	infos, err := s.List(ctx, "t2", "", 0)
	require.NoError(t, err)
	require.Equal(t, int64(len("t2/data/y.lance")), infos[0].Size)
}

// A slash sorts after '-' and '.', so walking directories in the order of their names is not enough.
func testListOrder(t *testing.T, s objstore.Store) {
	keys := []string{"a-b", "a.txt", "a/b", "a/b-c", "a/b.c/d", "a/b0", "a0", "ab/c", "b", "é/ü", "日本"}
	require.True(t, slices.IsSorted(keys))
	for _, i := range []int{3, 9, 0, 8, 1, 10, 7, 2, 6, 4, 5} {
		require.NoError(t, s.Put(t.Context(), keys[i], []byte{1}))
	}
	requireKeys(t, s, "", "", 0, keys...)
	for i, after := range keys {
		requireKeys(t, s, "", after, 0, keys[i+1:]...)
		requireKeys(t, s, "", after, 1, keys[i+1:min(i+2, len(keys))]...)
	}
	requireKeys(t, s, "a", "", 0, keys[:8]...)
	requireKeys(t, s, "a/b", "", 0, keys[2:6]...)
	requireKeys(t, s, "a/", "a/b.", 0, keys[4:6]...)
}

// testListModel compares listings of random trees with a sorted slice.
func testListModel(t *testing.T, s objstore.Store) {
	const seed = 7
	rng := rand.New(rand.NewPCG(seed, seed))
	names := []string{"a", "a-", "a.", "a0", "b"}
	keys := map[string]bool{}
	for range 60 {
		var parts []string
		for depth := range 1 + rng.IntN(3) {
			parts = append(parts, fmt.Sprintf("d%d%s", depth, names[rng.IntN(len(names))]))
		}
		key := strings.Join(append(parts, "o"+names[rng.IntN(len(names))]), "/")
		keys[key] = true
		require.NoError(t, s.Put(t.Context(), key, nil))
	}
	var sorted []string
	for key := range keys {
		sorted = append(sorted, key)
	}
	slices.Sort(sorted)
	for range 300 {
		of := sorted[rng.IntN(len(sorted))]
		prefix := strings.TrimRight(of[:rng.IntN(len(of)+1)], "/")
		if rng.IntN(3) == 0 && prefix != "" {
			prefix += "/"
		}
		after := sorted[rng.IntN(len(sorted))]
		after = after[:rng.IntN(len(after)+1)]
		max := rng.IntN(5)
		var want []string
		for _, key := range sorted {
			if strings.HasPrefix(key, prefix) && key > after && (max == 0 || len(want) < max) {
				want = append(want, key)
			}
		}
		requireKeys(t, s, prefix, after, max, want...)
	}
}
