package keyindex

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/fence"
	"github.com/foldline/foldline/lance"
)

// duplicates asks the index, which has to hold something of the table.
func (b *bed) duplicates(t *lance.Table) fence.Duplicates {
	b.t.Helper()
	d, known, err := b.index.Duplicates(b.ctx, tableID, t, nil)
	require.NoError(b.t, err)
	require.True(b.t, known)
	return d
}

// checkDuplicates holds the index to what a scan finds.
func (b *bed) checkDuplicates(t *lance.Table) {
	b.t.Helper()
	want, err := fence.FindDuplicates(b.ctx, t, fence.SearchLimits{})
	require.NoError(b.t, err)
	require.Equal(b.t, want, b.duplicates(t))
}

// append commits rows without a look at what is there, as an unfenced writer does.
func (b *bed) append(keys ...string) {
	b.t.Helper()
	b.commit(&lance.Append{Fragments: b.upload(keys)}, nil)
}

// crash loses what the index has not synced, of that a part chosen by seed.
func (b *bed) crash(seed uint64) {
	b.t.Helper()
	left := b.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: int(seed % 101), RNG: rand.New(rand.NewPCG(seed, seed))})
	require.NoError(b.t, b.index.Close())
	b.fs = left
	b.open()
}

// TestDuplicatesAreCounted: an index that is built, that follows and that hears of folds says at each version which keys have more than one live row;
// the next write or delete of such a key takes it out, a foreign delete too, and a compaction changes nothing.
func TestDuplicatesAreCounted(t *testing.T) {
	b := newBed(t)
	defer func() { require.NoError(t, b.index.Close()) }()
	b.append("a", "b", "c", "a", "a", "d")
	_, known, err := b.index.Duplicates(b.ctx, tableID, b.table, nil)
	require.NoError(t, err)
	require.False(t, known, "nothing is built for it")
	b.follow()
	require.Equal(t, fence.Duplicates{Keys: 1, Sample: []string{"a"}}, b.duplicates(b.table), "built")

	b.append("b", "e", "e")
	require.Equal(t, fence.Duplicates{Keys: 3, Sample: []string{"a", "b", "e"}}, b.duplicates(b.table), "followed, and twice in what is new")
	op, err := b.table.Compact(b.ctx, lance.CompactOptions{})
	require.NoError(t, err)
	b.commit(op, nil)
	require.Equal(t, uint64(3), b.duplicates(b.table).Keys, "compacted")

	b.fold([]string{"b"}, []string{"e"}, true)
	require.Equal(t, fence.Duplicates{Keys: 1, Sample: []string{"a"}}, b.duplicates(b.table), "an upsert and a delete of ours")
	b.reopen()
	require.Equal(t, uint64(1), b.duplicates(b.table).Keys)
	b.fold(nil, []string{"a"}, false)
	require.Equal(t, fence.Duplicates{}, b.duplicates(b.table), "a delete of another writer")
	b.commit(&lance.Restore{Version: b.table.Version() - 1}, nil)
	require.Equal(t, uint64(1), b.duplicates(b.table).Keys, "and its rows are back")
}

// TestDuplicatesAreSampled: the index names the first few of many, and forgets all of them once they are gone.
func TestDuplicatesAreSampled(t *testing.T) {
	b := newBed(t)
	defer func() { require.NoError(t, b.index.Close()) }()
	many := make([]string, 300)
	for i := range many {
		many[i] = fmt.Sprintf("key-%03d", i)
	}
	b.append(many...)
	b.follow()
	require.Zero(t, b.duplicates(b.table).Keys)
	b.append(many...)
	require.Equal(t, fence.Duplicates{Keys: 300, Sample: many[:fence.SampleKeys]}, b.duplicates(b.table))
	b.fold(many[1:200], nil, true)
	require.Equal(t, uint64(101), b.duplicates(b.table).Keys)
	b.fold(nil, append([]string{many[0]}, many[200:]...), true)
	require.Equal(t, fence.Duplicates{}, b.duplicates(b.table))
	require.NoError(t, b.index.table(tableID).eachRepeated(func(key []byte) (bool, error) {
		require.Fail(t, "still noted", "%q", key)
		return true, nil
	}))
}

// TestDuplicatesCostNothing: at a version that is known, also after folds of ours, the count needs no request.
func TestDuplicatesCostNothing(t *testing.T) {
	b := newBed(t)
	defer func() { require.NoError(t, b.index.Close()) }()
	b.append("a", "a", "b", "b")
	b.follow()
	b.fold([]string{"b"}, nil, true)
	b.store.Reset()
	require.Equal(t, uint64(1), b.duplicates(b.table).Keys)
	require.Zero(t, b.store.Counts().Requests())
}
