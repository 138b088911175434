package lance

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/faultstore"
)

// withHole returns a table at version 3 above which others appended up to version 8 and cleaned versions 4 to 7 away.
func withHole(t *testing.T, store objstore.Store) (base *Table) {
	t.Helper()
	base = newTestTable(t, store)
	for range 2 {
		base = mustCommit(t, base, &Append{Fragments: []Fragment{madeUp(1)}}, CommitOptions{SetMetadata: map[string]string{"fold": "F1"}})
	}
	latest := base
	for range 5 {
		latest = mustCommit(t, latest, &Append{Fragments: []Fragment{madeUp(1)}}, CommitOptions{})
	}
	require.NoError(t, latest.DeleteVersions(t.Context(), []uint64{4, 5, 6, 7}))
	return base
}

// TestHole holds L2: a put into a slot that a cleanup emptied succeeds and must not count.
func TestHole(t *testing.T) {
	t.Run("update", func(t *testing.T) {
		base := withHole(t, objstore.NewMemory())
		tx := NewTransaction(base, &Update{NewFragments: []Fragment{madeUp(7)}, Filter: testFilter(1)})
		_, err := base.Commit(t.Context(), tx, CommitOptions{SetMetadata: map[string]string{"fold": "F2"}})
		require.ErrorIs(t, err, ErrConflict, "the missed transactions are gone: plan again")
		latest := newRival(t, base.Store())
		require.EqualValues(t, 8, latest.Version())
		require.EqualValues(t, 7, latest.Rows())
	})
	t.Run("barrier", func(t *testing.T) {
		base := withHole(t, objstore.NewMemory())
		r, err := base.Commit(t.Context(), NewTransaction(base, &UpdateConfig{}), CommitOptions{SetMetadata: map[string]string{"epoch": "9"}})
		require.NoError(t, err)
		require.EqualValues(t, 9, r.Table.Version())
		require.Equal(t, "9", newRival(t, base.Store()).MetadataValue("epoch"))
	})
	t.Run("assumed latest", func(t *testing.T) {
		base := withHole(t, objstore.NewMemory())
		r, err := base.Commit(t.Context(), NewTransaction(base, &UpdateConfig{}), CommitOptions{AssumeLatest: true})
		require.NoError(t, err)
		require.EqualValues(t, 4, r.Table.Version(), "the caller promised that nobody else cleans up")
	})
}

// TestOvertakenBeforeTheList lets others build on ours between the put and the list: the commit is still done.
func TestOvertakenBeforeTheList(t *testing.T) {
	for name, c := range map[string]struct {
		rival func(t *testing.T, ours *Table) *Table
		err   error
		above uint64
	}{
		"appended": {rival: func(t *testing.T, ours *Table) *Table {
			return mustCommit(t, ours, &Append{Fragments: []Fragment{madeUp(1)}}, CommitOptions{})
		}},
		"appended and cleaned up": {rival: func(t *testing.T, ours *Table) *Table {
			next := mustCommit(t, ours, &Append{Fragments: []Fragment{madeUp(1)}}, CommitOptions{})
			next = mustCommit(t, next, &Append{Fragments: []Fragment{madeUp(1)}}, CommitOptions{})
			require.NoError(t, next.DeleteVersions(t.Context(), []uint64{ours.Version() + 1}))
			return next
		}},
		"restored": {rival: func(t *testing.T, ours *Table) *Table {
			return mustCommit(t, ours, &Restore{Version: 1}, CommitOptions{})
		}},
		"overwritten": {rival: func(t *testing.T, ours *Table) *Table {
			return mustCommit(t, ours, &Overwrite{Schema: ours.Schema()}, CommitOptions{})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inner := objstore.NewMemory()
			newTestTable(t, inner)
			var newest *Table
			put := false
			store := faultstore.New(inner, faultstore.Watch(faultstore.Ops(), func(call faultstore.Call) {
				if call.Op == faultstore.List && put && newest == nil {
					newest = c.rival(t, newRival(t, inner))
				}
				put = put || call.Op == faultstore.PutIfAbsent
			}))
			base, err := Open(t.Context(), store, "t.lance")
			require.NoError(t, err)
			r, err := base.Commit(t.Context(), NewTransaction(base, &Update{NewFragments: []Fragment{madeUp(1)}}), CommitOptions{})
			require.NoError(t, err)
			require.EqualValues(t, 2, r.Table.Version())
			require.Equal(t, newest.Version(), r.Newest)
		})
	}
}

// TestUnclearAbove: a version above ours that shows nothing of it is not guessed about.
func TestUnclearAbove(t *testing.T) {
	base := withHole(t, objstore.NewMemory())
	// Version 5 comes back from a backup: the slot above the hole is taken, but not by something that stands on ours.
	stale := shallow(base.m.pb)
	stale.Version = 5
	tx, err := (&Transaction{UUID: "x", ReadVersion: 4, Op: &Append{}}).Marshal()
	require.NoError(t, err)
	data, err := encodeManifest(stale, tx, nil)
	require.NoError(t, err)
	require.NoError(t, base.Store().PutIfAbsent(t.Context(), "t.lance/_versions/"+namingV2.manifestName(5), data))
	_, err = base.Commit(t.Context(), NewTransaction(base, &Update{NewFragments: []Fragment{madeUp(1)}}), CommitOptions{})
	require.ErrorIs(t, err, ErrUnknownOutcome)
}

// TestListFails: a commit that landed but cannot be confirmed is unknown, not done and not failed.
func TestListFails(t *testing.T) {
	inner := objstore.NewMemory()
	newTestTable(t, inner)
	store := faultstore.New(inner, faultstore.FromCall(2, faultstore.Ops(faultstore.List), nil))
	base, err := Open(t.Context(), store, "t.lance")
	require.NoError(t, err)
	_, err = base.Commit(t.Context(), NewTransaction(base, &UpdateConfig{}), CommitOptions{})
	require.ErrorIs(t, err, ErrUnknownOutcome)
}
