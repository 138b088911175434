package keyindex

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore/countstore"
)

func (b *bed) follow() {
	b.t.Helper()
	require.NoError(b.t, b.index.Follow(b.ctx, tableID, b.table))
}

// rows counts the key rows of the table and the addresses in them.
func (b *bed) rows() (rows, addresses int) {
	b.t.Helper()
	it, err := b.index.db.NewIter(&pebble.IterOptions{LowerBound: prefix(kindKey, tableID), UpperBound: prefix(kindKey, tableID+1)})
	require.NoError(b.t, err)
	for ok := it.First(); ok; ok = it.Next() {
		rows++
		addresses += len(it.Value()) / 8
	}
	require.NoError(b.t, it.Close())
	return rows, addresses
}

// TestFollowReadsOnlyTheDelta: of a version that somebody else made a follower reads the new key column and the changed deletion
// files, whatever the table holds; and a look-up after it reads nothing, also after a restart.
func TestFollowReadsOnlyTheDelta(t *testing.T) {
	b := newBed(t)
	defer func() { require.NoError(t, b.index.Close()) }()
	for i := range 6 {
		b.fold(someKeys(12)[2*i:2*i+2], nil, false)
	}
	b.follow()
	b.fold([]string{"key-00", "new"}, []string{"key-02"}, false)
	b.store.Reset()
	b.follow()
	got := b.store.Counts()
	got.ReadBytes = 0
	require.Equal(t, countstore.Counts{GetRange: 1, Get: 2}, got, "the new file, which is small, and two deletion files")
	b.reopen()
	b.store.Reset()
	_, err := b.index.Find(b.ctx, tableID, b.table, set(append(someKeys(12), "new")))
	require.NoError(t, err)
	b.follow()
	require.Zero(t, b.store.Counts().Requests())
	b.check(b.table, append(someKeys(12), "new"))
}

// TestFollowReadsOnlyWhatACompactionMoved: of a version in which fragments were joined the index reads the key column of the new one, and of no other.
func TestFollowReadsOnlyWhatACompactionMoved(t *testing.T) {
	b := newBed(t)
	defer func() { require.NoError(t, b.index.Close()) }()
	for i := range 6 {
		b.fold(someKeys(12)[2*i:2*i+2], nil, false)
	}
	b.fold(nil, []string{"key-00"}, false)
	b.follow()
	require.Equal(t, 1, b.count(kindDeletions))
	op, err := b.table.Compact(b.ctx, lance.CompactOptions{MinFragments: 2, TargetRows: 8})
	require.NoError(t, err)
	done, err := b.table.Commit(b.ctx, lance.NewTransaction(b.table, op), lance.CommitOptions{})
	require.NoError(t, err)
	b.table = done.Table
	require.Len(t, b.table.Fragments(), 3, "four became one, two are left alone")
	b.store.Reset()
	b.follow()
	got := b.store.Counts()
	got.ReadBytes = 0
	require.Equal(t, countstore.Counts{GetRange: 1}, got, "the new file, which is small")
	require.Zero(t, b.count(kindDeletions), "its fragment is gone")
	b.check(b.table, someKeys(12))
}

// count counts the rows of a kind of the table.
func (b *bed) count(kind byte) (rows int) {
	b.t.Helper()
	it, err := b.index.db.NewIter(&pebble.IterOptions{LowerBound: prefix(kind, tableID), UpperBound: prefix(kind, tableID+1)})
	require.NoError(b.t, err)
	for ok := it.First(); ok; ok = it.Next() {
		rows++
	}
	require.NoError(b.t, it.Close())
	return rows
}

// TestFollowerStaysSmall: a follower hears of no deletes and of no key's old address, and yet its rows stay near the live keys.
func TestFollowerStaysSmall(t *testing.T) {
	b := newBed(t)
	defer func() { require.NoError(t, b.index.Close()) }()
	const versions = 60
	for i := range versions {
		b.fold([]string{"hot", fmt.Sprint("once-", i)}, []string{fmt.Sprint("once-", i-1)}, false)
		b.follow()
	}
	rows, addresses := b.rows()
	require.Equal(t, 2, rows)
	require.Equal(t, 2, addresses)
	b.check(b.table, []string{"hot", "once-0", fmt.Sprint("once-", versions-1)})
}

// TestCrowdedRowIsDropped: a key that others replace again and again is looked up at the cost of a bounded number of addresses.
func TestCrowdedRowIsDropped(t *testing.T) {
	b := newBed(t)
	defer func() { require.NoError(t, b.index.Close()) }()
	for range 5 * spareAddresses {
		b.fold([]string{"hot"}, nil, false)
		b.check(b.table, []string{"hot"})
		_, addresses := b.rows()
		require.LessOrEqual(t, addresses, spareAddresses+2)
	}
}
